// Recurrent networks, forward. Pass 0 finds the sequences; then one pass per layer, with one CTA
// per direction and sequence, sequential over its steps; the last pass fills unused rows.
__device__ __noinline__ R logistic(R x) { return op_sigmoid_fwd<R>(x); }

__device__ inline R* layer_output_of(const Args& args, int64 layer, int64 row) {
  return (R*)args.outputs + (layer % 2 * args.rows + row) * args.layer_output;
}

// One step of one direction of a layer.
struct Step {
  const Args& args;
  Weights at;
  int64 layer, row;
  const R* state;

  __device__ R input(int64 i) const {
    if (layer == 0) return in_x(args, place(args, row, i).at);
    return kept(args, layer_output_of(args, layer - 1, row)[i], layer - 1, row, i);
  }
  // Warp-wide dot products, returned to all lanes: matrix row `unit` times the layer's input, and
  // times the state.
  __device__ __noinline__ R from_input(int64 unit) const {
    R sum = 0;
    if (has_input_matrix(layer)) {
      for (int64 i = threadIdx.x % kLanes; i < at.columns; i += kLanes)
        sum += in_weights(args, {at.input + unit * at.columns + i}) * input(i);
      sum = warp_reduce<Sum>(sum);
    } else {
      sum = input(unit % args.hidden);
    }
    return kInputBias ? sum + in_weights(args, {at.input_bias + unit}) : sum;
  }
  __device__ __noinline__ R from_state(int64 unit) const {
    R sum = 0;
    for (int64 j = threadIdx.x % kLanes; j < args.output; j += kLanes)
      sum += in_weights(args, {at.recurrent + unit * args.output + j}) * state[j];
    sum = warp_reduce<Sum>(sum);
    return kRecurrentBias ? sum + in_weights(args, {at.recurrent_bias + unit}) : sum;
  }
  __device__ R gate(int64 number, int64 j) const {
    return from_input(number * args.hidden + j) + from_state(number * args.hidden + j);
  }
};

__device__ inline R clipped(const Args& args, R c) {
  if (kClipNan && c != c) return (R)args.clip_low;
  if (kHasClipHigh) c = min_or_nan(c, (R)args.clip_high);
  if (kHasClipLow) c = max_or_nan(c, (R)args.clip_low);
  return c;
}

// Computes `record` from the previous state and cell: one warp per hidden unit.
__device__ inline void run_step(const Step& step, const R* cell, R* record) {
  const Args& args = step.args;
  const int64 hidden = args.hidden;
  const int warps = kThreads / kLanes, lane = threadIdx.x % kLanes;
  for (int64 j = threadIdx.x / kLanes; j < hidden; j += warps) {
    if constexpr (kMode == kModeRelu || kMode == kModeTanh) {
      const R sum = step.gate(0, j);
      if (lane == 0) record[j] = kMode == kModeRelu ? max_or_nan(sum, (R)0) : tanh(sum);
    } else if constexpr (kMode == kModeLstm) {
      const R i = logistic(step.gate(0, j)), f = logistic(step.gate(1, j));
      const R g = tanh(step.gate(2, j)), o = logistic(step.gate(3, j));
      const R c = clipped(args, f * cell[j] + i * g);
      if (lane == 0) {
        record[j] = i;
        record[hidden + j] = f;
        record[2 * hidden + j] = g;
        record[3 * hidden + j] = o;
        record[args.cell + j] = c;
        record[args.hidden_state + j] = o * tanh(c);
      }
    } else {
      const R r = logistic(step.gate(0, j)), z = logistic(step.gate(1, j));
      const R m = step.from_state(2 * hidden + j);
      const R candidate = tanh(step.from_input(2 * hidden + j) + r * m);
      if (lane == 0) {
        record[j] = r;
        record[hidden + j] = z;
        record[2 * hidden + j] = candidate;
        record[args.recurrent_new + j] = m;
        record[args.hidden_state + j] = ((R)1 - z) * candidate + z * step.state[j];
      }
    }
  }
  __syncthreads();
  if (!kProjects) return;
  for (int64 k = threadIdx.x / kLanes; k < args.output; k += warps) {
    R sum = 0;
    for (int64 j = lane; j < hidden; j += kLanes)
      sum += in_weights(args, {step.at.projection + k * hidden + j}) *
             record[args.hidden_state + j];
    sum = warp_reduce<Sum>(sum);
    if (lane == 0) record[args.output_state + k] = sum;
  }
  __syncthreads();
}

__device__ inline void run_layer(const Args& args, int64 layer, int64 direction, int64 n) {
  const int64 p = layer * args.directions + direction, length = length_of(args, n);
  R* record = (R*)args.records +
              (direction * args.batch + n) * (args.reserve_width + args.output + args.hidden);
  R* state = record + args.reserve_width;
  R* cell = state + args.output;
  for (int64 j = threadIdx.x; j < args.output; j += kThreads) state[j] = in_hx(args, {p, n, j});
  for (int64 j = threadIdx.x; j < args.hidden; j += kThreads) cell[j] = in_cx(args, {p, n, j});
  __syncthreads();
  for (int64 i = 0; i < length; ++i) {
    const int64 row = row_of(args, direction == 0 ? i : length - 1 - i, n);
    run_step({args, weights_of(args, layer, direction), layer, row, state}, cell, record);
    for (int64 j = threadIdx.x; j < args.output; j += kThreads) {
      state[j] = record[args.output_state + j];
      const int64 feature = direction * args.output + j;
      layer_output_of(args, layer, row)[feature] = state[j];
      if (layer == args.layers - 1) put_y(args, place(args, row, feature).at, state[j]);
    }
    if (kMode == kModeLstm)
      for (int64 j = threadIdx.x; j < args.hidden; j += kThreads) cell[j] = record[args.cell + j];
    if constexpr (kHas_reserve)
      for (int64 j = threadIdx.x; j < args.reserve_width; j += kThreads)
        put_reserve(args, record_position(args, p, row, j).at, record[j]);
    __syncthreads();
  }
  if constexpr (kHas_hy)
    for (int64 j = threadIdx.x; j < args.output; j += kThreads) put_hy(args, {p, n, j}, state[j]);
  if constexpr (kHas_cy)
    for (int64 j = threadIdx.x; j < args.hidden; j += kThreads) put_cy(args, {p, n, j}, cell[j]);
}

__device__ inline void fill_unused(const Args& args, int64 row) {
  if (is_used(args, row)) return;
  for (int64 j = threadIdx.x; j < args.layer_output; j += kThreads)
    put_y(args, place(args, row, j).at, (R)args.padding_value);
  if constexpr (kHas_reserve)
    for (int64 p = 0; p < args.layers * args.directions; ++p)
      for (int64 j = threadIdx.x; j < args.reserve_width; j += kThreads)
        put_reserve(args, record_position(args, p, row, j).at, (R)0);
}

__device__ inline void unit(const Args& args, int64 n) {
  if (args.pass == 0)
    find_sequences(args);
  else if (args.pass <= args.layers)
    run_layer(args, args.pass - 1, n / args.batch, n % args.batch);
  else
    fill_unused(args, n);
}

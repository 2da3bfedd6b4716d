// Recurrent networks, gradient of the data. Pass 0 finds the sequences. Then, from the last layer
// to the first, one pass runs one CTA per direction and sequence backwards through time, and one
// pass computes the gradient of the layer's input, one CTA per row. The last pass clears unused
// rows.
__device__ inline R* d_gates_of(const Args& args, int64 direction, int64 row) {
  return (R*)args.gates + (direction * args.rows + row) * args.dgates_width;
}
// Gradient of a layer's output.
__device__ inline R d_output(const Args& args, int64 layer, int64 row, int64 feature) {
  if (layer == args.layers - 1) return in_dy(args, place(args, row, feature).at);
  return ((const R*)args.d_outputs)[row * args.layer_output + feature];
}
__device__ __noinline__ R weight(const Args& args, int64 matrix, int64 columns, int64 row,
                           int64 column) {
  return in_weights(args, {matrix + row * columns + column});
}
__device__ __noinline__ R kept_state(const Args& args, int64 p, int64 row, int64 number) {
  return in_reserve(args, record_position(args, p, row, number).at);
}

// One hidden unit at one step.
struct HiddenUnit {
  const Args& args;
  int64 p, direction, n, step, row, j;

  __device__ R gate(int64 number) const {
    return kept_state(args, p, row, number * args.hidden + j);
  }
  // A state of the previous step at `number` of its record, or `initial`.
  __device__ R previous(int64 number, R initial) const {
    const int64 before = step_before(step, direction);
    if (!runs(args, before, n)) return initial;
    return kept_state(args, p, row_of(args, before, n), number + j);
  }
};

// A clipped cell state has no gradient. Bounds are rounded to the type of the records.
__device__ inline R through_clip(const Args& args, R gradient, R c) {
  if (kHasClipLow && !((R)args.clip_low < c)) gradient = 0;
  if (kHasClipHigh && !(c < (R)args.clip_high)) gradient = 0;
  return gradient;
}

__device__ inline void cell_gradients(const HiddenUnit& unit, R dh, R* d_cell, R* gates) {
  const Args& args = unit.args;
  const int64 hidden = args.hidden, j = unit.j;
  const R one = 1;
  if constexpr (kMode == kModeRelu) {
    gates[j] = unit.gate(0) > 0 ? dh : (R)0;
  } else if constexpr (kMode == kModeTanh) {
    const R h = unit.gate(0);
    gates[j] = dh * (one - h * h);
  } else if constexpr (kMode == kModeLstm) {
    const R i = unit.gate(0), f = unit.gate(1), g = unit.gate(2), o = unit.gate(3);
    const R c = kept_state(args, unit.p, unit.row, args.cell + j), t = tanh(c);
    const R dc = through_clip(args, d_cell[j] + dh * o * (one - t * t), c);
    const R before = unit.previous(args.cell, in_cx(args, {unit.p, unit.n, j}));
    gates[j] = dc * g * i * (one - i);
    gates[hidden + j] = dc * before * f * (one - f);
    gates[2 * hidden + j] = dc * i * (one - g * g);
    gates[3 * hidden + j] = dh * t * o * (one - o);
    d_cell[j] = dc * f;
  } else {
    const R r = unit.gate(0), z = unit.gate(1), candidate = unit.gate(2);
    const R m = kept_state(args, unit.p, unit.row, args.recurrent_new + j);
    const R before = unit.previous(args.hidden_state, in_hx(args, {unit.p, unit.n, j}));
    const R dn = dh * (one - z) * (one - candidate * candidate);
    gates[j] = dn * m * r * (one - r);
    gates[hidden + j] = dh * (before - candidate) * z * (one - z);
    gates[2 * hidden + j] = dn;
  }
}

// GRU: the gradient of the new gate reaches its recurrent GEMM through the reset gate.
__device__ inline R recurrent_gradient(const Args& args, int64 p, int64 row, const R* gates,
                                       int64 unit) {
  const int64 j = unit - 2 * args.hidden;
  if (kMode != kModeGru || j < 0) return gates[unit];
  return gates[unit] * kept_state(args, p, row, j);
}

__device__ inline void direction_gradients(const Args& args, int64 layer, int64 direction,
                                           int64 n) {
  const Weights at = weights_of(args, layer, direction);
  const int64 p = layer * args.directions + direction, length = length_of(args, n);
  const int64 hidden = args.hidden, output = args.output;
  R* d_state = (R*)args.states + (direction * args.batch + n) * (output + 2 * hidden);
  R* d_hidden = d_state + output;
  R* d_cell = d_hidden + hidden;
  for (int64 j = threadIdx.x; j < output; j += kThreads) d_state[j] = in_dhy(args, {p, n, j});
  for (int64 j = threadIdx.x; j < hidden; j += kThreads) d_cell[j] = in_dcy(args, {p, n, j});
  __syncthreads();
  for (int64 i = length - 1; i >= 0; --i) {
    const int64 step = direction == 0 ? i : length - 1 - i, row = row_of(args, step, n);
    R* gates = d_gates_of(args, direction, row);
    for (int64 j = threadIdx.x; j < output; j += kThreads) {
      d_state[j] += d_output(args, layer, row, direction * output + j);
      if (kProjects) gates[args.gate_rows + j] = d_state[j];
    }
    __syncthreads();
    for (int64 j = threadIdx.x; j < hidden; j += kThreads) {
      R dh = 0;
      if (kProjects)
        for (int64 k = 0; k < output; ++k)
          dh += weight(args, at.projection, hidden, k, j) * d_state[k];
      else
        dh = d_state[j];
      d_hidden[j] = dh;
      cell_gradients({args, p, direction, n, step, row, j}, dh, d_cell, gates);
    }
    __syncthreads();
    for (int64 j = threadIdx.x; j < output; j += kThreads) {
      R sum = 0;
      for (int64 unit = 0; unit < args.gate_rows; ++unit)
        sum += weight(args, at.recurrent, output, unit, j) *
               recurrent_gradient(args, p, row, gates, unit);
      // h = (1 - z) n + z h'
      if (kMode == kModeGru) sum += d_hidden[j] * kept_state(args, p, row, hidden + j);
      d_state[j] = sum;
    }
    if constexpr (kHas_dgates)
      for (int64 j = threadIdx.x; j < args.dgates_width; j += kThreads)
        put_dgates(args, record_position(args, p, row, j).at, gates[j]);
    __syncthreads();
  }
  if constexpr (kHas_dhx)
    for (int64 j = threadIdx.x; j < output; j += kThreads) put_dhx(args, {p, n, j}, d_state[j]);
  if constexpr (kHas_dcx)
    for (int64 j = threadIdx.x; j < hidden; j += kThreads) put_dcx(args, {p, n, j}, d_cell[j]);
}

// Both directions contribute to the gradient of a layer's input.
__device__ inline void input_gradients(const Args& args, int64 layer, int64 row) {
  if (!is_used(args, row)) return;
  const int64 columns = layer == 0 ? args.input : args.layer_output;
  for (int64 i = threadIdx.x; i < columns; i += kThreads) {
    R sum = 0;
    for (int64 direction = 0; direction < args.directions; ++direction) {
      const R* gates = d_gates_of(args, direction, row);
      const int64 matrix = weights_of(args, layer, direction).input;
      if (has_input_matrix(layer))
        for (int64 unit = 0; unit < args.gate_rows; ++unit)
          sum += weight(args, matrix, columns, unit, i) * gates[unit];
      else
        for (int64 unit = i; unit < args.gate_rows; unit += args.hidden) sum += gates[unit];
    }
    if (layer == 0)
      put_dx(args, place(args, row, i).at, sum);
    else
      ((R*)args.d_outputs)[row * args.layer_output + i] = kept(args, sum, layer - 1, row, i);
  }
}

__device__ inline void clear_unused(const Args& args, int64 row) {
  if (is_used(args, row)) return;
  for (int64 j = threadIdx.x; j < args.input; j += kThreads)
    put_dx(args, place(args, row, j).at, (R)0);
  if constexpr (kHas_dgates)
    for (int64 p = 0; p < args.layers * args.directions; ++p)
      for (int64 j = threadIdx.x; j < args.dgates_width; j += kThreads)
        put_dgates(args, record_position(args, p, row, j).at, (R)0);
}

__device__ inline void unit(const Args& args, int64 n) {
  const int64 layer = args.layers - 1 - (args.pass - 1) / 2;
  if (args.pass == 0)
    find_sequences(args);
  else if (args.pass > 2 * args.layers)
    clear_unused(args, n);
  else if (args.pass % 2 == 1)
    direction_gradients(args, layer, n / args.batch, n % args.batch);
  else
    input_gradients(args, layer, n);
}

// Recurrent networks, gradient of the weights. Pass 0 finds the sequences; in pass 1 one thread per
// weight sums over the rows.
__device__ inline R layer_input(const Args& args, int64 layer, int64 row, int64 i) {
  if (layer == 0) return in_x(args, place(args, row, i).at);
  const int64 below = (layer - 1) * args.directions + i / args.output;
  const int64 number = args.output_state + i % args.output;
  return kept(args, in_reserve(args, record_position(args, below, row, number).at), layer - 1, row,
              i);
}
__device__ inline R previous_output(const Args& args, int64 p, int64 direction, int64 n,
                                    int64 step, int64 j) {
  const int64 before = step_before(step, direction);
  if (!runs(args, before, n)) return in_hx(args, {p, n, j});
  const int64 row = row_of(args, before, n);
  return in_reserve(args, record_position(args, p, row, args.output_state + j).at);
}
__device__ __noinline__ R gate_gradient(const Args& args, int64 p, int64 row, int64 unit) {
  return in_dgates(args, record_position(args, p, row, unit).at);
}
// Gradient of the recurrent GEMM; in a GRU that of the new gate passes the reset gate.
__device__ inline R recurrent_gradient(const Args& args, int64 p, int64 row, int64 unit) {
  const int64 j = unit - 2 * args.hidden;
  const R gradient = gate_gradient(args, p, row, unit);
  if (kMode != kModeGru || j < 0) return gradient;
  return gradient * in_reserve(args, record_position(args, p, row, j).at);
}

// Which weight an element of the packed buffer is.
struct WeightPosition {
  int64 layer, direction;
  int matrix;  // in the order of Weights
  int64 unit, column;
};
__device__ __noinline__ WeightPosition bias_position(const Args& args, int64 element) {
  const int64 past = element - args.biases, p = past / args.bias_count;
  const int64 within = past % args.bias_count;
  const bool is_recurrent = !kInputBias || within >= args.gate_rows;
  return {p / args.directions, p % args.directions, is_recurrent ? 4 : 3, within % args.gate_rows,
          0};
}
__device__ __noinline__ WeightPosition matrix_position(const Args& args, int64 element) {
  const int64 in_first = args.directions * args.first_layer[3];
  const bool is_first = element < in_first;
  const int64* part = is_first ? args.first_layer : args.other_layers;
  const int64 past = is_first ? element : element - in_first;
  const int64 layer = is_first ? 0 : 1 + past / part[3] / args.directions;
  const int64 within = past % part[3];
  int matrix = 2;  // absent matrices start where the next one does
  while (matrix > 0 && within < part[matrix]) --matrix;
  const int64 columns = matrix == 0   ? layer == 0 ? args.input : args.layer_output
                        : matrix == 1 ? args.output
                                      : args.hidden;
  return {layer, past / part[3] % args.directions, matrix, (within - part[matrix]) / columns,
          (within - part[matrix]) % columns};
}

__device__ inline void weight_gradient(const Args& args, int64 element) {
  const WeightPosition at =
      element < args.biases ? matrix_position(args, element) : bias_position(args, element);
  const int64 layer = at.layer, direction = at.direction, unit = at.unit, column = at.column;
  const int64 p = layer * args.directions + direction;

  R sum = 0;
  for (int64 step = 0; step < args.steps; ++step) {
    int64 row = row_of(args, step, 0);
    for (int64 n = 0; n < args.batch; ++n) {
      if (!runs(args, step, n)) {
        if (!kPacked) ++row;
        continue;
      }
      switch (at.matrix) {
        case 0:
          sum += gate_gradient(args, p, row, unit) * layer_input(args, layer, row, column);
          break;
        case 1:
          sum += recurrent_gradient(args, p, row, unit) *
                 previous_output(args, p, direction, n, step, column);
          break;
        case 2:
          sum += gate_gradient(args, p, row, args.gate_rows + unit) *
                 in_reserve(args, record_position(args, p, row, args.hidden_state + column).at);
          break;
        case 3: sum += gate_gradient(args, p, row, unit); break;
        case 4: sum += recurrent_gradient(args, p, row, unit); break;
      }
      ++row;
    }
  }
  put_dweights(args, {element}, sum + in_previous(args, {element}));
}

__device__ inline void unit(const Args& args, int64 n) {
  if (args.pass == 0)
    find_sequences(args);
  else
    weight_gradient(args, n);
}

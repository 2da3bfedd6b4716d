// Recurrent networks, shared by forward and backward: sequences, and accessors of weights,
// reserve-space records and states. docs/ops/recurrent.md has the formulas.
#include "lib/coordinates.cuh"
#include "lib/philox.cuh"
#include "lib/reduce.cuh"

// --- sequences: lengths, and the rows of their steps

// Lengths are untrusted data and are clamped to what the tensors hold. In the packed layout rows
// are assigned step by step, within a step by sequence; sequences end where rows run out.
__device__ inline void find_sequences(const Args& args) {
  int64* lengths = (int64*)args.lengths;
  for (int64 n = threadIdx.x; n < args.batch; n += kThreads) {
    int64 length = args.steps;
    if constexpr (kHas_seq_lengths) length = integer_seq_lengths(args, {n});
    lengths[n] = length < 0 ? 0 : length > args.steps ? args.steps : length;
  }
  __syncthreads();
  if (!kPacked || threadIdx.x != 0) return;
  int64* starts = (int64*)args.starts;  // rows in use before a step; the last entry: all rows in
                                        // use
  int64 rows = 0;
  for (int64 step = 0; step < args.steps; ++step) {
    starts[step] = rows;
    for (int64 n = 0; n < args.batch; ++n) {
      if (lengths[n] <= step) continue;
      if (rows == args.rows)
        lengths[n] = step;
      else
        ++rows;
    }
  }
  starts[args.steps] = rows;
}
__device__ inline int64 length_of(const Args& args, int64 n) {
  return ((const int64*)args.lengths)[n];
}
__device__ inline bool runs(const Args& args, int64 step, int64 n) {
  return step >= 0 && length_of(args, n) > step;
}
// The row of x, y and the records that holds this step of sequence n.
__device__ __noinline__ int64 row_of(const Args& args, int64 step, int64 n) {
  if (!kPacked) return step * args.batch + n;
  int64 row = ((const int64*)args.starts)[step];
  for (int64 other = 0; other < n; ++other) row += length_of(args, other) > step ? 1 : 0;
  return row;
}
__device__ __noinline__ bool is_used(const Args& args, int64 row) {
  if (kPacked) return row < ((const int64*)args.starts)[args.steps];
  return runs(args, row / args.batch, row % args.batch);
}
// The previous step in the direction's order; may be outside the sequence.
__device__ inline int64 step_before(int64 step, int64 direction) {
  return direction == 0 ? step - 1 : step + 1;
}

// --- coordinates of a feature in x and y, and in the records

static const int kLastOfRow = kPacked ? 1 : 2, kLastOfRecord = kPacked ? 2 : 3;
struct RowPosition {
  Index at[kLastOfRow + 1];
};
struct RecordPosition {
  Index at[kLastOfRecord + 1];
};
__device__ __noinline__ RowPosition place(const Args& args, int64 row, int64 feature) {
  RowPosition result;
  result.at[0] = kPacked ? row : row / args.batch;
  result.at[1] = kPacked ? 0 : row % args.batch;
  result.at[kLastOfRow] = feature;
  return result;
}
__device__ __noinline__ RecordPosition record_position(const Args& args, int64 pseudo_layer,
                                                       int64 row, int64 number) {
  RecordPosition result;
  result.at[0] = pseudo_layer;
  result.at[1] = kPacked ? row : row / args.batch;
  result.at[2] = kPacked ? 0 : row % args.batch;
  result.at[kLastOfRecord] = number;
  return result;
}

// --- weights: row-major matrices with all gates stacked along the rows

struct Weights {
  int64 input, recurrent, projection, input_bias, recurrent_bias;  // first elements
  int64 columns;                                                   // of `input`
};
// The matrices of all pseudo-layers, then the biases of all. args.first_layer and args.other_layers
// are the offsets of a pseudo-layer's matrices in the order of Weights, then their end.
__device__ __noinline__ Weights weights_of(const Args& args, int64 layer, int64 direction) {
  const int64* part = layer == 0 ? args.first_layer : args.other_layers;
  const int64 start =
      layer == 0 ? direction * args.first_layer[3]
                 : args.directions * args.first_layer[3] +
                       ((layer - 1) * args.directions + direction) * args.other_layers[3];
  const int64 bias = args.biases + (layer * args.directions + direction) * args.bias_count;
  return {start + part[0],
          start + part[1],
          start + part[2],
          bias,
          bias + (kInputBias ? args.gate_rows : 0),
          layer == 0 ? args.input : args.layer_output};
}
__device__ inline bool has_input_matrix(int64 layer) { return !(kSkip && layer == 0); }

// Dropout between layers: a layer's output as the next layer reads it.
__device__ __noinline__ R kept(const Args& args, R value, int64 layer, int64 row, int64 feature) {
  if (!kDropout) return value;
  const int64 index = (layer * args.rows + row) * args.layer_output + feature;
  const bool keeps =
      bernoulli((uint64)integer_dropout_seed(args, Origin<kRank_dropout_seed>().at),
                (uint64)integer_dropout_offset(args, Origin<kRank_dropout_offset>().at),
                (uint64)index, (float)args.keep_probability);
  return keeps ? value * (R)(1.0 / args.keep_probability) : (R)0;
}

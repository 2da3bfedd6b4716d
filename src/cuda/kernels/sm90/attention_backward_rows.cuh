// What the backward pass of fused attention (attention_backward.cuh) needs of its rows:
//   L      log2 of the sum of a row's weights; infinity, so that they are 0, where it has none
//   delta  sum of dO * O
// and zeros in the scratch of dQ. One CTA per block of kBlockM rows, 16 lanes per row.
#include "lib/elements.cuh"
#include "lib/pointwise.cuh"
#include "lib/rows.cuh"

static const int kRowLanes = 16;

extern "C" __global__ void __launch_bounds__(256)
    attention_backward_rows(const __grid_constant__ Args args) {
  const int row_tile = (int)blockIdx.x, head = row_tile / (int)args.tiles_m;
  const int batch = head / (int)args.heads, of_batch = head - batch * (int)args.heads;
  const int first_row = (row_tile - head * (int)args.tiles_m) * kBlockM;
  const int lane = (int)threadIdx.x % kRowLanes;
  const RowMask mask(args, batch);
  const auto offset_of = [&](const int64 (&strides)[3], int row) {
    return batch * strides[0] + of_batch * strides[1] + row * strides[2];
  };
#pragma unroll 1
  for (int i = (int)threadIdx.x / kRowLanes; i < kBlockM; i += 256 / kRowLanes) {
    const int row = first_row + i;
    float sum = 0, log_sum = -__int_as_float(0x7f800000);
    if (row < mask.rows) {
      log_sum = ((const float*)args.stats)[offset_of(args.stats_strides, row)];
      for (int column = 8 * lane; column < (int)args.value_dim; column += 8 * kRowLanes) {
        float o[8], d_o[8];
        load_row(Element(), (const void*)args.o, offset_of(args.o_strides, row) + column, o);
        load_row(Element(), (const void*)args.d_o, offset_of(args.d_o_strides, row) + column, d_o);
#pragma unroll
        for (int l = 0; l < 8; ++l) sum += o[l] * d_o[l];
      }
    }
#pragma unroll
    for (int distance = kRowLanes / 2; distance > 0; distance /= 2)
      sum += __shfl_xor_sync(~0u, sum, distance);
    if (lane != 0) continue;
    const bool is_empty = log_sum == -__int_as_float(0x7f800000);
    const int64 at = (int64)row_tile * kBlockM + i;
    ((float*)args.log_sums)[at] = is_empty ? __int_as_float(0x7f800000) : log_sum * 1.44269504f;
    ((float*)args.deltas)[at] = is_empty ? 0 : sum;
  }
  uint4* const d_q = (uint4*)args.d_q + (int64)row_tile * (kBlockM * kHeadDim / 4);
  for (int i = (int)threadIdx.x; i < kBlockM * kHeadDim / 4; i += 256)
    d_q[i] = make_uint4(0, 0, 0, 0);
}

// Adds up what the blocks of row_norm_backward left: kColumns neighbouring columns per block, the
// pieces shared out among its threads. Blocks (x, y) = (kColumns columns, set of parameters).
// Printed before it: R, Index, Args, Spec, kThreads, kColumns, kScaleSums, kBiasSums; store_dscale,
// store_dbias.
#include "lib/pointwise.cuh"
#include "lib/row_tile.cuh"
#include "lib/rows.cuh"

extern "C" __global__ void __launch_bounds__(kThreads)
    row_column_sums(const __grid_constant__ Args args) {
  constexpr int kWarps = kThreads / kLanes, kKinds = kScaleSums + kBiasSums;
  constexpr int kWays = kThreads / kColumns;
  __shared__ R sums[kKinds][kWarps][kColumns];
  const int lane = threadIdx.x % kLanes, warp = threadIdx.x / kLanes;
  const int column = (int)blockIdx.x * kColumns + (int)threadIdx.x % kColumns;
  const int pieces = (int)args.pieces;
  const R* partial =
      (const R*)args.partial + (int64)blockIdx.y * pieces * (kKinds * (int64)Spec::kLength);
  R total[kKinds] = {};
  if (column < Spec::kLength) {
#pragma unroll 8
    for (int piece = threadIdx.x / kColumns; piece < pieces; piece += kWays)
#pragma unroll
      for (int kind = 0; kind < kKinds; ++kind)
        total[kind] += partial[((int64)piece * kKinds + kind) * Spec::kLength + column];
  }
#pragma unroll
  for (int kind = 0; kind < kKinds; ++kind) {
    // Over the threads of a warp that have the same column, then over the warps.
#pragma unroll
    for (int distance = kColumns; distance < kLanes; distance *= 2)
      total[kind] += __shfl_xor_sync(kAllLanes, total[kind], distance);
    if (lane < kColumns) sums[kind][warp][lane] = total[kind];
  }
  __syncthreads();
  if ((int)threadIdx.x >= kColumns || column >= Spec::kLength) return;
#pragma unroll
  for (int kind = 0; kind < kKinds; ++kind) {
    total[kind] = (R)0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) total[kind] += sums[kind][w][lane];
  }
  Index at[Spec::kRank];
  RowTile<Spec, 1, 0>::locate(args, (Index)blockIdx.y * (Index)args.rows_per_set, at);
  at[Spec::kRank - 1] = column;
  if constexpr (kScaleSums) store_dscale(args, at, total[0]);
  if constexpr (kBiasSums) store_dbias(args, at, total[kKinds - 1]);
}

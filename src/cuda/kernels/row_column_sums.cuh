// Second step of dscale and dbias: reduces the per-CTA partials of row_norm_backward. A CTA owns
// kSums contiguous columns; its threads split the pieces. Grid (x, y) = (kSums columns, parameter
// set).
// The engine prints before it: R, Index, Args, Spec, SumSpec, kThreads, kSums, kScaleSums,
// kBiasSums; store_dscale, store_dbias.
#include "lib/pointwise.cuh"
#include "lib/ptx_grid_dependency.cuh"
#include "lib/row_column_partials.cuh"
#include "lib/rows.cuh"

extern "C" __global__ void __launch_bounds__(kThreads)
    row_column_sums(const __grid_constant__ Args args) {
  typedef SumOrder<SumSpec, R> Order;
  constexpr int kWarps = kThreads / kLanes, kKinds = kScaleSums + kBiasSums;
  constexpr int kWays = kThreads / kSums;
  __shared__ R sums[kKinds][kWarps][kSums];
  const int lane = threadIdx.x % kLanes, warp = threadIdx.x / kLanes;
  const int position = (int)blockIdx.x * kSums + (int)threadIdx.x % kSums;
  const int pieces = (int)args.pieces;
  const R* partial = (const R*)args.partial + (int64)blockIdx.y * pieces * (kKinds * Order::kCount);
  R total[kKinds] = {};
  wait_on_dependent_grids();
  if (position < Order::kCount) {
#pragma unroll 8
    for (int piece = threadIdx.x / kSums; piece < pieces; piece += kWays)
#pragma unroll
      for (int kind = 0; kind < kKinds; ++kind)
        total[kind] += partial[((int64)piece * kKinds + kind) * Order::kCount + position];
  }
#pragma unroll
  for (int kind = 0; kind < kKinds; ++kind) {
    // Over the lanes with the same column, then over the warps.
#pragma unroll
    for (int distance = kSums; distance < kLanes; distance *= 2)
      total[kind] += __shfl_xor_sync(kAllLanes, total[kind], distance);
    if (lane < kSums) sums[kind][warp][lane] = total[kind];
  }
  __syncthreads();
  const int column = Order::column(position);
  if ((int)threadIdx.x >= kSums || position >= Order::kCount || column >= Spec::kLength) return;
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

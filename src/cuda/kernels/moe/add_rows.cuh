// Scatter-add of a mixture of experts: every output row is the sum of the GEMM rows routed to it,
// added in row order, one CTA per output row. Requires generic/moe_routing.cuh, moe/scan_groups.cuh
// and the generated header (kListed, args.row_counts and .row_lists from moe/count_rows.cuh,
// .row_sums from moe/store_accumulators.cuh, and the epilogue, kVector columns at a time).
#include "lib/divide.cuh"
#include "lib/pointwise.cuh"
#include "lib/rows.cuh"

// Sorts the rows listed for `to`.
__device__ inline int sort_listed(const Args& args, Index to, int count, int* sorted) {
  const int* list = (const int*)args.row_lists + (int64)to * kListed;
  const int thread = (int)threadIdx.x;
  if (thread < count) {
    int before = 0;
    for (int i = 0; i < count; ++i) before += list[i] < list[thread];
    sorted[before] = list[thread];
  }
  return count;
}
// Finds the rows routed to `to` among those from `first` on, one row per thread.
__device__ inline int find_rows(const Args& args, Index to, int first, int* found) {
  const int row = first + (int)threadIdx.x;
  const int goes = row < (int)rows(args) && destination(args, row, (Index)args.output_rows) == to;
  const int end = scan_threads(goes, [](int x, int y) { return x + y; });
  if (goes) found[end - 1] = row;
  return last_of_block(end);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    add_rows(const __grid_constant__ Args args) {
  __shared__ int chosen[kThreads];
  const int first = (int)first_begin(args), end = (int)rows(args);
  for (Index to = blockIdx.x; to < (Index)args.output_rows; to += gridDim.x) {
    const int count = ((const int*)args.row_counts)[to];
    const bool is_listed = count <= kListed;
    for (Index left = 0; left < (Index)args.columns; left += kThreads * kVector) {
      const Index column = left + (Index)threadIdx.x * kVector;
      R sum[kVector] = {};
      for (int from = first; from < end; from += is_listed ? end : kThreads) {
        const int here = is_listed ? sort_listed(args, to, count, chosen)
                                   : find_rows(args, to, from, chosen);
        __syncthreads();
        for (int i = 0; i < here && column < (Index)args.columns; ++i) {
          R values[kVector];
          load_row(f32(), (const void*)args.row_sums, (int64)chosen[i] * args.columns + column,
                   values);
#pragma unroll
          for (int l = 0; l < kVector; ++l) sum[l] += values[l];
        }
        __syncthreads();
      }
      if (column >= (Index)args.columns) continue;
      Index at[kRank];
      locate_row(args, to, at);
      at[kRank - 1] = column;
      epilogue<kVector>(args, at, sum);
    }
  }
}

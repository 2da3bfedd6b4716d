// Counts the rows routed to each output row; where the count is 1, the GEMM may store the row
// directly. Writes up to kListed of them to args.row_lists, unordered. Requires the generated
// header and generic/moe_routing.cuh.
#include "lib/elements.cuh"

static const int kThreads = 256;

extern "C" __global__ void __launch_bounds__(kThreads)
    count_rows(const __grid_constant__ Args args) {
  const Index first = first_begin(args), end = rows(args);
  for (Index row = (Index)blockIdx.x * kThreads + threadIdx.x; row < end;
       row += (Index)gridDim.x * kThreads) {
    const Index to = destination(args, row, (Index)args.output_rows);
    if (row >= first && to >= 0) {
      const int before = atomicAdd((int*)args.row_counts + to, 1);
      if (before < kListed) ((int*)args.row_lists)[(int64)to * kListed + before] = (int)row;
    }
  }
}

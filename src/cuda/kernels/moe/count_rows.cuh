// How many rows go to each row of the output: 1 for those that a product may store alone.
// args.row_lists gets up to kListed of them, in any order. Comes after a kernel's head and
// generic/moe_routing.cuh.
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

// Entry point of the generic engine: a grid-stride loop over units of work, one unit per thread, or
// per CTA in block passes.
#include "lib/coordinates.cuh"
#include "lib/elements.cuh"
#include "lib/philox.cuh"
#include "lib/pointwise.cuh"
#include "lib/rows.cuh"

extern "C" __global__ void __launch_bounds__(kThreads) generic(const __grid_constant__ Args args) {
  if (args.team != 0) {
    for (int64 n = blockIdx.x; n < args.units; n += gridDim.x) {
      unit(args, n);
      __syncthreads();
    }
    return;
  }
  const int64 all = (int64)gridDim.x * kThreads;
  for (int64 n = (int64)blockIdx.x * kThreads + threadIdx.x; n < args.units; n += all)
    unit(args, n);
}

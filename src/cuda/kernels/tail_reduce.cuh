// Combines the partial results of tail reductions in a fixed order and runs their finishing
// programs. The generated header defines kTails, and for each a Tail<number>, which is a fold
// (lib/tail_folds.cuh) with
//   partials(args), parts(args), elements(args)  R[parts][elements]
//   kAcross                                      elements per CTA; its threads share the parts of
//                                                each element
//   finish(args, element, value)
// blockIdx.y is the index of the reduction.
#include "lib/coordinates.cuh"
#include "lib/elements.cuh"
#include "lib/pointwise.cuh"
#include "lib/ptx_grid_dependency.cuh"
#include "lib/rows.cuh"
#include "lib/tail_folds.cuh"

template <class T>
__device__ inline void reduce_tail(const Args& args, T tail, R* slots) {
  const int kShares = kThreads / T::kAcross;
  const int lane = threadIdx.x % T::kAcross, share = threadIdx.x / T::kAcross;
  const int64 elements = tail.elements(args), element = (int64)blockIdx.x * T::kAcross + lane;
  const int parts = (int)tail.parts(args);
  R whole = tail.identity();
  if (element < elements) {
    const R* from = tail.partials(args) + element;
#pragma unroll 4
    for (int part = share; part < parts; part += kShares)
      whole = tail.apply(whole, from[part * elements]);
  }
  slots[threadIdx.x] = whole;
#pragma unroll 1
  for (int half = kShares / 2; half > 0; half /= 2) {
    __syncthreads();
    if (share < half)
      slots[threadIdx.x] = tail.apply(slots[threadIdx.x], slots[threadIdx.x + half * T::kAcross]);
  }
  if (share == 0 && element < elements) tail.finish(args, element, slots[threadIdx.x]);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    tail_reduce(const __grid_constant__ Args args) {
  __shared__ R slots[kThreads];
  wait_on_dependent_grids();
  for_each_tail<kTails>([&](auto tail) {
    if (tail.kNumber == (int)blockIdx.y) reduce_tail(args, tail, slots);
  });
}

// Element-wise programs: one thread computes kRuns vectors of kVector elements along the last axis.
#include "lib/divide.cuh"
#include "lib/elements.cuh"
#include "lib/pointwise.cuh"
#include "lib/rows.cuh"

// Coordinates of vector `run`: the last axis is split into `per_row` vectors of kCount elements.
template <int kCount>
__device__ inline void locate(const Args& args, Index run, Index (&at)[kRank]) {
  const int64* extent = &args.extent0;
  const int64* magic = &args.magic0;
  const Index per_row = kCount == 1 ? extent[kRank - 1] : (Index)args.per_row;
  const int64 magic_row = kCount == 1 ? magic[kRank - 1] : args.magic_row;
  Index rest = kRank == 1 ? 0 : divide(run, magic_row, per_row);
  at[kRank - 1] = (run - rest * per_row) * kCount;
#pragma unroll
  for (int axis = kRank - 2; axis >= 0; --axis) {
    const Index above = axis == 0 ? 0 : divide(rest, magic[axis], extent[axis]);
    at[axis] = rest - above * (Index)extent[axis];
    rest = above;
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    pointwise(const __grid_constant__ Args args) {
  // The vectors of a thread are kThreads apart: every warp access is coalesced.
  const Index first = (Index)blockIdx.x * (kThreads * kRuns) + threadIdx.x;
#pragma unroll
  for (int r = 0; r < kRuns; ++r) {
    const Index run = first + r * kThreads;
    if (run >= (Index)args.runs) return;
    Index at[kRank];
    locate<kVector>(args, run, at);
    if (kIsWhole || at[kRank - 1] + kVector <= (Index)(&args.extent0)[kRank - 1]) {
      program<kVector>(args, at);
    } else {
      for (; at[kRank - 1] < (Index)(&args.extent0)[kRank - 1]; ++at[kRank - 1])
        program<1>(args, at);
    }
  }
}

// Scalar variant for unaligned pointers.
extern "C" __global__ void __launch_bounds__(kThreads)
    pointwise_elements(const __grid_constant__ Args args) {
  const Index run = (Index)blockIdx.x * kThreads + threadIdx.x;
  if (run >= (Index)args.elements) return;
  Index at[kRank];
  locate<1>(args, run, at);
  program<1>(args, at);
}

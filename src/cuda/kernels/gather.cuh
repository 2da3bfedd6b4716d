// Gather: one thread copies kRuns vectors of kVector elements along the last axis of y. A vector
// has one index. All indices of a thread are loaded before its elements, and these before any
// result is stored. Behind generic/selection.cuh.
#include "lib/divide.cuh"
#include "lib/elements.cuh"
#include "lib/pointwise.cuh"
#include "lib/rows.cuh"

// Coordinates of vector `run`: the last axis is split into `per_row` vectors of kCount elements.
template <int kCount>
__device__ inline void locate(const Args& args, Index run, Index (&at)[kRank]) {
  const int64* extent = &args.extent0;
  const int64* magic = &args.magic0;
  const Index per_row = kCount == 1 ? (Index)extent[kRank - 1] : (Index)args.per_row;
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
// The position that y[at] reads along the axis; -1: outside.
__device__ inline Index find(const Args& args, const Index (&at)[kRank]) {
  Index where[kRankIndex];
  index_place(at, where);
  int64 position = load_index(args, where);
  if (kClamp && position >= args.extent) position = args.extent - 1;
  if (kClamp && position < 0 && args.extent > 0) position = 0;
  return position >= 0 && position < args.extent ? (Index)position : (Index)-1;
}
template <int kCount>
__device__ inline void read(const Args& args, const Index (&at)[kRank], Index position,
                            R (&values)[kCount]) {
  Index from[kRankX];
  whole_place(at, position, from);
  load_x<kCount>(args, from, values);
}
template <int kCount>
__device__ inline void clear(R (&values)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) values[i] = 0;
}
__device__ inline void copy_element(const Args& args, const Index (&at)[kRank], Index position) {
  R value[1] = {0};
  if (position >= 0) read<1>(args, at, position, value);
  epilogue<1>(args, at, value);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    gather(const __grid_constant__ Args args) {
  // The vectors of a thread are kThreads apart: every warp access is coalesced.
  const Index first = (Index)blockIdx.x * (kThreads * kRuns) + threadIdx.x;
  Index at[kRuns][kRank], position[kRuns];
  R values[kRuns][kVector];
#pragma unroll
  for (int r = 0; r < kRuns; ++r) {
    const Index run = first + r * kThreads;
    position[r] = -1;
    if (run >= (Index)args.runs) continue;
    locate<kVector>(args, run, at[r]);
    position[r] = find(args, at[r]);
  }
#pragma unroll
  for (int r = 0; r < kRuns; ++r) {
    clear(values[r]);
    if (position[r] < 0) continue;
    if (kIsWhole || at[r][kRank - 1] + kVector <= (Index)(&args.extent0)[kRank - 1])
      read<kVector>(args, at[r], position[r], values[r]);
  }
#pragma unroll
  for (int r = 0; r < kRuns; ++r) {
    if (first + r * kThreads >= (Index)args.runs) return;
    if (kIsWhole || at[r][kRank - 1] + kVector <= (Index)(&args.extent0)[kRank - 1]) {
      epilogue<kVector>(args, at[r], values[r]);
    } else {
      for (; at[r][kRank - 1] < (Index)(&args.extent0)[kRank - 1]; ++at[r][kRank - 1])
        copy_element(args, at[r], position[r]);
    }
  }
}

// Scalar variant for unaligned pointers.
extern "C" __global__ void __launch_bounds__(kThreads)
    gather_elements(const __grid_constant__ Args args) {
  const Index run = (Index)blockIdx.x * kThreads + threadIdx.x;
  if (run >= (Index)args.elements) return;
  Index at[kRank];
  locate<1>(args, run, at);
  copy_element(args, at, find(args, at));
}

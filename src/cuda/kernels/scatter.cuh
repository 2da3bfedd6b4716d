// Scatter of slices: one thread per vector of kVector elements along the last axis of y follows the
// list of its slice (scatter_lists.cuh). Behind generic/selection.cuh and
// generic/scatter_combine.cuh.
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
// The elements of source at a position of the index.
template <int kCount>
__device__ inline void contribution(const Args& args, const Index (&at)[kRank], int position,
                                    R (&values)[kCount]) {
  Index where[kRankIndex], from[kRankSource];
#pragma unroll
  for (int axis = kRankIndex - 1; axis > 0; --axis) {
    where[axis] = position % (int)args.index_dims[axis];
    position /= (int)args.index_dims[axis];
  }
  where[0] = position;
  selection_place(at, where, from);
  load_source<kCount>(args, from, values);
}
template <int kCount>
__device__ inline void combine_at(const Args& args, const Index (&at)[kRank]) {
  R values[kCount];
  load_base<kCount>(args, at, values);
  const int* next = (const int*)args.next;
  int position = ((const int*)args.first)[at[kAxis]];
  if (kCombine == kSet) {
    int last = position;
    for (; position >= 0; position = next[position]) last = position;
    if (last >= 0) contribution<kCount>(args, at, last, values);
  } else {
    for (; position >= 0; position = next[position]) {
      R terms[kCount];
      contribution<kCount>(args, at, position, terms);
#pragma unroll
      for (int i = 0; i < kCount; ++i) values[i] = combined(values[i], terms[i]);
    }
  }
  epilogue<kCount>(args, at, values);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    scatter(const __grid_constant__ Args args) {
  const Index run = (Index)blockIdx.x * kThreads + threadIdx.x;
  if (run >= (Index)args.runs) return;
  Index at[kRank];
  locate<kVector>(args, run, at);
  if (kIsWhole || at[kRank - 1] + kVector <= (Index)(&args.extent0)[kRank - 1]) {
    combine_at<kVector>(args, at);
  } else {
    for (; at[kRank - 1] < (Index)(&args.extent0)[kRank - 1]; ++at[kRank - 1])
      combine_at<1>(args, at);
  }
}

// Scalar variant for unaligned pointers.
extern "C" __global__ void __launch_bounds__(kThreads)
    scatter_elements(const __grid_constant__ Args args) {
  const Index run = (Index)blockIdx.x * kThreads + threadIdx.x;
  if (run >= (Index)args.elements) return;
  Index at[kRank];
  locate<1>(args, run, at);
  combine_at<1>(args, at);
}

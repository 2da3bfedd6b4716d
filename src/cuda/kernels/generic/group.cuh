// Boxes of elements: the groups of a norm, the lines of a softmax, the channels of batch
// statistics. One CTA per box.
#include "lib/coordinates.cuh"
#include "lib/reduce.cuh"

// Coordinates of element `element` of box `index`. Not inlined: its divisions dominate compile
// time.
__device__ __noinline__ void locate(int64 element, const int64* box, const Index (&index)[kRank],
                                    Index (&at)[kRank]) {
  unflatten(element, box, at);
  for (int axis = 0; axis < kRank; ++axis) at[axis] += index[axis] * box[axis];
}

// Calls body(at) for the elements of x in box `index` of boxes with extents `box`; the threads of
// the CTA split the `size` elements.
template <class Body>
__device__ inline void for_each_in(const int64* box, int64 size, const Index (&index)[kRank],
                                   Body body) {
  for (int64 element = threadIdx.x; element < size; element += kThreads) {
    Index at[kRank];
    locate(element, box, index, at);
    body(at);
  }
}

__device__ __noinline__ R block_sum(R value) { return block_reduce<kThreads / kLanes, Sum>(value); }
__device__ __noinline__ R block_maximum(R value) {
  return block_reduce<kThreads / kLanes, Max>(value);
}

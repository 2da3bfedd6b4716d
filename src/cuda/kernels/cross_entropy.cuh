// Cross-entropy over rows of logits, one CTA per row; the logits are read once, in vectors. Threads
// keep a running maximum and sum (online softmax); all reductions have a fixed order.
// The engine prints before it: R, Index, Args; kRank, kThreads, kUnroll, kMean, kSmooths;
// logits_of, target_of; forward: kHasStats, store_loss, store_stats; backward: stats_of, dloss_of,
// store_dx.
#include "lib/coordinates.cuh"
#include "lib/elements.cuh"
#include "lib/exponential.cuh"
#include "lib/philox.cuh"
#include "lib/pointwise.cuh"
#include "lib/reduce.cuh"
#include "lib/rows.cuh"

static const int kWarps = kThreads / kLanes;

__device__ inline R lowest() { return Larger::identity<R>(); }
__device__ inline R not_a_number() { return lowest() - lowest(); }

// Coordinates of the first class of a row.
__device__ inline void place(const Args& args, int64 row, Index (&at)[kRank]) {
  at[kRank - 1] = 0;
#pragma unroll
  for (int axis = kRank - 2; axis >= 0; --axis) {
    at[axis] = (Index)(row % args.lines[axis]);
    row /= args.lines[axis];
  }
}

__device__ inline bool is_class(const Args& args, int64 target) {
  return target >= 0 && target < args.classes;
}

// Rows that are not ignored.
__device__ inline int64 counted_rows(const Args& args) {
  int64 count = 0;
  for (int64 row = threadIdx.x; row < args.rows; row += kThreads) {
    Index at[kRank];
    place(args, row, at);
    if (target_of(args, at) != args.ignore_index) ++count;
  }
  return block_reduce<kWarps, Sum>(count);
}

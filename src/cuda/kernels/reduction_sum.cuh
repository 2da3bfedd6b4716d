// Adapter for tail_reduce.cuh, which folds the slices of every cell: describes the partials of
// reduction.cuh. The engine prints before it: what reduction_modes.cuh needs, and kCellsAcross.
#include "lib/divide.cuh"
#include "lib/tail_folds.cuh"

static const int kTails = kFolds;

template <int kTail>
struct Tail : FoldAt<kTail> {
  enum { kNumber = kTail, kAcross = kCellsAcross };
  __device__ static int64 parts(const Args& args) { return args.slices; }
  __device__ static int64 elements(const Args& args) { return args.cells; }
  __device__ static const R* partials(const Args& args) {
    return (const R*)args.partial + kTail * args.slices * args.cells;
  }
  __device__ static void finish(const Args& args, int64 cell, R folded) {
    Index at[kKept];
    locate_cell(args, (Index)cell, at);
    R values[1] = {FoldAt<kTail>::result(args, folded)};
    store<kTail, 1>(args, at, values);
  }
};

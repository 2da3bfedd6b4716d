// Lists of the positions of an index that select the same slice, in ascending order: first[slice],
// next[position], -1 at the end.
#include "lib/elements.cuh"
#include "lib/integers.cuh"
#include "lib/rows.cuh"

// slice[position], -1 outside; clears first.
extern "C" __global__ void __launch_bounds__(kThreads)
    scatter_slices(const __grid_constant__ Args args) {
  const int64 n = (int64)blockIdx.x * kThreads + threadIdx.x;
  if (n < args.slices) ((int*)args.first)[n] = -1;
  if (n >= args.count) return;
  Index where[kRankIndex];
  int64 rest = n;
#pragma unroll
  for (int axis = kRankIndex - 1; axis > 0; --axis) {
    where[axis] = rest % args.index_dims[axis];
    rest /= args.index_dims[axis];
  }
  where[0] = rest;
  const int64 slice = load_index(args, where);
  ((int*)args.slice)[n] = slice >= 0 && slice < args.slices ? (int)slice : -1;
}

// One thread per position looks for its neighbours in the list: no atomics, so that the order is
// fixed. Long lists are found quickly; a slice of its own costs a pass over the index.
extern "C" __global__ void __launch_bounds__(kThreads)
    scatter_link(const __grid_constant__ Args args) {
  const int64 n = (int64)blockIdx.x * kThreads + threadIdx.x;
  if (n >= args.count) return;
  const int* slice = (const int*)args.slice;
  const int own = slice[n];
  int64 next = own < 0 ? args.count : n + 1, before = own < 0 ? 0 : n - 1;
  while (next < args.count && slice[next] != own) ++next;
  ((int*)args.next)[n] = next < args.count ? (int)next : -1;
  while (before >= 0 && slice[before] != own) --before;
  if (own >= 0 && before < 0) ((int*)args.first)[own] = (int)n;
}

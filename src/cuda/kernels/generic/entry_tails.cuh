// Entry point of the generic engine for GEMMs and convolutions with tails (reductions fused behind
// the epilogue); replaces generic/entry.cuh. A thread, or a CTA where everything reduces to one
// value, computes every args.parts-th of the elements that reduce to one result, and stores one
// partial. The head defines kTails, Tail<number> (folds, with partials(args) and kIsHere: this
// launch computes it) and SlotTails, which folds into tail_slots[number][thread]. args.kept and
// args.reduced are the extents of the results and of the reduced elements of each.
#include "lib/coordinates.cuh"
#include "lib/elements.cuh"
#include "lib/philox.cuh"
#include "lib/pointwise.cuh"
#include "lib/rows.cuh"
#include "lib/tail_folds.cuh"

extern "C" __global__ void __launch_bounds__(kThreads) generic(const __grid_constant__ Args args) {
  const bool is_team = args.team != 0;
  const int64 first = is_team ? blockIdx.x : (int64)blockIdx.x * kThreads + threadIdx.x;
  const int64 step = is_team ? gridDim.x : (int64)gridDim.x * kThreads;
  const int64 shares = is_team ? kThreads : 1, share = is_team ? threadIdx.x : 0;
  for (int64 n = first; n < args.units; n += step) {
    const int64 element = n % args.elements, part = n / args.elements;
    for_each_tail<kTails>(
        [&](auto tail) { tail_slots[tail.kNumber][threadIdx.x] = tail.identity(); });
    int64 kept[kTailRank];
    unflatten(element, args.kept, kept);
    for (int64 t = part * shares + share; t < args.terms; t += args.parts * shares) {
      int64 at[kTailRank];
      unflatten(t, args.reduced, at);
#pragma unroll
      for (int axis = 0; axis < kTailRank; ++axis) at[axis] += kept[axis];
      unit(args, flatten(args.all, at));
    }
    if (is_team) __syncthreads();
    if (share == 0)
      for_each_tail<kTails>([&](auto tail) {
        if (!tail.kIsHere) return;
        float whole = tail_slots[tail.kNumber][threadIdx.x];
        for (int other = 1; other < (int)shares; ++other)
          whole = tail.apply(whole, tail_slots[tail.kNumber][other]);
        tail.partials(args)[n] = whole;
      });
    if (is_team) __syncthreads();
  }
}

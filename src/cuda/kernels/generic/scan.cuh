// Scans along one axis, one CTA per line: tiles of one element per thread, scanned by warp shuffles
// and combined through shared memory, behind the carry of the tiles before.
#include "lib/coordinates.cuh"
#include "lib/reduce.cuh"

enum Mode { kAdd, kMul, kMin, kMax, kLogSumExp };

// The fold of some elements; of logsumexp the sum of exp(x - shift), shift the largest element.
struct Part {
  R fold, shift;
};
__device__ inline Part nothing() {
  const R lowest = -(R)infinity();
  return {kMode == kMul ? (R)1 : kMode == kMin ? (R)infinity() : kMode == kMax ? lowest : (R)0,
          lowest};
}
__device__ inline Part part_of(R x) { return {kMode == kLogSumExp ? (R)1 : x, x}; }
__device__ inline bool is_finite(R x) { return fabs(x) < (R)infinity(); }
__device__ inline Part joined(const Part& a, const Part& b) {
  switch (kMode) {
    case kMul: return {a.fold * b.fold, 0};
    case kMin: return {Min::apply(a.fold, b.fold), 0};
    case kMax: return {Max::apply(a.fold, b.fold), 0};
    case kLogSumExp: {
      const R shift = Max::apply(a.shift, b.shift), by = is_finite(shift) ? shift : (R)0;
      return {a.fold * exp(a.shift - by) + b.fold * exp(b.shift - by), shift};
    }
    default: return {a.fold + b.fold, 0};
  }
}
__device__ inline R result_of(const Part& part) {
  if (kMode != kLogSumExp) return part.fold;
  return is_finite(part.shift) ? part.shift + log(part.fold) : part.shift;
}

__device__ inline Part lane_part(const Part& part, int lane) {
  return {__shfl_sync(kAllLanes, part.fold, lane), __shfl_sync(kAllLanes, part.shift, lane)};
}

// The fold of the elements of all threads up to this one; `before`: without its own; `all`: of the
// whole tile.
__device__ __noinline__ Part tile_scan(Part part, Part& before, Part& all) {
  __shared__ Part warps[kThreads / kLanes];
  const int lane = threadIdx.x % kLanes, warp = threadIdx.x / kLanes;
  for (int distance = 1; distance < kLanes; distance *= 2) {
    const Part lower = lane_part(part, max(lane - distance, 0));
    if (lane >= distance) part = joined(lower, part);
  }
  before = lane_part(part, max(lane - 1, 0));
  if (lane == 0) before = nothing();
  if (lane == kLanes - 1) warps[warp] = part;
  __syncthreads();
  Part lower = nothing();
  for (int other = 0; other < warp; ++other) lower = joined(lower, warps[other]);
  all = lower;
  for (int other = warp; other < kThreads / kLanes; ++other) all = joined(all, warps[other]);
  __syncthreads();
  before = joined(lower, before);
  return joined(lower, part);
}

__device__ inline void unit(const Args& args, int64 n) {
  Index at[kRank_x];
  unflatten(n, args.lines, at);
  Part carry = nothing();
  double sum = 0;  // the carry of sums
  for (int64 first = 0; first < args.length; first += kThreads) {
    const int64 i = first + threadIdx.x;
    const bool inside = i < args.length;
    at[kAxis] = kReverse ? args.length - 1 - i : i;
    Part part = nothing(), before, all;
    if (inside) part = part_of(in_x(args, at));
    part = tile_scan(part, before, all);
    if (kExclusive) part = before;
    const R result =
        kMode == kAdd ? (R)(sum + (double)part.fold) : result_of(joined(carry, part));
    if (inside) put_y(args, at, result);
    carry = joined(carry, all);
    sum += (double)all.fold;
  }
}

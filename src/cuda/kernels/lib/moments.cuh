// Partial sums and Welford moments that threads accumulate and merge in a fixed order.
#pragma once

#include "lib/ptx_math.cuh"
#include "lib/reduce.cuh"

// Count, mean, and sum of squared deviations from the mean. Merging (Chan, Golub, LeVeque) never
// subtracts two large values.
template <class R> struct Moments {
  R count, mean, squares;
};
// Weight of the new values when `part` values join `before` others; 1 where these are the first.
__device__ inline float share_of(float part, float before) {
  return before == 0.f ? 1.f : part * reciprocal_approx(part + before);
}
__device__ inline double share_of(double part, double before) { return part / (part + before); }
// Moves a mean towards another one. The mean of values with an infinity is that infinity.
template <class R>
__device__ inline R moved(R mean, R other, R share) {
  const bool is_finite = mean - mean == (R)0;
  return is_finite ? mean + (other - mean) * share : mean + other;
}
template <class R>
__device__ inline void merge(Moments<R>& into, const Moments<R>& other) {
  const R count = into.count + other.count;
  if (other.count == (R)0) return;
  const R share = share_of(other.count, into.count), distance = other.mean - into.mean;
  into.mean = moved(into.mean, other.mean, share);
  into.squares += other.squares + distance * distance * (into.count * share);
  into.count = count;
}
template <class R>
__device__ inline Moments<R> of_lane(const Moments<R>& value, int lane) {
  return {__shfl_sync(kAllLanes, value.count, lane), __shfl_sync(kAllLanes, value.mean, lane),
          __shfl_sync(kAllLanes, value.squares, lane)};
}

// Merges the mean and squares of the first `valid` of kPackets packets into the moments of their
// cells.
template <int kPackets, int kCount, int kWide, class R>
__device__ inline void add_packets(const R (&x)[kPackets][kCount], Moments<R> (&moments)[kWide],
                                   int valid = kPackets) {
  constexpr int kPerCell = kCount / kWide;  // elements per packet and cell
  const R added = (R)(valid * kPerCell), before = moments[0].count;
  const R share = share_of(added, before), per_element = (R)1 / added;
#pragma unroll
  for (int k = 0; k < kWide; ++k) {
    R sums[kPerCell];
#pragma unroll
    for (int v = 0; v < kPerCell; ++v) {
      sums[v] = x[0][k + v];
#pragma unroll
      for (int p = 1; p < kPackets; ++p) sums[v] += p < valid ? x[p][k + v] : (R)0;
    }
#pragma unroll
    for (int half = kPerCell / 2; half > 0; half /= 2)
#pragma unroll
      for (int v = 0; v < half; ++v) sums[v] += sums[v + half];
    const R mean = sums[0] * per_element, distance = mean - moments[k].mean;
#pragma unroll
    for (int v = 0; v < kPerCell; ++v) {
      sums[v] = 0;
#pragma unroll
      for (int p = 0; p < kPackets; ++p) {
        const R from_mean = p < valid ? x[p][k + v] - mean : (R)0;
        sums[v] += from_mean * from_mean;
      }
    }
#pragma unroll
    for (int half = kPerCell / 2; half > 0; half /= 2)
#pragma unroll
      for (int v = 0; v < half; ++v) sums[v] += sums[v + half];
    moments[k].mean = moved(moments[k].mean, mean, share);
    moments[k].squares += sums[0] + distance * distance * (before * share);
    moments[k].count = before + added;
  }
}

// Two sums.
template <class R> struct Pair {
  R first, second;
};
template <class R>
__device__ inline void merge(Pair<R>& into, const Pair<R>& other) {
  into.first += other.first;
  into.second += other.second;
}
template <class R>
__device__ inline Pair<R> of_lane(const Pair<R>& value, int lane) {
  return {__shfl_sync(kAllLanes, value.first, lane), __shfl_sync(kAllLanes, value.second, lane)};
}

// Over the lanes of a warp; every lane gets the same bits.
template <class T>
__device__ inline T merge_warp(T value) {
  const int lane = threadIdx.x % kLanes;
#pragma unroll
  for (int distance = kLanes / 2; distance > 0; distance /= 2)
    merge(value, of_lane(value, (lane + distance) % kLanes));
  return of_lane(value, 0);
}

// Over teams of kTeam threads of a CTA of kThreads, all of whose threads call it.
template <int kThreads, int kTeam, class T>
__device__ inline T merge_team(T value) {
  value = merge_warp(value);
  if constexpr (kTeam > kLanes) {
    __shared__ T slots[kThreads / kLanes];
    const int warp = threadIdx.x / kLanes, first = threadIdx.x / kTeam * (kTeam / kLanes);
    if (threadIdx.x % kLanes == 0) slots[warp] = value;
    __syncthreads();
    value = slots[first];
    for (int i = 1; i < kTeam / kLanes; ++i) merge(value, slots[first + i]);
    __syncthreads();
  }
  return value;
}

// Merges kWide values per thread over the rows of a CTA, thread = row * lanes + lane; row 0 gets
// the result. kAtOnce values per step: shared memory holds kAtOnce values of every thread.
template <int kThreads, int kAtOnce, int kWide, class T>
__device__ inline void merge_rows_of(T (&values)[kWide], int lanes) {
  static_assert(kWide % kAtOnce == 0, "all steps are the same");
  __shared__ T slots[kAtOnce][kThreads];
  const int thread = threadIdx.x, rows = kThreads / lanes, row = thread / lanes;
  int most = 1;
  while (most * 2 < rows) most *= 2;
#pragma unroll
  for (int first = 0; first < kWide; first += kAtOnce)
    for (int half = most; half > 0; half /= 2) {
      if (row >= half && row < rows && row < 2 * half) {
#pragma unroll
        for (int k = 0; k < kAtOnce; ++k) slots[k][thread] = values[first + k];
      }
      __syncthreads();
      if (row + half < rows && row < half) {
#pragma unroll
        for (int k = 0; k < kAtOnce; ++k)
          merge(values[first + k], slots[k][thread + half * lanes]);
      }
      __syncthreads();
    }
}
template <int kThreads, int kWide, class T>
__device__ inline void merge_rows(T (&values)[kWide], int lanes) {
  merge_rows_of<kThreads, kWide>(values, lanes);
}

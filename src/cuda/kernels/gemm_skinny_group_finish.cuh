// The end of a unit of a product with few rows by warpgroups (gemm_skinny_group.cuh): sums of
// warps, and of the blocks of a cluster, become results.
//
// A block of a cluster makes the results of its share of the rows. Each warp sends its sums to the
// blocks that need them, where every summand of a result has a place of its own; a block adds them,
// in the order of blocks and warps. A cluster has one unit, so no place is used twice.
//
// Sums of other blocks lie where stages were, if they have one unit. Else they lie apart, 8 rows of
// x at a time in two places in turn: whoever comes to a place again has met the others at the other
// place meanwhile.
#pragma once

#include "lib/ptx_barrier.cuh"

static const int kShare = kRows / kClusterBlocks;  // rows of a block's results
// Of sums of a row of x: the rows of eight lanes, of each of four pairs of rows of x, are in 32
// different banks.
static const int kSharePitch = (kShare + 15) / 16 * 16 + 4;
static const int kSummands = kClusterBlocks * kWarpsK;
static const int kSummandFloats = kFewAtOnce * kSharePitch;
static const int kSumPlaces = kClusterBlocks == 1 && kSumsApart ? 2 : 1;
static const int kSumBytes = kSumPlaces * kSummands * kSummandFloats * 4;
static const int kRingBytes = kStages * kStageBytes;
static const int kAllBytes = kSumsApart               ? kRingBytes + kSumBytes
                             : kRingBytes > kSumBytes ? kRingBytes
                                                      : kSumBytes;  // then barriers

// Rows of x from `first` on, of which there are sums of all summands at `sums`.
__device__ inline void store_share(const Args& args, const Place& place, int first,
                                   const float* sums) {
  constexpr int kAcross = kShare / kVectorY;
  const Index first_row = place.first_row + blockIdx.x % kClusterBlocks * kShare;
#pragma unroll 1
  for (int i = threadIdx.x; i < kAcross * kFewAtOnce; i += kThreads) {
    const int m = i / kAcross, row = i % kAcross * kVectorY;
    R values[kVectorY];
    add_summands<kSummands>(sums + m * kSharePitch + row, kSummandFloats, values);
    if (kFew % kFewAtOnce == 0 || first + m < kFew)
      store_results(args, place, first + m, first_row + row, values);
  }
}

__device__ inline void finish_in_cluster(const Args& args, const Place& place,
                                         const GroupSums& products, float* memory, int warp) {
  const int rank = blockIdx.x % kClusterBlocks;
  float* const own = memory + (rank * kWarpsK + warp / kWarpsN) * kSummandFloats;
  wait_for_cluster();
  if (has_rows(warp))
    products.visit([&](int row, int m, float sum) {
      const int r = warp % kWarpsN * kWarpRows + row;
      store_to_block(own + m * kSharePitch + r % kShare, r / kShare, sum);
    });
  cluster_barrier();
  store_share(args, place, 0, memory);
}

__device__ inline void finish_in_block(const Args& args, const Place& place,
                                       const GroupSums& products, float* memory, int& round,
                                       int warp) {
  if constexpr (!kSumsApart) group_barrier<kThreads>(0);  // all warps have read the last stages
#pragma unroll 1
  for (int first = 0; first < kFew; first += kFewAtOnce, ++round) {
    float* const sums = memory + round % kSumPlaces * (kSummands * kSummandFloats);
    float* const own = sums + warp / kWarpsN * kSummandFloats + warp % kWarpsN * kWarpRows;
    if (has_rows(warp))
      products.visit([&](int row, int m, float sum) {
        if (kFewAtOnce == kFew || (unsigned)(m - first) < (unsigned)kFewAtOnce)
          own[(m - first) * kSharePitch + row] = sum;
      });
    group_barrier<kThreads>(0);
    store_share(args, place, first, sums);
  }
}

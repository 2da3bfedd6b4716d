// The end of a unit of a product with few rows by warpgroups (gemm_skinny_warpgroup.cuh): sums of
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
static const int kPartials = kClusterBlocks * kWarpsK;
static const int kPartialFloats = kRowsPerPass * kSharePitch;
static const int kReductionBuffers = kClusterBlocks == 1 && kOwnReductionSmem ? 2 : 1;
static const int kReductionBytes = kReductionBuffers * kPartials * kPartialFloats * 4;
static const int kPipelineBytes = kStages * kStageBytes;
static const int kAllBytes = kOwnReductionSmem               ? kPipelineBytes + kReductionBytes
                             : kPipelineBytes > kReductionBytes ? kPipelineBytes
                                                      : kReductionBytes;  // then barriers

// Rows of x from `first` on, of which there are sums of all summands at `sums`.
__device__ inline void store_share(const Args& args, const Coord& coord, int first,
                                   const float* acc) {
  constexpr int kAcross = kShare / kVectorY;
  const Index first_row = coord.first_row + blockIdx.x % kClusterBlocks * kShare;
#pragma unroll 1
  for (int i = threadIdx.x; i < kAcross * kRowsPerPass; i += kThreads) {
    const int m = i / kAcross, row = i % kAcross * kVectorY;
    R values[kVectorY];
    add_partials<kPartials>(acc + m * kSharePitch + row, kPartialFloats, values);
    if (kM % kRowsPerPass == 0 || first + m < kM)
      store_results(args, coord, first + m, first_row + row, values);
  }
}

__device__ inline void reduce_in_cluster(const Args& args, const Coord& coord,
                                         const WarpgroupAccumulators& accumulators, float* memory, int warp) {
  const int rank = blockIdx.x % kClusterBlocks;
  float* const own = memory + (rank * kWarpsK + warp / kWarpsN) * kPartialFloats;
  cluster_wait();
  if (has_rows(warp))
    accumulators.visit([&](int row, int m, float sum) {
      const int r = warp % kWarpsN * kWarpRows + row;
      store_dsmem(own + m * kSharePitch + r % kShare, r / kShare, sum);
    });
  cluster_sync();
  store_share(args, coord, 0, memory);
}

__device__ inline void reduce_in_cta(const Args& args, const Coord& coord,
                                       const WarpgroupAccumulators& accumulators, float* memory, int& round,
                                       int warp) {
  if constexpr (!kOwnReductionSmem) group_barrier<kThreads>(0);  // all warps have read the last stages
#pragma unroll 1
  for (int first = 0; first < kM; first += kRowsPerPass, ++round) {
    float* const acc = memory + round % kReductionBuffers * (kPartials * kPartialFloats);
    float* const own = acc + warp / kWarpsN * kPartialFloats + warp % kWarpsN * kWarpRows;
    if (has_rows(warp))
      accumulators.visit([&](int row, int m, float sum) {
        if (kRowsPerPass == kM || (unsigned)(m - first) < (unsigned)kRowsPerPass)
          own[(m - first) * kSharePitch + row] = sum;
      });
    group_barrier<kThreads>(0);
    store_share(args, coord, first, acc);
  }
}

// Epilogue of the skinny GEMM on warpgroups (gemm_skinny_warpgroup.cuh): reduces accumulators over
// warps and over the CTAs of a cluster, and stores results.
//
// In a cluster, each CTA computes the results of its share of the rows. Each warp writes its
// accumulators through DSMEM to the CTAs that own the rows, into a slot per partial; a CTA adds the
// partials in the order of CTAs and warps. A cluster has a single unit, so no slot is reused.
//
// Without a cluster, partials alias the stages if the CTA has a single unit. Else they have shared
// memory of their own, for 8 rows of x at a time in two alternating buffers: a thread that returns
// to a buffer has passed the barrier of the other buffer meanwhile.
#pragma once

#include "lib/ptx_barrier.cuh"

static const int kShare = kRows / kClusterBlocks;  // rows that a CTA stores
// Pitch of the partials of a row of x: eight rows of weights in each of four rows of x fall into 32
// different banks.
static const int kSharePitch = (kShare + 15) / 16 * 16 + 4;
static const int kPartials = kClusterBlocks * kWarpsK;
static const int kPartialFloats = kRowsPerPass * kSharePitch;
static const int kReductionBuffers = kClusterBlocks == 1 && kOwnReductionSmem ? 2 : 1;
static const int kReductionBytes = kReductionBuffers * kPartials * kPartialFloats * 4;
static const int kPipelineBytes = kStages * kStageBytes;
static const int kAllBytes = kOwnReductionSmem               ? kPipelineBytes + kReductionBytes
                             : kPipelineBytes > kReductionBytes ? kPipelineBytes
                                                      : kReductionBytes;  // barriers follow

// Adds the partials of kRowsPerPass rows of x from `first` on and stores this CTA's share.
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
                                         const WarpgroupAccumulators& accumulators, float* memory,
                                         int warp) {
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
                                     const WarpgroupAccumulators& accumulators, float* memory,
                                     int& round, int warp) {
  if constexpr (!kOwnReductionSmem) group_barrier<kThreads>(0);  // partials alias the stages
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

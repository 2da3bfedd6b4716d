// Skinny GEMM on warpgroups: pre-pass launch that repacks x (gemm_skinny_repack.cuh) once for all
// CTAs.
#pragma once

#include "lib/ptx_grid_dependency.cuh"

// Reads this lane's part of 8 rows from `first` on, in the block of K that starts at `k`.
__device__ inline void read_x(const Args& args, const RepackLane& lane, int first, int k,
                              uint4 (&pairs)[4]) {
  const int m = first + lane.row;
#pragma unroll
  for (int t = 0; t < 4; ++t) {
    const int at = k + lane.k_of(t);
    const bool inside = m < kM && at < (int)args.k;
    const uint16* const from = (const uint16*)args.x + (int64)m * args.x_row_stride + at;
    pairs[t] = inside ? permute_like_weights(*(const uint4*)from) : make_uint4(0u, 0u, 0u, 0u);
  }
}

// By a whole warp: copies a repacked block from shared to global memory.
template <int kBytes>
__device__ inline void copy_out(uint8* to, const uint8* from) {
#pragma unroll
  for (int at = threadIdx.x % 32 * 16; at < kBytes; at += 32 * 16)
    *(uint4*)(to + at) = *(const uint4*)(from + at);
}

extern "C" __global__ void __launch_bounds__(kRepackWarps * 32)
    gemm_skinny_repack(const __grid_constant__ Args args) {
  launch_dependent_grids();
  wait_on_dependent_grids();
  const int warp = threadIdx.x / 32, number = blockIdx.x * kRepackWarps + warp;
  const int chunk = number / kBlocksX, tile = number % kBlocksX / kBlocksAlong;
  const int along = number % kBlocksAlong;
  if (chunk >= (int)args.rounds) return;
  uint8* const own = shared_memory() + warp * kBlockBytes;
  const RepackLane lane;
  uint4 pairs[4];
  read_x(args, lane, tile * 8, chunk * kChunkK + along * 128, pairs);
  lane.write(own, pairs);
  __syncwarp();
  uint8* const packed_x = (uint8*)args.packed_x + (int64)chunk * kPackedXBytes;
  copy_out<kBlockBytes>(packed_x + tile * kPitchX + along * kBlockBytes, own);
}

// Products with few rows by warpgroups: the launch before the one that multiplies, which makes the
// image of x (gemm_skinny_order.cuh) once for all blocks.
#pragma once

#include "lib/ptx_launch.cuh"

// Depths from `depth` on of 8 rows from `first` on.
__device__ inline void read_x(const Args& args, const OrderLane& lane, int first, int depth,
                              uint4 (&pairs)[4]) {
  const int m = first + lane.row;
#pragma unroll
  for (int t = 0; t < 4; ++t) {
    const int at = depth + lane.depth_of(t);
    const bool inside = m < kFew && at < (int)args.depth;
    const uint16* const from = (const uint16*)args.x + (int64)m * args.x_row_stride + at;
    pairs[t] = inside ? in_order_of_weights(*(const uint4*)from) : make_uint4(0u, 0u, 0u, 0u);
  }
}

// By a warp.
template <int kBytes>
__device__ inline void copy_out(uint8* to, const uint8* from) {
#pragma unroll
  for (int at = threadIdx.x % 32 * 16; at < kBytes; at += 32 * 16)
    *(uint4*)(to + at) = *(const uint4*)(from + at);
}

extern "C" __global__ void __launch_bounds__(kOrderWarps * 32)
    gemm_skinny_order(const __grid_constant__ Args args) {
  let_next_launch_start();
  wait_for_launch_before();
  const int warp = threadIdx.x / 32, number = blockIdx.x * kOrderWarps + warp;
  const int chunk = number / kBlocksX, tile = number % kBlocksX / kBlocksAlong;
  const int along = number % kBlocksAlong;
  if (chunk >= (int)args.rounds) return;
  uint8* const own = shared_memory() + warp * kBlockBytes;
  const OrderLane lane;
  uint4 pairs[4];
  read_x(args, lane, tile * 8, chunk * kChunkDepth + along * 128, pairs);
  lane.write(own, pairs);
  __syncwarp();
  uint8* const image = (uint8*)args.image + (int64)chunk * kImageBytes;
  copy_out<kBlockBytes>(image + tile * kPitchX + along * kBlockBytes, own);
}

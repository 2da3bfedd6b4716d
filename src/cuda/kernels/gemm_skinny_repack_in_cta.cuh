// Skinny GEMM on warpgroups: repack warps that repack x of each stage in place
// (gemm_skinny_repack.cuh). TMA loads boxes of 64 k of 8 rows, swizzled over 128 bytes.
#pragma once

#include "lib/ptx_tma.cuh"

static const int kBoxBytes = 8 * 128;
// Blocks per iteration: two, so that the latency of one hides behind the other.
static const int kBlocksTogether = kBlocksX > kRepackWarps ? 2 : 1;

// By a whole warp: issues the TMA loads of x of a chunk, which complete on `x_full`.
template <class SomeArgs>  // with the member map_x
__device__ inline void load_packed_x(const SomeArgs& args, int chunk, uint8* to, Mbarrier*,
                                     Mbarrier* x_full) {
  if (threadIdx.x % 32 == 0) {
    arrive_and_expect_tx(x_full, kPackedXBytes);
#pragma unroll
    for (int j = 0; j < kPackedXTiles; ++j) {
      const int at[3] = {0, 8 * j, chunk * (kChunkK / 64)};
      load_box(to + j * kPitchX, args.map_x, x_full, at);
    }
  }
  __syncwarp();
}

__device__ inline void read_boxes(const RepackLane& lane, const uint8* block, uint4 (&pairs)[4]) {
#pragma unroll
  for (int t = 0; t < 4; ++t) {
    const int piece = lane.k_of(t) / 8;  // 16 bytes of a row
    pairs[t] = permute_like_weights(*(const uint4*)(block + piece / 8 * kBoxBytes + lane.row * 128 +
                                                   (piece % 8 ^ lane.row) * 16));
  }
}

// Repacks this warp's blocks of a stage, from `first_block` on.
__device__ inline void repack(const RepackLane& lane, int first_block, uint8* packed_x) {
  static_assert(kPitchX == kBlocksAlong * kBlockBytes);
#pragma unroll 1
  for (int first = first_block; first < kBlocksX; first += kRepackWarps * kBlocksTogether) {
    uint4 pairs[kBlocksTogether][4];
    const auto number = [&](int n) { return first + n * kRepackWarps; };
    const auto inside = [&](int n) { return n == 0 || number(n) < kBlocksX; };
    const auto block = [&](int n) { return packed_x + number(n) * kBlockBytes; };
#pragma unroll
    for (int n = 0; n < kBlocksTogether; ++n)
      if (inside(n)) read_boxes(lane, block(n), pairs[n]);
    __syncwarp();
#pragma unroll
    for (int n = 0; n < kBlocksTogether; ++n)
      if (inside(n)) lane.write(block(n), pairs[n]);
  }
}
typedef RepackLane StageLane;

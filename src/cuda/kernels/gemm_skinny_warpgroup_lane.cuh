// Products with few rows by warpgroups (gemm_skinny_warpgroup.cuh): which weights, scales and sums a
// lane has.
#pragma once

#include "lib/narrow_to_half2.cuh"

static const int kHalf = kColumns / 2;  // sums of a lane, of 64 rows
static const int kOwnSteps = kSteps / kWarpsK;
static const int kAllPieces = kTiles * kOwnSteps;  // of a chunk, an even number

// Which of 8 rows lanes g have: eight lanes side by side, of two rows, then meet in no bank.
__device__ inline int row_of_lane(int g) {
  if constexpr (kPieces == 1) return (g & 2) | (g & 1) << 2 | g >> 2;
  if constexpr (kPieces == 2) return (g & 4) | (g & 1) << 1 | (g >> 1 & 1);
  return g;
}

// Blocks may have fewer rows than their warps have room for, so that all multiprocessors have as
// many: other warps multiply the first rows once more, as a warpgroup multiplies 64, for nobody.
__device__ inline bool has_rows(int warp) { return warp % kWarpsN * kWarpRows < kRows; }

struct WarpgroupAccumulators {
  // sums[i]: of rows 16 i + r and 16 i + 8 + r of the warp.
  float acc[kTiles][kHalf];
  SmallScaleRange scales;  // that they were multiplied by, where that matters

  __device__ WarpgroupAccumulators() {
#pragma unroll
    for (int i = 0; i < kTiles; ++i) fill(0.f, acc[i]);
  }
  template <class Use>
  __device__ void visit(const Use& use) const {
    const int lane = threadIdx.x % 32, r = row_of_lane(lane / 4), t = lane % 4;
#pragma unroll
    for (int i = 0; i < kTiles; ++i)
#pragma unroll
      for (int v = 0; v < kHalf; ++v) {
        const int m = v / 4 * 8 + 2 * t + v % 2;
        if (m < kM) use(16 * i + v / 2 % 2 * 8 + r, m, acc[i][v]);
      }
  }
};

// A scale as a number of type T, which it is exactly.
template <class D> __device__ inline uint16 as_operand(D d, typename D::Word scale) {
  return narrow(T(), widen(d, scale));
}
__device__ inline uint16 as_operand(T, uint16 scale) { return scale; }

// The lane's part of a chunk.
struct WarpgroupLane {
  const uint8* stage;
  int row, swizzled;  // of the block's rows; of its first step
  int step;           // the warpgroup's first; the others are kWarpsK further each

  __device__ WarpgroupLane(int warp) {
    const int lane = threadIdx.x % 32, r = row_of_lane(lane / 4);
    row = (has_rows(warp) ? warp % kWarpsN * kWarpRows : 0) + r;
    step = kWarpsK == 1 ? 0 : warp / kWarpsN;
    swizzled = (lane % 4 ^ (r * kPieces & 7) ^ step % 2 * 4 ^ step / 2) * 16;
  }
  // Of the warpgroup's step `number`: steps are the halves of pieces of 128 bytes.
  __device__ void packets(int number, int tile, Words (&low_high)[2]) const {
    const int piece = number * kWarpsK / 2, half = number * kWarpsK % 2;  // past the first step
    const uint8* const from = stage + (row + 16 * tile) * kChunk + (step / 2 + piece) * 128 +
                              (swizzled ^ (half * 4 ^ piece) * 16);
    low_high[0].piece = *(const Piece*)from;
    low_high[1].piece = *(const Piece*)(from + 8 * kChunk);
  }
  // Of that step: the scale of the lane's row, and 8 further the one of its other row.
  __device__ const typename S::Word* scales(int number, int tile) const {
    const int group = (number * kWarpsK + step) * kStepK / kScaleBlock;
    return (const typename S::Word*)(stage + kFirstScale + group * kGroupBytes) + row + 16 * tile;
  }
};

// Skinny GEMM on warpgroups (gemm_skinny_warpgroup.cuh): the mapping of weights, scales and
// accumulators to lanes.
#pragma once

#include "lib/narrow_to_half2.cuh"

static const int kHalf = kColumns / 2;  // accumulators of a lane per 64 rows
static const int kOwnSteps = kSteps / kWarpsK;
static const int kAllPieces = kTiles * kOwnSteps;  // of a chunk, an even number

// Permutes 8 rows over lanes g so that eight consecutive lanes, which read two rows, hit different
// banks.
__device__ inline int row_of_lane(int g) {
  if constexpr (kPieces == 1) return (g & 2) | (g & 1) << 2 | g >> 2;
  if constexpr (kPieces == 2) return (g & 4) | (g & 1) << 1 | (g >> 1 & 1);
  return g;
}

// A CTA may have fewer rows than its warps have room for, to balance SMs. Warps without rows
// multiply the first rows again, because wgmma takes 64 rows, and their results are dropped.
__device__ inline bool has_rows(int warp) { return warp % kWarpsN * kWarpRows < kRows; }

struct WarpgroupAccumulators {
  // acc[i]: rows 16 i + r and 16 i + 8 + r of the warp.
  float acc[kTiles][kHalf];
  SmallScaleRange scales;  // range of the scales applied, where the fast path limits it

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

// A scale converted to type T, which represents it exactly.
template <class D> __device__ inline uint16 as_operand(D d, typename D::Word scale) {
  return narrow(T(), widen(d, scale));
}
__device__ inline uint16 as_operand(T, uint16 scale) { return scale; }

// The lane's part of a chunk in a stage.
struct WarpgroupLane {
  const uint8* stage;
  int row, swizzled;  // row of the CTA; swizzled byte offset in the first step
  int step;           // first step of the warpgroup; the next ones are kWarpsK apart

  __device__ WarpgroupLane(int warp) {
    const int lane = threadIdx.x % 32, r = row_of_lane(lane / 4);
    row = (has_rows(warp) ? warp % kWarpsN * kWarpRows : 0) + r;
    step = kWarpsK == 1 ? 0 : warp / kWarpsN;
    swizzled = (lane % 4 ^ (r * kPieces & 7) ^ step % 2 * 4 ^ step / 2) * 16;
  }
  // Packets of step `number` of the warpgroup; two steps make a 128-byte piece.
  __device__ void packets(int number, int tile, Words (&low_high)[2]) const {
    const int piece = number * kWarpsK / 2, half = number * kWarpsK % 2;  // from the first step
    const uint8* const from = stage + (row + 16 * tile) * kChunk + (step / 2 + piece) * 128 +
                              (swizzled ^ (half * 4 ^ piece) * 16);
    low_high[0].piece = *(const Piece*)from;
    low_high[1].piece = *(const Piece*)(from + 8 * kChunk);
  }
  // Scales of that step: [0] of row `row`, [8] of row + 8.
  __device__ const typename S::Word* scales(int number, int tile) const {
    const int group = (number * kWarpsK + step) * kStepK / kScaleBlock;
    return (const typename S::Word*)(stage + kFirstScale + group * kGroupBytes) + row + 16 * tile;
  }
};

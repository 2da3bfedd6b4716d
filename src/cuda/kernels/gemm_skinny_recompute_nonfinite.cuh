// Skinny GEMM on warpgroups (gemm_skinny_warpgroup.cuh), 4-bit weights with block scales:
// recomputes accumulators that are invalid because x has an infinity or NaN (limbs), or because a
// scale is out of the range of the fast path (half2).
#pragma once

#include "lib/ptx_memory.cuh"
#include "lib/ptx_mma.cuh"
#include "lib/narrow_to_half2.cuh"

// Accumulates one step from global memory by mma.sync, weights dequantised as pairs. It handles one
// word of each packet at a time, so that it needs no more registers than the main loop. Rows are
// clamped to the last one; accumulators of clamped rows are never stored.
template <class SomeArgs>
__device__ inline void recompute(const SomeArgs& args, const WarpgroupLane& lane,
                                 const Coord& coord, int step, WarpgroupAccumulators& all) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  const typename S::Word* const scales =
      (const typename S::Word*)args.scales + step * kStepK / kScaleBlock * args.scale_stride;
#pragma unroll 1
  for (int u = 0; u < kUnits; ++u) {
    const uint16* const x = (const uint16*)args.x + step * kStepK + t * kOwn + u * kUnit;
    const uint8* const weights =
        (const uint8*)args.weights + step * kStepBytes + t * kPacketBytes + u * 4;
    uint4 x_frags[kTilesM];
#pragma unroll
    for (int j = 0; j < kTilesM; ++j)
      x_frags[j] = permute_like_weights(
          load_anywhere((const uint4*)(x + min(8 * j + g, kM - 1) * args.x_row_stride)));
#pragma unroll
    for (int i = 0; i < kTiles; ++i) {
      uint32 pairs[2][kPairs];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int64 row = min(coord.first_row + lane.row + 16 * i + 8 * half, (Index)args.n - 1);
        const uint32 scale = both(as_operand(S(), scales[row]));
        to_pairs(W(), T(),
                 load_anywhere((const uint32*)(weights + row * args.row_stride * kBits / 8)),
                 pairs[half]);
#pragma unroll
        for (int q = 0; q < kPairs; ++q)
          pairs[half][q] = fma_pair(T(), pairs[half][q], scale, kMinus);
      }
#pragma unroll
      for (int j = 0; j < kTilesM; ++j) {
        float(&acc)[4] = *(float(*)[4])(all.acc[i] + 4 * j);
#pragma unroll
        for (int q = 0; q < kPairs; q += 2) {
          const uint32 a[4] = {pairs[0][q], pairs[1][q], pairs[0][q + 1], pairs[1][q + 1]};
          const uint32 b[2] = {q == 0 ? x_frags[j].x : x_frags[j].z,
                               q == 0 ? x_frags[j].y : x_frags[j].w};
          multiply_add(T(), acc, a, b);
        }
      }
    }
  }
}
// After the last chunk of a unit: finishes the accumulators, and recomputes them if any lane of the
// warp has an invalid one.
template <class SomeArgs>  // with `scales` where accumulators can be invalid
__device__ inline void recompute_nonfinite(const SomeArgs& args, const ChunkPipeline& iter,
                                           const WarpgroupLane& lane, const Coord& coord,
                                           WarpgroupAccumulators& all) {
  const bool is_invalid = !finish_accumulators(all);
  if constexpr (kScaled && HasOffset<W>::value) {
    if (!__any_sync(0xffffffffu, is_invalid)) return;
    all = WarpgroupAccumulators();
    const int end = min((iter.first_chunk + iter.chunks) * kSteps, (int)args.k / kStepK);
#pragma unroll 1
    for (int step = iter.first_chunk * kSteps + lane.step; step < end; step += kWarpsK)
      recompute(args, lane, coord, step, all);
  }
}

// Products with few rows by warpgroups (gemm_skinny_group.cuh), 4-bit weights with scales: sums
// that were lost, because x is infinity or NaN (digits) or a scale too large or too small (pairs),
// are made once more.
#pragma once

#include "lib/ptx_memory.cuh"
#include "lib/ptx_mma.cuh"
#include "lib/short_weights.cuh"

// Adds the products of a step, from global memory, as pairs times their scale, by the instructions
// of a warp. A word of each packet at a time, so that this needs no more registers than what it
// mends. Rows past the last one are read as it is: their sums go nowhere.
template <class SomeArgs>
__device__ inline void add_again(const SomeArgs& args, const GroupLane& lane, const Place& place,
                                 int step, GroupSums& all) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  const typename S::Word* const scales =
      (const typename S::Word*)args.scales + step * kStepDepth / kScaleBlock * args.scale_stride;
#pragma unroll 1
  for (int u = 0; u < kUnits; ++u) {
    const uint16* const x = (const uint16*)args.x + step * kStepDepth + t * kOwn + u * kUnit;
    const uint8* const weights =
        (const uint8*)args.weights + step * kStepBytes + t * kPacketBytes + u * 4;
    uint4 few[kFewTiles];
#pragma unroll
    for (int j = 0; j < kFewTiles; ++j)
      few[j] = in_order_of_weights(
          load_read_only((const uint4*)(x + min(8 * j + g, kFew - 1) * args.x_row_stride)));
#pragma unroll
    for (int i = 0; i < kTiles; ++i) {
      uint32 pairs[2][kPairs];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int64 row = min(place.first_row + lane.row + 16 * i + 8 * half, (Index)args.many - 1);
        const uint32 scale = both(as_factor(S(), scales[row]));
        to_pairs(W(), T(),
                 load_read_only((const uint32*)(weights + row * args.row_stride * kBits / 8)),
                 pairs[half]);
#pragma unroll
        for (int q = 0; q < kPairs; ++q)
          pairs[half][q] = fma_pair(T(), pairs[half][q], scale, kMinus);
      }
#pragma unroll
      for (int j = 0; j < kFewTiles; ++j) {
        float(&sums)[4] = *(float(*)[4])(all.sums[i] + 4 * j);
#pragma unroll
        for (int q = 0; q < kPairs; q += 2) {
          const uint32 a[4] = {pairs[0][q], pairs[1][q], pairs[0][q + 1], pairs[1][q + 1]};
          const uint32 b[2] = {q == 0 ? few[j].x : few[j].z, q == 0 ? few[j].y : few[j].w};
          multiply_add(T(), sums, a, b);
        }
      }
    }
  }
}
// At the end of a unit.
template <class SomeArgs>  // which have scales, where sums can be lost
__device__ inline void mend_sums(const SomeArgs& args, const GroupWalk& walk, const GroupLane& lane,
                                 const Place& place, GroupSums& all) {
  const bool is_lost = !finish_sums(all);
  if constexpr (kScaled && HasOffset<W>::value) {
    if (!__any_sync(0xffffffffu, is_lost)) return;
    all = GroupSums();
    const int end = min((walk.first_chunk + walk.chunks) * kSteps, (int)args.depth / kStepDepth);
#pragma unroll 1
    for (int step = walk.first_chunk * kSteps + lane.step; step < end; step += kWarpsK)
      add_again(args, lane, place, step, all);
  }
}

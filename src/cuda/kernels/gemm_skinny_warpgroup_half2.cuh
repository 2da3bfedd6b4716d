// Skinny GEMM on warpgroups (gemm_skinny_warpgroup.cuh): multiplies weights that are dequantised to
// packed 16-bit pairs and multiplied by their scales first. While the wgmma of one part of a piece
// runs, the next part is converted.
#pragma once

#include "lib/ptx_wgmma.cuh"

static const int kSlicesPerPart = kSlices < 4 ? kSlices : 4;           // slices of a part
static const int kParts = kSlices / kSlicesPerPart;                    // of a piece
static const int kPartWords = 2 * kSlicesPerPart / kPairs;             // of a packet
static const int kUnrolledPieces = kAllPieces <= 8 ? kAllPieces : 8;  // per unrolled iteration
// 4-bit integers with scales on the fast path of lib/narrow_to_half2.cuh.
static const bool kSmall = kScaled && HasOffset<W>::value && ShortFloat<T>::kBias == 127;

// The packets of a piece in this lane (two rows) and their scales.
struct ScaledPiece {
  Words packets[2];
  uint32 scale[2];
  SmallScale small[2];

  __device__ void load(const WarpgroupLane& lane, int number, int tile, SmallScaleRange& range) {
    lane.packets(number, tile, packets);
    if constexpr (kScaled) {
      const typename S::Word* const of_rows = lane.scales(number, tile);
#pragma unroll
      for (int half = 0; half < 2; ++half) scale[half] = both(as_operand(S(), of_rows[8 * half]));
      if constexpr (kSmall) {
        range.add(__byte_perm(scale[0], scale[1], 0x5410));
#pragma unroll
        for (int half = 0; half < 2; ++half) small[half].set(W(), scale[half]);
      }
    }
  }
  // NaN of e4m3 needs no marking: the conversion instruction of sm_90 preserves it.
  template <class D>
  __device__ void convert(D d, int part, uint32 (&a_frags)[kSlicesPerPart][4]) const {
#pragma unroll
    for (int w = 0; w < kPartWords; ++w)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        uint32 pairs[kPairs];
        const uint32 word = packets[half].words[part * kPartWords + w];
        if constexpr (kSmall)
          small[half].pairs(d, word, pairs);
        else
          to_pairs(d, T(), word, pairs);
#pragma unroll
        for (int j = 0; j < kPairs; ++j) {
          const int q = w * kPairs + j;
          a_frags[q / 2][q % 2 * 2 + half] =
              kScaled && !kSmall ? fma_pair(T(), pairs[j], scale[half], kMinus) : pairs[j];
        }
      }
  }
};

__device__ inline void multiply_part(float (&acc)[kHalf],
                                     const uint32 (&a_frags)[kSlicesPerPart][4], uint64 x) {
  wgmma_fence();
#pragma unroll
  for (int c = 0; c < kSlicesPerPart; ++c)
    Mma::multiply(acc, a_frags[c], advance_descriptor(x, c * kSliceBytes), true);
  wgmma_commit_group();
}

// Multiplies a chunk. No wgmma is in flight across the loop's back edge: the compiler could not
// prove which registers it uses and would serialise every wgmma.
__device__ inline void add_stage(const WarpgroupLane& lane, WarpgroupAccumulators& all) {
  const uint64 x =
      smem_descriptor<32>(lane.stage + kFirstX + lane.step * (kSlices * kSliceBytes), 0, kPitchX);
  uint32 a_frags[2][kSlicesPerPart][4];
  ScaledPiece piece;
  piece.load(lane, 0, 0, all.scales);
  piece.convert(W(), 0, a_frags[0]);
#pragma unroll 1
  for (int first = 0; first < kAllPieces; first += kUnrolledPieces) {
#pragma unroll
    for (int p = 0; p < kUnrolledPieces * kParts; ++p) {
      const int n = p / kParts, part = p % kParts, next = n + 1;   // pieces
      const int tile = n % kTiles, number = (first + n) / kTiles;  // step of the warpgroup
      const bool has_next = next < kUnrolledPieces || first + kUnrolledPieces < kAllPieces;
      const bool is_last = part + 1 == kParts;
      if (is_last && has_next) piece.load(lane, (first + next) / kTiles, next % kTiles, all.scales);
      multiply_part(all.acc[tile], a_frags[p % 2],
                    advance_descriptor(
                        x, (number * kWarpsK * kSlices + part * kSlicesPerPart) * kSliceBytes));
      wgmma_wait_group<1>();  // the previous part
      if (!is_last || has_next) piece.convert(W(), is_last ? 0 : part + 1, a_frags[1 - p % 2]);
    }
    wgmma_wait_group<0>();
  }
  fence_operand(all.acc);
}

// After the last chunk of a unit: undoes the power of two of the fast path. Returns false if a
// scale was out of range, so that the accumulators must be recomputed.
__device__ inline bool finish_accumulators(WarpgroupAccumulators& all) {
  if constexpr (!kSmall) return true;
  const float power = __uint_as_float((uint32)(127 - SmallScale::kPower) << 23);
#pragma unroll
  for (int i = 0; i < kTiles; ++i)
#pragma unroll
    for (int v = 0; v < kHalf; ++v) all.acc[i][v] *= power;
  return !all.scales.was_left();
}

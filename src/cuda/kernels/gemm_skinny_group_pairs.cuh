// Products with few rows by warpgroups (gemm_skinny_group.cuh): a chunk's products as pairs of 16
// bits, which are multiplied by their scales before. While the products of a part of a piece run,
// the next part is converted.
#pragma once

static const int kTogether = kSlices < 4 ? kSlices : 4;           // slices of a part
static const int kParts = kSlices / kTogether;                    // of a piece
static const int kPartWords = 2 * kTogether / kPairs;             // of a packet
static const int kTurnPieces = kAllPieces <= 8 ? kAllPieces : 8;  // in one turn of a loop
// Whole numbers of 4 bits with scales, as lib/short_weights.cuh has them.
static const bool kSmall = kScaled && HasOffset<W>::value && ShortFloat<T>::kBias == 127;

// The packets of a piece, of two rows, and their scales.
struct ScaledPiece {
  Words packets[2];
  uint32 scale[2];
  SmallScale small[2];

  __device__ void load(const GroupLane& lane, int number, int tile, SmallScaleRange& range) {
    lane.packets(number, tile, packets);
    if constexpr (kScaled) {
      const typename S::Word* const of_rows = lane.scales(number, tile);
#pragma unroll
      for (int half = 0; half < 2; ++half) scale[half] = both(as_factor(S(), of_rows[8 * half]));
      if constexpr (kSmall) {
        range.add(__byte_perm(scale[0], scale[1], 0x5410));
#pragma unroll
        for (int half = 0; half < 2; ++half) small[half].set(W(), scale[half]);
      }
    }
  }
  // NaN of e4m3 needs no mark: sm_90 has an instruction that keeps it.
  template <class D>
  __device__ void convert(D d, int part, uint32 (&factors)[kTogether][4]) const {
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
          factors[q / 2][q % 2 * 2 + half] =
              kScaled && !kSmall ? fma_pair(T(), pairs[j], scale[half], kMinus) : pairs[j];
        }
      }
  }
};

__device__ inline void multiply_part(float (&sums)[kHalf], const uint32 (&factors)[kTogether][4],
                                     uint64 x) {
  fence_products();
#pragma unroll
  for (int c = 0; c < kTogether; ++c)
    multiply(sums, factors[c], advance_descriptor(x, c * kSliceBytes), true);
  commit_products();
}

// The products of a chunk. Nothing runs from one turn of the loop to the next: the compiler could
// not tell which registers are in use, and would wait for every product.
__device__ inline void add_stage(const GroupLane& lane, GroupSums& all) {
  const uint64 x =
      matrix_descriptor<32>(lane.stage + kFirstX + lane.step * (kSlices * kSliceBytes), 0, kPitchX);
  uint32 factors[2][kTogether][4];
  ScaledPiece piece;
  piece.load(lane, 0, 0, all.scales);
  piece.convert(W(), 0, factors[0]);
#pragma unroll 1
  for (int first = 0; first < kAllPieces; first += kTurnPieces) {
#pragma unroll
    for (int p = 0; p < kTurnPieces * kParts; ++p) {
      const int n = p / kParts, part = p % kParts, next = n + 1;   // pieces
      const int tile = n % kTiles, number = (first + n) / kTiles;  // of the warpgroup's steps
      const bool has_next = next < kTurnPieces || first + kTurnPieces < kAllPieces;
      const bool is_last = part + 1 == kParts;
      if (is_last && has_next) piece.load(lane, (first + next) / kTiles, next % kTiles, all.scales);
      multiply_part(
          all.sums[tile], factors[p % 2],
          advance_descriptor(x, (number * kWarpsK * kSlices + part * kTogether) * kSliceBytes));
      wait_for_products<1>();  // of the part before
      if (!is_last || has_next) piece.convert(W(), is_last ? 0 : part + 1, factors[1 - p % 2]);
    }
    wait_for_products<0>();
  }
  keep_in_registers(all.sums);
}

// At the end of a unit: false where scales were out of range, so that sums have to be made again.
__device__ inline bool finish_sums(GroupSums& all) {
  if constexpr (!kSmall) return true;
  const float power = __uint_as_float((uint32)(127 - SmallScale::kPower) << 23);
#pragma unroll
  for (int i = 0; i < kTiles; ++i)
#pragma unroll
    for (int v = 0; v < kHalf; ++v) all.sums[i][v] *= power;
  return !all.scales.was_left();
}

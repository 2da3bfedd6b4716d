// Products with few rows by warpgroups (gemm_skinny_group.cuh): a chunk's products as pairs of 16
// bits. While the products of a part of a piece run, the next part is converted; while those of a
// piece run, the sums of the one before are multiplied by their scales.
#pragma once

static const int kTogether = kSlices < 4 ? kSlices : 4;  // slices of a part
static const int kParts = kSlices / kTogether;           // of a piece
static const int kPartWords = 2 * kTogether / kPairs;    // of a packet
// In one turn of a loop. kOwnPlaces: pieces whose sums wait for their scales at a time, one where
// registers are few.
static const int kMostPieces = kScaled && kOwnPlaces == 1 ? 2 : 8;
static const int kTurnPieces = kAllPieces <= kMostPieces ? kAllPieces : kMostPieces;

// kOffset: with their offset. NaN of e4m3 needs no mark: sm_90 has an instruction that keeps it.
template <bool kOffset, class D>
__device__ inline void part_of_packets(D d, const Words (&low_high)[2], int part,
                                       uint32 (&factors)[kTogether][4]) {
#pragma unroll
  for (int w = 0; w < kPartWords; ++w)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      uint32 pairs[kPairs];
      const uint32 word = low_high[half].words[part * kPartWords + w];
      if constexpr (kOffset)
        to_offset_pairs(d, T(), word, pairs);
      else
        to_pairs(d, T(), word, pairs);
#pragma unroll
      for (int j = 0; j < kPairs; ++j) {
        const int q = w * kPairs + j;
        factors[q / 2][q % 2 * 2 + half] = pairs[j];
      }
    }
}
// The first part of a piece with scales begins its sums: with the slice that takes off what the
// offset adds, where there is one.
template <bool kOffset>
__device__ inline void multiply_part(float (&sums)[kHalf], const uint32 (&factors)[kTogether][4],
                                     uint64 x, uint64 offsets, bool keeps) {
  fence_products();
  if (kOffset && !keeps) {
    const uint32 one = power_pair<T>(0), ones[4] = {one, one, one, one};
    multiply(sums, ones, offsets, false);
    keeps = true;
  }
#pragma unroll
  for (int c = 0; c < kTogether; ++c)
    multiply(sums, factors[c], advance_descriptor(x, c * kSliceBytes), keeps || c > 0);
  commit_products();
}
__device__ inline void add_scaled(float (&sums)[kHalf], float (&own)[kHalf],
                                  const float (&factors)[2]) {
  keep_in_registers(own);
#pragma unroll
  for (int v = 0; v < kHalf; ++v) sums[v] = fmaf(own[v], factors[v / 2 % 2], sums[v]);
}

// The products of a chunk. Nothing runs from one turn of the loop to the next: the compiler could
// not tell which registers are in use, and would wait for every product.
template <bool kOffset>
__device__ inline void add_chunk(const GroupLane& lane, GroupSums& all) {
  // From where on slices are counted: elsewhere with and without the offset, else the compiler
  // makes one descriptor for both and takes four instructions for each product instead of one.
  constexpr int kCountedFrom = kOffset || !kOffsets ? 0 : kSliceBytes;
  const uint64 x = matrix_descriptor<32>(
      lane.stage + kFirstX + lane.step * (kSlices * kSliceBytes) + kCountedFrom, 0, kPitchX);
  const uint64 offsets =
      advance_descriptor(x, kFirstOffset - lane.step * ((kSlices - 1) * kSliceBytes));
  uint32 factors[2][kTogether][4];
  float own[kOwnPlaces][kHalf], scales[kOwnPlaces][2];  // where there are scales
  Words packets[2], next[2];
  lane.packets(0, 0, packets);
  part_of_packets<kOffset>(W(), packets, 0, factors[0]);
#pragma unroll 1
  for (int first = 0; first < kAllPieces; first += kTurnPieces) {
#pragma unroll
    for (int n = 0; n < kTurnPieces; ++n) {
      const int tile = n % kTiles, number = (first + n) / kTiles;  // of the warpgroup's steps
      const bool has_next = n + 1 < kTurnPieces || first + kTurnPieces < kAllPieces;
      if (has_next) lane.packets((first + n + 1) / kTiles, (n + 1) % kTiles, next);
      if constexpr (kScaled) lane.scales(number, tile, scales[n % kOwnPlaces]);
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
        const int here = (n * kParts + part) % 2;
        const uint64 slices = advance_descriptor(
            x, (number * kWarpsK * kSlices + part * kTogether) * kSliceBytes - kCountedFrom);
        const uint64 offset = advance_descriptor(offsets, number * kWarpsK * kSliceBytes);
        if constexpr (kScaled)
          multiply_part<kOffset>(own[n % kOwnPlaces], factors[here], slices, offset, part > 0);
        else
          multiply_part<false>(all.sums[tile], factors[here], slices, offset, true);
        wait_for_products<1>();  // of the part before
        if constexpr (kScaled && kOwnPlaces == 2)
          if (part == 0 && n > 0)
            add_scaled(all.sums[(n + kTiles - 1) % kTiles], own[(n + 1) % 2], scales[(n + 1) % 2]);
        if (part + 1 < kParts)
          part_of_packets<kOffset>(W(), packets, part + 1, factors[1 - here]);
        else if (has_next)
          part_of_packets<kOffset>(W(), next, 0, factors[1 - here]);
      }
      packets[0] = next[0];
      packets[1] = next[1];
      if constexpr (kScaled && kOwnPlaces == 1) {
        wait_for_products<0>();
        add_scaled(all.sums[tile], own[0], scales[0]);
      }
    }
    wait_for_products<0>();
    if constexpr (kScaled && kOwnPlaces == 2) add_scaled(all.sums[kTiles - 1], own[1], scales[1]);
  }
  if constexpr (!kScaled) keep_in_registers(all.sums);
}

// Whether a sum of x, by which offsets come off, is not finite.
__device__ inline bool has_lost(const uint8* stage) {
  const int lane = threadIdx.x % 32;
  const uint32* const flags = (const uint32*)(stage + kFirstX + kFirstFlag);
  return __any_sync(0xffffffffu, lane < kBlocksX && flags[lane] != 0u);
}
__device__ inline void add_stage(const GroupLane& lane, GroupSums& sums) {
  if (kOffsets && !has_lost(lane.stage))
    add_chunk<kOffsets>(lane, sums);
  else
    add_chunk<false>(lane, sums);
}
// Nothing that was lost is left, when a unit ends.
__device__ inline void mend_sums(const Args&, const GroupWalk&, const GroupLane&, const Place&,
                                 GroupSums&) {}

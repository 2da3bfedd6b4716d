// Rows of wgmma accumulators, which the four lanes of a quad share (lib/ptx_wgmma.cuh), packed into
// pairs of bf16 or f16 and stored.
#pragma once

#include "lib/elements.cuh"
#include "lib/ptx_convert.cuh"

__device__ inline uint32 pack_pair(bf16, float low, float high) { return pair_to_bf16(low, high); }
__device__ inline uint32 pack_pair(f16, float low, float high) { return pair_to_f16(low, high); }

// Transposes the words of a quad: lane t gets word t of each of its four lanes.
__device__ inline void transpose_quad(uint32 (&words)[4]) {
  const int lane = threadIdx.x % 4;
#pragma unroll
  for (int bit = 1; bit < 4; bit *= 2) {
    const bool is_upper = lane & bit;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (i & bit) continue;
      uint32 &low = words[i], &high = words[i | bit];
      const uint32 given = __shfl_xor_sync(~0u, is_upper ? low : high, bit);
      (is_upper ? low : high) = given;
    }
  }
}

// Stores row r of the thread's two: 16 bytes of every 32 columns, those below `columns`.
template <class Element, int kCount>
__device__ inline void store_quad_row(typename Element::Word* row, int columns, int r,
                                      const float (&accum)[kCount]) {
  const int first_column = (int)threadIdx.x % 4 * 8;
#pragma unroll
  for (int part = 0; part < kCount / 16; ++part) {
    uint32 words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int at = 4 * (4 * part + i) + 2 * r;
      words[i] = pack_pair(Element(), accum[at], accum[at + 1]);
    }
    transpose_quad(words);
    const int column = 32 * part + first_column;
    if (column < columns)
      *(uint4*)(row + column) = make_uint4(words[0], words[1], words[2], words[3]);
  }
}

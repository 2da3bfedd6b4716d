// Compiled once per SIMD target; see transpose_tile.cpp.
#if defined(ASHLAR_CPU_KERNELS_TRANSPOSE_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASHLAR_CPU_KERNELS_TRANSPOSE_TILE_INL_H_
#undef ASHLAR_CPU_KERNELS_TRANSPOSE_TILE_INL_H_
#else
#define ASHLAR_CPU_KERNELS_TRANSPOSE_TILE_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>

#include "cpu/kernels/transpose_tile.hpp"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {

inline constexpr std::int64_t kTileSide = 16;

#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86

// At most 16 x 16, in registers: pairs, then fours within 128-bit blocks, then the blocks.
HWY_INLINE void TransposeSide(const float* HWY_RESTRICT source, std::int64_t source_row,
                              std::int64_t rows, std::int64_t columns,
                              float* HWY_RESTRICT destination, std::int64_t destination_row) {
  __m512 in[16], two[16], four[16];
  const auto there = static_cast<__mmask16>((1u << columns) - 1u);
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i)
    in[i] = i < rows ? _mm512_maskz_loadu_ps(there, source + i * source_row) : _mm512_setzero_ps();
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    two[i] = _mm512_unpacklo_ps(in[i], in[i + 1]);
    two[i + 1] = _mm512_unpackhi_ps(in[i], in[i + 1]);
  }
  const auto join = [](__m512 a, __m512 b, auto high) {
    const __m512d x = _mm512_castps_pd(a), y = _mm512_castps_pd(b);
    return _mm512_castpd_ps(high ? _mm512_unpackhi_pd(x, y) : _mm512_unpacklo_pd(x, y));
  };
  // four[4 q + k] holds column 4 b + k of rows 4 q .. 4 q + 3 in its block b.
#pragma GCC unroll 4
  for (int q = 0; q < 16; q += 4) {
    four[q] = join(two[q], two[q + 2], std::false_type{});
    four[q + 1] = join(two[q], two[q + 2], std::true_type{});
    four[q + 2] = join(two[q + 1], two[q + 3], std::false_type{});
    four[q + 3] = join(two[q + 1], two[q + 3], std::true_type{});
  }
  const auto inside = static_cast<__mmask16>((1u << rows) - 1u);
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) {
    const __m512 even_low = _mm512_shuffle_f32x4(four[k], four[4 + k], 0x88),
                 odd_low = _mm512_shuffle_f32x4(four[k], four[4 + k], 0xdd),
                 even_high = _mm512_shuffle_f32x4(four[8 + k], four[12 + k], 0x88),
                 odd_high = _mm512_shuffle_f32x4(four[8 + k], four[12 + k], 0xdd);
    const __m512 out[4] = {_mm512_shuffle_f32x4(even_low, even_high, 0x88),
                           _mm512_shuffle_f32x4(odd_low, odd_high, 0x88),
                           _mm512_shuffle_f32x4(even_low, even_high, 0xdd),
                           _mm512_shuffle_f32x4(odd_low, odd_high, 0xdd)};
#pragma GCC unroll 4
    for (int b = 0; b < 4; ++b)
      if (4 * b + k < columns)
        _mm512_mask_storeu_ps(destination + (4 * b + k) * destination_row, inside, out[b]);
  }
}

#else

HWY_INLINE void TransposeSide(const float* HWY_RESTRICT source, std::int64_t source_row,
                              std::int64_t rows, std::int64_t columns,
                              float* HWY_RESTRICT destination, std::int64_t destination_row) {
  for (std::int64_t j = 0; j < columns; ++j)
    for (std::int64_t i = 0; i < rows; ++i)
      destination[j * destination_row + i] = source[i * source_row + j];
}

#endif

void Transpose(const float* source, std::int64_t source_row, std::int64_t rows,
               std::int64_t columns, float* destination, std::int64_t destination_row) {
  for (std::int64_t i = 0; i < rows; i += kTileSide)
    for (std::int64_t j = 0; j < columns; j += kTileSide)
      TransposeSide(source + i * source_row + j, source_row, std::min(kTileSide, rows - i),
                    std::min(kTileSide, columns - j), destination + j * destination_row + i,
                    destination_row);
}

TransposeTile MakeTranspose() { return Transpose; }

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard

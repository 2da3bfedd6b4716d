// Float transposes in 16 x 16 register tiles. Compiled once per SIMD target.
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
namespace hn = hwy::HWY_NAMESPACE;

inline constexpr std::int64_t kTileSide = 16;

#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86

// At most 16 x 16 in registers: interleaves pairs, then fours within 128-bit blocks, then blocks.
HWY_INLINE void TransposeSide(const float* HWY_RESTRICT source, std::int64_t source_row,
                              std::int64_t rows, std::int64_t columns,
                              float* HWY_RESTRICT destination, std::int64_t destination_row) {
  const hn::FixedTag<float, 16> d;
  const hn::Repartition<double, decltype(d)> wide;
  using V = hn::Vec<decltype(d)>;
  V in[16], two[16], four[16];
  const auto there = hn::FirstN(d, static_cast<std::size_t>(columns));
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i)
    in[i] = i < rows ? hn::MaskedLoad(there, d, source + i * source_row) : hn::Zero(d);
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    two[i] = hn::InterleaveLower(d, in[i], in[i + 1]);
    two[i + 1] = hn::InterleaveUpper(d, in[i], in[i + 1]);
  }
  const auto lower = [&](V a, V b) HWY_ATTR {
    return hn::BitCast(d, hn::InterleaveLower(wide, hn::BitCast(wide, a), hn::BitCast(wide, b)));
  };
  const auto upper = [&](V a, V b) HWY_ATTR {
    return hn::BitCast(d, hn::InterleaveUpper(wide, hn::BitCast(wide, a), hn::BitCast(wide, b)));
  };
  // four[4 q + k] holds column 4 b + k of rows 4 q .. 4 q + 3 in its block b.
#pragma GCC unroll 4
  for (int q = 0; q < 16; q += 4) {
    four[q] = lower(two[q], two[q + 2]);
    four[q + 1] = upper(two[q], two[q + 2]);
    four[q + 2] = lower(two[q + 1], two[q + 3]);
    four[q + 3] = upper(two[q + 1], two[q + 3]);
  }
  const auto inside = hn::FirstN(d, static_cast<std::size_t>(rows));
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) {
    const V a = four[k], b = four[4 + k], e = four[8 + k], f = four[12 + k];
    const V even_low = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(b), a),
            odd_low = hn::OddEvenBlocks(b, hn::SwapAdjacentBlocks(a)),
            even_high = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(f), e),
            odd_high = hn::OddEvenBlocks(f, hn::SwapAdjacentBlocks(e));
    const V out[4] = {
        hn::ConcatLowerLower(d, even_high, even_low), hn::ConcatLowerLower(d, odd_high, odd_low),
        hn::ConcatUpperUpper(d, even_high, even_low), hn::ConcatUpperUpper(d, odd_high, odd_low)};
#pragma GCC unroll 4
    for (int block = 0; block < 4; ++block)
      if (4 * block + k < columns)
        hn::BlendedStore(out[block], inside, d, destination + (4 * block + k) * destination_row);
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

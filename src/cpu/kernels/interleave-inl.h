// Interleaves rows into GEMM panels by register transposes. Compiled once per SIMD target.
#if defined(ASHLAR_CPU_KERNELS_INTERLEAVE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASHLAR_CPU_KERNELS_INTERLEAVE_INL_H_
#undef ASHLAR_CPU_KERNELS_INTERLEAVE_INL_H_
#else
#define ASHLAR_CPU_KERNELS_INTERLEAVE_INL_H_
#endif

#include <hwy/highway.h>

#include "cpu/kernels/interleave.hpp"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
HWY_INLINE void InterleaveOneByOne(const T* const* rows, std::int64_t first_row, std::int64_t count,
                                   std::int64_t begin, std::int64_t end, std::int64_t width,
                                   T* destination) {
  for (std::int64_t i = first_row; i < count; ++i)
    for (std::int64_t l = begin; l < end; ++l) destination[l * width + i] = rows[i][l];
}

#if HWY_TARGET == HWY_SCALAR
template <class T>
void Interleave(const T* const* rows, std::int64_t count, std::int64_t length, std::int64_t width,
                T* destination) {
  InterleaveOneByOne(rows, 0, count, 0, length, width, destination);
}
#else
// Transposes 4 x 4 squares of 4-byte elements, or 2 x 2 of 8, in 16-byte vectors. Squares that
// extend past the panel (its width need not be a multiple of 4) are written first in their rows, so
// that later stores overwrite the excess.
template <class T>
HWY_INLINE void TransposeSquare(const T* const* rows, std::int64_t l, std::int64_t width,
                                T* destination) {
  const hn::CappedTag<T, 16 / sizeof(T)> d;
  if constexpr (sizeof(T) == 8) {
    const auto a = hn::LoadU(d, rows[0] + l), b = hn::LoadU(d, rows[1] + l);
    hn::StoreU(hn::InterleaveLower(d, a, b), d, destination);
    hn::StoreU(hn::InterleaveUpper(d, a, b), d, destination + width);
  } else {
    const hn::RepartitionToWide<decltype(d)> wide;
    const auto a = hn::LoadU(d, rows[0] + l), b = hn::LoadU(d, rows[1] + l),
               c = hn::LoadU(d, rows[2] + l), e = hn::LoadU(d, rows[3] + l);
    const auto ab_low = hn::BitCast(wide, hn::InterleaveLower(d, a, b)),
               ab_high = hn::BitCast(wide, hn::InterleaveUpper(d, a, b)),
               ce_low = hn::BitCast(wide, hn::InterleaveLower(d, c, e)),
               ce_high = hn::BitCast(wide, hn::InterleaveUpper(d, c, e));
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, ab_low, ce_low)), d, destination);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, ab_low, ce_low)), d, destination + width);
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, ab_high, ce_high)), d,
               destination + 2 * width);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, ab_high, ce_high)), d,
               destination + 3 * width);
  }
}

template <class T>
void Interleave(const T* const* rows, std::int64_t count, std::int64_t length, std::int64_t width,
                T* destination) {
  constexpr auto kGroupsPerTile = static_cast<std::int64_t>(16 / sizeof(T));
  const std::int64_t whole = count / kGroupsPerTile * kGroupsPerTile;
  // The last square repeats a row for missing ones: those elements of the panel are not used.
  const T* last[kGroupsPerTile];
  for (std::int64_t i = 0; i < kGroupsPerTile; ++i)
    last[i] = rows[whole + i < count ? whole + i : count - 1];
  std::int64_t l = 0;
  for (; l + kGroupsPerTile <= length; l += kGroupsPerTile) {
    T* target = destination + l * width;
    if (count > whole) TransposeSquare(last, l, width, target + whole);
    for (std::int64_t i = whole - kGroupsPerTile; i >= 0; i -= kGroupsPerTile)
      TransposeSquare(rows + i, l, width, target + i);
  }
  InterleaveOneByOne(rows, 0, count, l, length, width, destination);
}
#endif

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard

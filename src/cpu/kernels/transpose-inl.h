// Compiled once per SIMD target; see transpose.cpp.
#if defined(ASHLAR_CPU_KERNELS_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASHLAR_CPU_KERNELS_TRANSPOSE_INL_H_
#undef ASHLAR_CPU_KERNELS_TRANSPOSE_INL_H_
#else
#define ASHLAR_CPU_KERNELS_TRANSPOSE_INL_H_
#endif

#include <hwy/highway.h>

#include "cpu/kernels/transpose.hpp"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// 4 x 4 floats through registers.
HWY_INLINE void TransposeBlock(const float* source, std::int64_t source_row, float* destination,
                               std::int64_t destination_row) {
#if HWY_TARGET == HWY_SCALAR
  for (std::int64_t i = 0; i < 4; ++i)
    for (std::int64_t j = 0; j < 4; ++j)
      destination[j * destination_row + i] = source[i * source_row + j];
#else
  const hn::FixedTag<float, 4> d;
  const hn::FixedTag<double, 2> pairs;
  const auto a = hn::LoadU(d, source), b = hn::LoadU(d, source + source_row),
             c = hn::LoadU(d, source + 2 * source_row), e = hn::LoadU(d, source + 3 * source_row);
  const auto ab_low = hn::BitCast(pairs, hn::InterleaveLower(d, a, b)),
             ab_high = hn::BitCast(pairs, hn::InterleaveUpper(d, a, b)),
             ce_low = hn::BitCast(pairs, hn::InterleaveLower(d, c, e)),
             ce_high = hn::BitCast(pairs, hn::InterleaveUpper(d, c, e));
  const auto store = [&](auto v, std::int64_t j) HWY_ATTR {
    hn::StoreU(hn::BitCast(d, v), d, destination + j * destination_row);
  };
  store(hn::InterleaveLower(pairs, ab_low, ce_low), 0);
  store(hn::InterleaveUpper(pairs, ab_low, ce_low), 1);
  store(hn::InterleaveLower(pairs, ab_high, ce_high), 2);
  store(hn::InterleaveUpper(pairs, ab_high, ce_high), 3);
#endif
}

template <class T>
void TransposeRows(const T* source, std::int64_t source_row, std::int64_t rows,
                   std::int64_t columns, T* destination, std::int64_t destination_row) {
  constexpr std::int64_t kBlock = 16;  // rows whose pieces make whole cache lines
  for (std::int64_t i0 = 0; i0 < rows; i0 += kBlock) {
    const std::int64_t i1 = HWY_MIN(rows, i0 + kBlock);
    std::int64_t j = 0;
    if constexpr (sizeof(T) == sizeof(float))
      for (; j + 4 <= columns; j += 4) {
        std::int64_t i = i0;
        for (; i + 4 <= i1; i += 4)
          TransposeBlock(source + i * source_row + j, source_row,
                         destination + j * destination_row + i, destination_row);
        for (; i < i1; ++i)
          for (std::int64_t l = j; l < j + 4; ++l)
            destination[l * destination_row + i] = source[i * source_row + l];
      }
    for (; j < columns; ++j)
      for (std::int64_t i = i0; i < i1; ++i)
        destination[j * destination_row + i] = source[i * source_row + j];
  }
}

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard

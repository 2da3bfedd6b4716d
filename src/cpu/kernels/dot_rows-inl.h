// Dot products of rows: the micro-kernel of a skinny GEMM. Compiled once per SIMD target.
#if defined(ASHLAR_CPU_KERNELS_DOT_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASHLAR_CPU_KERNELS_DOT_ROWS_INL_H_
#undef ASHLAR_CPU_KERNELS_DOT_ROWS_INL_H_
#else
#define ASHLAR_CPU_KERNELS_DOT_ROWS_INL_H_
#endif

#include <hwy/highway.h>

#include "cpu/kernels/dot_rows.hpp"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <int kCount, class T>
HWY_NOINLINE void DotBlock(const T* const* right, const T* const* left, std::int64_t length,
                           T* sums) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  constexpr int kRows = static_cast<int>(kDotRows);
  V totals[kCount][kRows];
#pragma GCC unroll 4
  for (int m = 0; m < kCount; ++m)
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) totals[m][i] = hn::Zero(d);
  std::int64_t l = 0;
  for (; l + lanes <= length; l += lanes) {
    V b[kRows];
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) b[i] = hn::LoadU(d, right[i] + l);
#pragma GCC unroll 4
    for (int m = 0; m < kCount; ++m) {
      const V a = hn::LoadU(d, left[m] + l);
#pragma GCC unroll 4
      for (int i = 0; i < kRows; ++i) totals[m][i] = hn::MulAdd(a, b[i], totals[m][i]);
    }
  }
  for (int m = 0; m < kCount; ++m)
    for (int i = 0; i < kRows; ++i) {
      T total = hn::GetLane(hn::SumOfLanes(d, totals[m][i]));
      for (std::int64_t rest = l; rest < length; ++rest) total += left[m][rest] * right[i][rest];
      sums[m * kRows + i] += total;
    }
}

template <class T>
void Dots(const T* const* right, const T* const* left, std::int64_t count, std::int64_t length,
          T* sums) {
  switch (count) {
    case 1: return DotBlock<1>(right, left, length, sums);
    case 2: return DotBlock<2>(right, left, length, sums);
    case 3: return DotBlock<3>(right, left, length, sums);
    default: return DotBlock<4>(right, left, length, sums);
  }
}

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard

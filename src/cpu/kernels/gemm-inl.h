// Products of packed panels: a block of C is held in registers, one pair of vectors per row.
#include <cstdint>
#include <type_traits>

#include "hwy/highway.h"

#if defined(ASHLAR_CPU_GEMM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASHLAR_CPU_GEMM_INL_H_
#undef ASHLAR_CPU_GEMM_INL_H_
#else
#define ASHLAR_CPU_GEMM_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Accumulators take 2 registers per row, B two, A one: 27 of 32 registers, or 15 of 16.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM
inline constexpr int kPanelRows = 12;
#else
inline constexpr int kPanelRows = 6;
#endif

template <int kRows, class T>
HWY_NOINLINE void MultiplyPanels(std::int64_t depth, const T* HWY_RESTRICT a,
                                 const T* HWY_RESTRICT b, T* HWY_RESTRICT c, std::int64_t c_stride,
                                 bool accumulate) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  V left[kRows], right[kRows];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) left[i] = right[i] = hn::Zero(d);
  for (std::int64_t l = 0; l < depth; ++l) {
    const V b_left = hn::LoadU(d, b);
    const V b_right = hn::LoadU(d, b + lanes);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const V a_i = hn::Set(d, a[i]);
      left[i] = hn::MulAdd(a_i, b_left, left[i]);
      right[i] = hn::MulAdd(a_i, b_right, right[i]);
    }
    a += kPanelRows;
    b += 2 * lanes;
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    T* row = c + i * c_stride;
    if (accumulate) {
      left[i] = hn::Add(left[i], hn::LoadU(d, row));
      right[i] = hn::Add(right[i], hn::LoadU(d, row + lanes));
    }
    hn::StoreU(left[i], d, row);
    hn::StoreU(right[i], d, row + lanes);
  }
}

// sum + the products of the halves of each lane. Some processors put the second product of a pair
// elsewhere, into `rest`; on the others it stays zero, and costs nothing.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V AddPairs(D d, V a, V b, V sum, V& rest) {
#if HWY_TARGET == HWY_SCALAR
  const auto low = [](V pair) HWY_ATTR { return hn::ShiftRight<16>(hn::ShiftLeft<16>(pair)); };
  const V both =
      hn::Add(hn::Mul(low(a), low(b)), hn::Mul(hn::ShiftRight<16>(a), hn::ShiftRight<16>(b)));
  (void)d;
  (void)rest;
  return hn::Add(sum, both);
#else
  const hn::Repartition<std::int16_t, D> d16;
  return hn::ReorderWidenMulAccumulate(d, hn::BitCast(d16, a), hn::BitCast(d16, b), sum, rest);
#endif
}
template <class V>
HWY_INLINE V WholePairs(V sum, V rest) {
#if HWY_TARGET == HWY_SCALAR
  return hn::Add(sum, rest);
#else
  return hn::RearrangeToOddPlusEven(sum, rest);
#endif
}

// Pairs of 16-bit integers: one instruction multiplies and adds both halves.
template <int kRows>
HWY_NOINLINE void MultiplyPairPanels(std::int64_t depth, const std::int32_t* HWY_RESTRICT a,
                                     const std::int32_t* HWY_RESTRICT b,
                                     std::int32_t* HWY_RESTRICT c, std::int64_t c_stride,
                                     bool accumulate) {
  const hn::ScalableTag<std::int32_t> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  V left[kRows], right[kRows], left_rest[kRows], right_rest[kRows];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) left[i] = right[i] = left_rest[i] = right_rest[i] = hn::Zero(d);
  for (std::int64_t l = 0; l < depth; ++l) {
    const V b_left = hn::LoadU(d, b);
    const V b_right = hn::LoadU(d, b + lanes);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const V a_i = hn::Set(d, a[i]);
      left[i] = AddPairs(d, a_i, b_left, left[i], left_rest[i]);
      right[i] = AddPairs(d, a_i, b_right, right[i], right_rest[i]);
    }
    a += kPanelRows;
    b += 2 * lanes;
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    std::int32_t* row = c + i * c_stride;
    left[i] = WholePairs(left[i], left_rest[i]);
    right[i] = WholePairs(right[i], right_rest[i]);
    if (accumulate) {
      left[i] = hn::Add(left[i], hn::LoadU(d, row));
      right[i] = hn::Add(right[i], hn::LoadU(d, row + lanes));
    }
    hn::StoreU(left[i], d, row);
    hn::StoreU(right[i], d, row + lanes);
  }
}

// Calls the block of exactly `used_rows` rows.
template <int kRows, class T>
void MultiplyRows(std::int64_t depth, std::int64_t used_rows, const T* a, const T* b, T* c,
                  std::int64_t c_stride, bool accumulate) {
  if constexpr (kRows > 1) {
    if (used_rows < kRows)
      return MultiplyRows<kRows - 1>(depth, used_rows, a, b, c, c_stride, accumulate);
  }
  if constexpr (std::is_same_v<T, std::int32_t>)
    MultiplyPairPanels<kRows>(depth, a, b, c, c_stride, accumulate);
  else
    MultiplyPanels<kRows>(depth, a, b, c, c_stride, accumulate);
}

template <class T>
GemmKernel<T> MakeGemmKernel() {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  return {kPanelRows, 2 * lanes, MultiplyRows<kPanelRows, T>};
}

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

// Compiled once per SIMD target; see pair_product.cpp.
#include <cstdint>

#include "cpu/kernels/panel_product.hpp"
#include "hwy/highway.h"

#if defined(ASHLAR_CPU_KERNELS_PAIR_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASHLAR_CPU_KERNELS_PAIR_PRODUCT_INL_H_
#undef ASHLAR_CPU_KERNELS_PAIR_PRODUCT_INL_H_
#else
#define ASHLAR_CPU_KERNELS_PAIR_PRODUCT_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Accumulators take 2 registers per row, B two, A one: 27 of 32 registers, or 15 of 16.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM
inline constexpr int kPairRows = 12;
#else
inline constexpr int kPairRows = 6;
#endif

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
HWY_NOINLINE void MultiplyPairPanels(const PanelOperands<std::int32_t>& o) {
  const hn::ScalableTag<std::int32_t> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  V left[kRows], right[kRows], left_rest[kRows], right_rest[kRows];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) left[i] = right[i] = left_rest[i] = right_rest[i] = hn::Zero(d);
  const std::int32_t* HWY_RESTRICT a = o.a;
  const std::int32_t* HWY_RESTRICT b = o.b;
  for (std::int64_t l = 0; l < o.depth; ++l) {
    const V b_left = hn::LoadU(d, b);
    const V b_right = hn::LoadU(d, b + lanes);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const V a_i = hn::Set(d, a[i]);
      left[i] = AddPairs(d, a_i, b_left, left[i], left_rest[i]);
      right[i] = AddPairs(d, a_i, b_right, right[i], right_rest[i]);
    }
    a += kPairRows;
    b += o.b_row;
  }
  alignas(64) std::int32_t row[2 * hn::MaxLanes(d)];
  for (int i = 0; i < kRows; ++i) {
    hn::StoreU(WholePairs(left[i], left_rest[i]), d, row);
    hn::StoreU(WholePairs(right[i], right_rest[i]), d, row + lanes);
    std::int32_t* c = o.c + i * o.c_row;
    for (std::int64_t j = 0; j < o.columns; ++j) c[j] = o.accumulate ? c[j] + row[j] : row[j];
  }
}

// Calls the block of exactly o.rows rows.
template <int kRows>
void MultiplyPairRows(const PanelOperands<std::int32_t>& o) {
  if constexpr (kRows > 1) {
    if (o.rows < kRows) return MultiplyPairRows<kRows - 1>(o);
  }
  MultiplyPairPanels<kRows>(o);
}

inline const PanelProduct<std::int32_t>& MakePairProduct() {
  static const PanelProduct<std::int32_t> product = {
      kPairRows, 2 * static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<std::int32_t>())), nullptr,
      MultiplyPairRows<kPairRows>};
  return product;
}

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

// Compiled once per SIMD target; see panel_product.cpp.
#if defined(ASHLAR_CPU_KERNELS_PANEL_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASHLAR_CPU_KERNELS_PANEL_PRODUCT_INL_H_
#undef ASHLAR_CPU_KERNELS_PANEL_PRODUCT_INL_H_
#else
#define ASHLAR_CPU_KERNELS_PANEL_PRODUCT_INL_H_
#endif

#include <hwy/highway.h>

#include <cstring>

#include "cpu/kernels/panel_product.hpp"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Accumulators take 2 registers per row, B two, A one: 31 of 32 registers, or 15 of 16.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM
inline constexpr int kPanelRows = 14;
#else
inline constexpr int kPanelRows = 6;
#endif

template <int kRows, class V>
struct PanelSums {
  V left[kRows], right[kRows];
};

// Rows lie a constant distance apart. Four pointers reach 14 rows by what an address can add to
// them: nothing, one, two or three distances.
template <int kRows, class T, class V>
HWY_INLINE void AddStrided(std::int64_t depth, const T* HWY_RESTRICT a, std::int64_t a_row,
                           const T* HWY_RESTRICT b, std::int64_t b_row, PanelSums<kRows, V>& sums) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  constexpr int kGroups = (kRows + 3) / 4;
  const T* group[kGroups];
#pragma GCC unroll 4
  for (int g = 0; g < kGroups; ++g) group[g] = a + 4 * g * a_row;
  const std::int64_t thrice = 3 * a_row;
  for (std::int64_t l = 0; l < depth; ++l, b += b_row) {
    const V b_left = hn::LoadU(d, b);
    const V b_right = hn::LoadU(d, b + lanes);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const T* row = group[i / 4] + (i % 4 == 3 ? thrice : (i % 4) * a_row);
      const V a_i = hn::Set(d, row[l]);
      sums.left[i] = hn::MulAdd(a_i, b_left, sums.left[i]);
      sums.right[i] = hn::MulAdd(a_i, b_right, sums.right[i]);
    }
  }
}

template <int kRows, class T, class V>
HWY_INLINE void AddPacked(std::int64_t depth, const T* HWY_RESTRICT a, std::int64_t a_row,
                          const T* HWY_RESTRICT b, std::int64_t b_row, PanelSums<kRows, V>& sums) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t l = 0; l < depth; ++l, a += a_row, b += b_row) {
    const V b_left = hn::LoadU(d, b);
    const V b_right = hn::LoadU(d, b + lanes);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const V a_i = hn::Set(d, a[i]);
      sums.left[i] = hn::MulAdd(a_i, b_left, sums.left[i]);
      sums.right[i] = hn::MulAdd(a_i, b_right, sums.right[i]);
    }
  }
}

// Applies `finish` to one vector of C.
template <class D, class T, class V = hn::Vec<D>>
HWY_INLINE V Finished(D d, V sum, const PanelFinish<T>& finish, const T* addend,
                      std::int64_t column) {
  if (finish.bias != nullptr) sum = hn::Add(sum, hn::LoadU(d, finish.bias + column));
  if (addend != nullptr) sum = hn::Add(sum, hn::LoadU(d, addend + column));
  // Written so that a NaN fails both comparisons and stays.
  const V low = hn::Set(d, finish.low), high = hn::Set(d, finish.high);
  sum = hn::IfThenElse(hn::Lt(sum, low), low, sum);
  return hn::IfThenElse(hn::Gt(sum, high), high, sum);
}

template <int kRows, class T, class V>
HWY_INLINE void StoreSums(const PanelOperands<T>& o, PanelSums<kRows, V>& sums) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  if (o.columns == 2 * lanes && o.finish == nullptr) {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      T* row = o.c + i * o.c_row;
      if (o.accumulate) {
        sums.left[i] = hn::Add(sums.left[i], hn::LoadU(d, row));
        sums.right[i] = hn::Add(sums.right[i], hn::LoadU(d, row + lanes));
      }
      hn::StoreU(sums.left[i], d, row);
      hn::StoreU(sums.right[i], d, row + lanes);
    }
    return;
  }
  // Through a copy in which whole vectors may be read and written.
  alignas(64) T values[kRows][2 * hn::MaxLanes(d)];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    hn::StoreU(sums.left[i], d, values[i]);
    hn::StoreU(sums.right[i], d, values[i] + lanes);
  }
  const auto bytes = static_cast<std::size_t>(o.columns) * sizeof(T);
  const bool whole = o.columns == 2 * lanes;
  alignas(64) T bias[2 * hn::MaxLanes(d)], addend[2 * hn::MaxLanes(d)], row[2 * hn::MaxLanes(d)];
  PanelFinish<T> finish = o.finish != nullptr ? *o.finish : PanelFinish<T>{};
  if (finish.bias != nullptr && !whole) {
    std::memcpy(bias, finish.bias, bytes);
    finish.bias = bias;
  }
  for (int i = 0; i < kRows; ++i) {
    T* c = o.c + i * o.c_row;
    const T* add = finish.addend != nullptr ? finish.addend + i * finish.addend_row : nullptr;
    if (add != nullptr && !whole) {
      std::memcpy(addend, add, bytes);
      add = addend;
    }
    T* target = whole ? c : row;
    if (o.accumulate && !whole) std::memcpy(row, c, bytes);
    for (std::int64_t j = 0; j < 2 * lanes; j += lanes) {
      V sum = hn::LoadU(d, values[i] + j);
      if (o.accumulate) sum = hn::Add(sum, hn::LoadU(d, target + j));
      if (o.finish != nullptr) sum = Finished(d, sum, finish, add, j);
      hn::StoreU(sum, d, target + j);
    }
    if (!whole) std::memcpy(c, row, bytes);
  }
}

template <int kRows, bool kPacked, class T>
HWY_NOINLINE void MultiplyPanel(const PanelOperands<T>& o) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  PanelSums<kRows, V> sums;
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) sums.left[i] = sums.right[i] = hn::Zero(d);
  if constexpr (kPacked) {
    AddPacked<kRows>(o.depth, o.a, o.a_row != 0 ? o.a_row : kPanelRows, o.b, o.b_row, sums);
  } else {
    const T* b = o.b;
    for (std::int64_t s = 0; s < o.segments; ++s, b += o.depth * o.b_row) {
      const T* a = o.a + (o.segment_offsets != nullptr ? o.segment_offsets[s] : 0);
      AddStrided<kRows>(o.depth, a, o.a_row, b, o.b_row, sums);
    }
  }
  StoreSums<kRows>(o, sums);
}

// Calls the block of exactly o.rows rows.
template <int kRows, bool kPacked, class T>
void MultiplyRows(const PanelOperands<T>& o) {
  if constexpr (kRows > 1) {
    if (o.rows < kRows) return MultiplyRows<kRows - 1, kPacked>(o);
  }
  MultiplyPanel<kRows, kPacked>(o);
}

template <class T>
const PanelProduct<T>& MakePanelProduct() {
  static const PanelProduct<T> product = {
      kPanelRows, 2 * static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>())),
      MultiplyRows<kPanelRows, false, T>, MultiplyRows<kPanelRows, true, T>};
  return product;
}

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard

// Compiled once per SIMD target; see row_product.cpp.
#if defined(ASHLAR_CPU_KERNELS_ROW_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASHLAR_CPU_KERNELS_ROW_PRODUCT_INL_H_
#undef ASHLAR_CPU_KERNELS_ROW_PRODUCT_INL_H_
#else
#define ASHLAR_CPU_KERNELS_ROW_PRODUCT_INL_H_
#endif

#include <hwy/highway.h>

#include "cpu/kernels/row_product.hpp"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Accumulators take 24 of 32 registers, or 12 of 16; B's row 4 or 2, A's element one.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM
inline constexpr int kProductVectors = 4;
#else
inline constexpr int kProductVectors = 2;
#endif

template <int kRows, int kVectors, class V>
struct RowSums {
  V at[kRows][kVectors];
};

// Calls visit(i, v) for every accumulator, unrolled.
#define ASHLAR_FOR_SUMS(i, v)                             \
  _Pragma("GCC unroll 8") for (int i = 0; i < kRows; ++i) \
      _Pragma("GCC unroll 4") for (int v = 0; v < kVectors; ++v)

template <int kRows, int kVectors, class T, class V>
HWY_INLINE void AddSegment(const RowOperands<T>& o, const T* HWY_RESTRICT a,
                           const T* HWY_RESTRICT b, const T* next,
                           RowSums<kRows, kVectors, V>& sums) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const T* row[kRows];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) row[i] = a + o.a_rows[i];
  const std::int64_t step = o.a_step, end = o.depth * step, b_row = o.b_row;
  constexpr std::int64_t kLine = 64 / sizeof(T);
  for (std::int64_t l = 0; l < end; l += step, b += b_row, next += kLine) {
    __builtin_prefetch(next, 0, 2);
    V b_v[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) b_v[v] = hn::LoadU(d, b + v * lanes);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      const V a_i = hn::Set(d, row[i][l]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums.at[i][v] = hn::MulAdd(a_i, b_v[v], sums.at[i][v]);
    }
  }
}

// C's columns are whole vectors.
template <int kRows, int kVectors, class T, class V>
HWY_INLINE void StoreWhole(const RowOperands<T>& o, RowSums<kRows, kVectors, V>& sums) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  if (o.accumulate) {
    ASHLAR_FOR_SUMS(i, v)
    sums.at[i][v] = hn::Add(sums.at[i][v], hn::LoadU(d, o.c + o.c_rows[i] + v * lanes));
  }
  if (o.finish != nullptr) {
    if (o.finish->bias != nullptr) {
      ASHLAR_FOR_SUMS(i, v)
      sums.at[i][v] = hn::Add(sums.at[i][v], hn::LoadU(d, o.finish->bias + v * lanes));
    }
    if (o.finish->addend != nullptr) {
      ASHLAR_FOR_SUMS(i, v)
      sums.at[i][v] =
          hn::Add(sums.at[i][v], hn::LoadU(d, o.finish->addend + o.addend_rows[i] + v * lanes));
    }
    // A NaN fails both comparisons and stays.
    const V low = hn::Set(d, o.finish->low), high = hn::Set(d, o.finish->high);
    ASHLAR_FOR_SUMS(i, v)
    sums.at[i][v] = hn::IfThenElse(hn::Lt(sums.at[i][v], low), low, sums.at[i][v]);
    ASHLAR_FOR_SUMS(i, v)
    sums.at[i][v] = hn::IfThenElse(hn::Gt(sums.at[i][v], high), high, sums.at[i][v]);
  }
  ASHLAR_FOR_SUMS(i, v)
  hn::StoreU(sums.at[i][v], d, o.c + o.c_rows[i] + v * lanes);
}

// C's last vector is cut: element by element, from a copy of the sums with rows of `width`.
template <class T>
HWY_NOINLINE void StorePart(const RowOperands<T>& o, const T* sums, std::int64_t width) {
  for (std::int64_t i = 0; i < o.rows; ++i, sums += width) {
    T* c = o.c + o.c_rows[i];
    for (std::int64_t j = 0; j < o.columns; ++j) {
      T sum = sums[j];
      if (o.accumulate) sum += c[j];
      if (o.finish != nullptr) {
        if (o.finish->bias != nullptr) sum += o.finish->bias[j];
        if (o.finish->addend != nullptr) sum += o.finish->addend[o.addend_rows[i] + j];
        if (sum < o.finish->low) sum = o.finish->low;
        if (sum > o.finish->high) sum = o.finish->high;
      }
      c[j] = sum;
    }
  }
}

template <int kRows, int kVectors, class T>
HWY_NOINLINE void MultiplyBlock(const RowOperands<T>& o) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  RowSums<kRows, kVectors, V> sums;
  ASHLAR_FOR_SUMS(i, v) {
    __builtin_prefetch(o.c + o.c_rows[i] + v * static_cast<std::int64_t>(hn::Lanes(d)), 1, 3);
    sums.at[i][v] = hn::Zero(d);
  }
  const T *b = o.b, *next = o.next != nullptr ? o.next : o.b;
  for (std::int64_t s = 0; s < o.segments; ++s) {
    AddSegment<kRows, kVectors>(o, o.a + o.a_segments[s],
                                o.b_segments != nullptr ? o.b + o.b_segments[s] : b, next, sums);
    b += o.depth * o.b_row;
    next += o.depth * (64 / static_cast<std::int64_t>(sizeof(T)));
  }
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  if (o.columns == kVectors * lanes) return StoreWhole<kRows, kVectors>(o, sums);
  alignas(64) T copy[kRows * kVectors * hn::MaxLanes(d)];
  ASHLAR_FOR_SUMS(i, v) hn::StoreU(sums.at[i][v], d, copy + (i * kVectors + v) * lanes);
  StorePart(o, copy, kVectors * lanes);
}
#undef ASHLAR_FOR_SUMS

// The block of exactly o.rows rows.
template <int kRows, int kVectors, class T>
void MultiplyRows(const RowOperands<T>& o) {
  if constexpr (kRows > 1) {
    if (o.rows < kRows) return MultiplyRows<kRows - 1, kVectors>(o);
  }
  MultiplyBlock<kRows, kVectors>(o);
}

// And of as few vectors as hold its columns.
template <int kVectors, class T>
void MultiplyColumns(const RowOperands<T>& o) {
  if constexpr (kVectors > 1) {
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>()));
    if (o.columns <= (kVectors - 1) * lanes) return MultiplyColumns<kVectors - 1>(o);
  }
  MultiplyRows<kMostProductRows, kVectors>(o);
}

template <class T>
const RowProduct<T>& MakeRowProduct() {
  static const RowProduct<T> product = {
      kProductVectors * static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>())),
      MultiplyColumns<kProductVectors, T>};
  return product;
}

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard

// Compiled once per SIMD target; see tile_product.cpp.
#if defined(ASHLAR_CPU_KERNELS_TILE_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASHLAR_CPU_KERNELS_TILE_PRODUCT_INL_H_
#undef ASHLAR_CPU_KERNELS_TILE_PRODUCT_INL_H_
#else
#define ASHLAR_CPU_KERNELS_TILE_PRODUCT_INL_H_
#endif

#include <hwy/highway.h>

#include "cpu/kernels/tile_product.hpp"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A block of kRows x kVectors vectors of C stays in registers while k runs. Without the unrolling
// it would be an array in memory.
template <int kRows, int kVectors, class T>
HWY_INLINE void BlockProduct(const TileOperands<T>& o, std::int64_t row, std::int64_t column) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  using V = hn::Vec<decltype(d)>;
  V sums[kRows][kVectors];
  T* c = o.c + row * o.c_row + column;
#pragma GCC unroll 6
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 6
    for (int j = 0; j < kVectors; ++j)
      sums[i][j] = o.accumulate ? hn::LoadU(d, c + i * o.c_row + j * lanes) : hn::Zero(d);
  const T* a = o.a + row * o.a_row;
  const T* b = o.b + column;
  for (std::int64_t l = 0; l < o.k; ++l, a += o.a_column, b += o.b_row) {
    V right[kVectors];
#pragma GCC unroll 6
    for (int j = 0; j < kVectors; ++j) right[j] = hn::LoadU(d, b + j * lanes);
#pragma GCC unroll 6
    for (int i = 0; i < kRows; ++i) {
      const V left = hn::Set(d, a[i * o.a_row]);
#pragma GCC unroll 6
      for (int j = 0; j < kVectors; ++j) sums[i][j] = hn::MulAdd(left, right[j], sums[i][j]);
    }
  }
#pragma GCC unroll 6
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 6
    for (int j = 0; j < kVectors; ++j) hn::StoreU(sums[i][j], d, c + i * o.c_row + j * lanes);
}

template <int kVectors, class T>
HWY_INLINE void ColumnStrip(const TileOperands<T>& o, std::int64_t column) {
  std::int64_t row = 0;
  for (; row + 6 <= o.m; row += 6) BlockProduct<6, kVectors>(o, row, column);
  switch (o.m - row) {
    case 5: return BlockProduct<5, kVectors>(o, row, column);
    case 4: return BlockProduct<4, kVectors>(o, row, column);
    case 3: return BlockProduct<3, kVectors>(o, row, column);
    case 2: return BlockProduct<2, kVectors>(o, row, column);
    case 1: return BlockProduct<1, kVectors>(o, row, column);
    default: return;
  }
}

template <class T>
void Product(const TileOperands<T>& o) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  // 6 x 4 accumulators, 4 operands and a broadcast need the 32 registers that come with 64-byte
  // vectors.
  constexpr int kWide = HWY_MAX_BYTES >= 64 ? 4 : 2;
  std::int64_t column = 0;
  for (; column + kWide * lanes <= o.n; column += kWide * lanes) ColumnStrip<kWide>(o, column);
  for (; column + 2 * lanes <= o.n; column += 2 * lanes) ColumnStrip<2>(o, column);
  for (; column < o.n; column += lanes) ColumnStrip<1>(o, column);
}

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard

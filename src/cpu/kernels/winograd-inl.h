// Winograd input, filter and output transforms. Compiled once per SIMD target.
#if defined(ASHLAR_CPU_KERNELS_WINOGRAD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASHLAR_CPU_KERNELS_WINOGRAD_INL_H_
#undef ASHLAR_CPU_KERNELS_WINOGRAD_INL_H_
#else
#define ASHLAR_CPU_KERNELS_WINOGRAD_INL_H_
#endif

#include <hwy/highway.h>

#include <cstring>

#include "base/winograd.hpp"
#include "cpu/kernels/winograd.hpp"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using WinogradTag = hn::ScalableTag<float>;
using WinogradVector = hn::Vec<WinogradTag>;

// Interpolation points of n = 6 and derived constants. Points come in pairs +-p whose matrix rows
// differ only in the sign of every second entry: even and odd parts are computed once for both.
inline constexpr double kPointA = kWinogradPoints6[0], kPointB = kWinogradPoints6[1];
inline constexpr double kSquareA = kPointA * kPointA, kSquareB = kPointB * kPointB;

HWY_INLINE WinogradVector Constant(double value) {
  return hn::Set(WinogradTag(), static_cast<float>(value));
}

// v = B^T x.
HWY_INLINE void InputAxis(const WinogradVector (&x)[6], WinogradVector (&v)[6]) {
  const auto a = Constant(kPointA), b = Constant(kPointB);
  const auto square_a = Constant(kSquareA), square_b = Constant(kSquareB);
  const auto both = Constant(kSquareA * kSquareB), sum = Constant(kSquareA + kSquareB);
  v[0] = hn::MulAdd(both, x[0], hn::NegMulAdd(sum, x[2], x[4]));
  v[5] = hn::MulAdd(both, x[1], hn::NegMulAdd(sum, x[3], x[5]));
  const auto even_a = hn::NegMulAdd(square_b, x[2], x[4]);
  const auto odd_a = hn::NegMulAdd(square_b, x[1], x[3]);
  v[1] = hn::MulAdd(a, odd_a, even_a);
  v[2] = hn::NegMulAdd(a, odd_a, even_a);
  const auto even_b = hn::NegMulAdd(square_a, x[2], x[4]);
  const auto odd_b = hn::NegMulAdd(square_a, x[1], x[3]);
  v[3] = hn::MulAdd(b, odd_b, even_b);
  v[4] = hn::NegMulAdd(b, odd_b, even_b);
}

HWY_INLINE void InputAxis(const WinogradVector (&x)[4], WinogradVector (&v)[4]) {
  v[0] = hn::Sub(x[2], x[0]);
  v[1] = hn::Add(x[2], x[1]);
  v[2] = hn::Sub(x[2], x[1]);
  v[3] = hn::Sub(x[3], x[1]);
}

// u = G w for 3 or 4 taps.
template <int kTaps>
HWY_INLINE void FilterAxis(const WinogradVector (&w)[kTaps], WinogradVector (&u)[6]) {
  constexpr double kScaleA = 1.0 / (2 * kSquareA * (kSquareA - kSquareB));
  constexpr double kScaleB = 1.0 / (2 * kSquareB * (kSquareB - kSquareA));
  u[0] = hn::Mul(Constant(1.0 / (kSquareA * kSquareB)), w[0]);
  const auto even_a =
      hn::MulAdd(Constant(kScaleA * kSquareA), w[2], hn::Mul(Constant(kScaleA), w[0]));
  const auto even_b =
      hn::MulAdd(Constant(kScaleB * kSquareB), w[2], hn::Mul(Constant(kScaleB), w[0]));
  auto odd_a = hn::Mul(Constant(kScaleA * kPointA), w[1]);
  auto odd_b = hn::Mul(Constant(kScaleB * kPointB), w[1]);
  if constexpr (kTaps == 4) {
    odd_a = hn::MulAdd(Constant(kScaleA * kPointA * kSquareA), w[3], odd_a);
    odd_b = hn::MulAdd(Constant(kScaleB * kPointB * kSquareB), w[3], odd_b);
  }
  u[1] = hn::Add(even_a, odd_a);
  u[2] = hn::Sub(even_a, odd_a);
  u[3] = hn::Add(even_b, odd_b);
  u[4] = hn::Sub(even_b, odd_b);
  u[5] = w[kTaps - 1];
}

template <int kTaps>
HWY_INLINE void FilterAxis(const WinogradVector (&w)[kTaps], WinogradVector (&u)[4]) {
  const auto half = Constant(0.5);
  auto even = hn::Mul(half, w[0]);
  if constexpr (kTaps == 3) even = hn::MulAdd(half, w[2], even);
  u[0] = hn::Neg(w[0]);
  u[1] = hn::MulAdd(half, w[1], even);
  u[2] = hn::NegMulAdd(half, w[1], even);
  u[3] = w[kTaps - 1];
}

// y = A^T m for 3 or 4 outputs of 6 points, 2 or 3 of 4.
template <int kOutputs>
HWY_INLINE void OutputAxis(const WinogradVector (&m)[6], WinogradVector (&y)[kOutputs]) {
  const auto even_a = hn::Add(m[1], m[2]), odd_a = hn::Sub(m[1], m[2]);
  const auto even_b = hn::Add(m[3], m[4]), odd_b = hn::Sub(m[3], m[4]);
  y[0] = hn::Add(m[0], hn::Add(even_a, even_b));
  y[1] = hn::MulAdd(Constant(kPointA), odd_a, hn::Mul(Constant(kPointB), odd_b));
  const auto square = hn::MulAdd(Constant(kSquareA), even_a, hn::Mul(Constant(kSquareB), even_b));
  if constexpr (kOutputs == 3) {
    y[2] = hn::Add(square, m[5]);
  } else {
    y[2] = square;
    y[3] = hn::MulAdd(Constant(kPointA * kSquareA), odd_a,
                      hn::MulAdd(Constant(kPointB * kSquareB), odd_b, m[5]));
  }
}

template <int kOutputs>
HWY_INLINE void OutputAxis(const WinogradVector (&m)[4], WinogradVector (&y)[kOutputs]) {
  const auto even = hn::Add(m[1], m[2]), odd = hn::Sub(m[1], m[2]);
  y[0] = hn::Add(m[0], even);
  if constexpr (kOutputs == 2) {
    y[1] = hn::Add(odd, m[3]);
  } else {
    y[1] = odd;
    y[2] = hn::Add(even, m[3]);
  }
}

template <int kPoints>
void WinogradInput(const float* HWY_RESTRICT x, std::int64_t row, std::int64_t pixel,
                   std::int64_t channels, float* HWY_RESTRICT v, std::int64_t point) {
  const WinogradTag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t c = 0; c < channels; c += lanes) {
    WinogradVector half[kPoints][kPoints];  // [column][point of the first axis]
#pragma GCC unroll 6
    for (int j = 0; j < kPoints; ++j) {
      WinogradVector column[kPoints];
#pragma GCC unroll 6
      for (int i = 0; i < kPoints; ++i) column[i] = hn::LoadU(d, x + i * row + j * pixel + c);
      InputAxis(column, half[j]);
    }
#pragma GCC unroll 6
    for (int i = 0; i < kPoints; ++i) {
      WinogradVector line[kPoints], result[kPoints];
#pragma GCC unroll 6
      for (int j = 0; j < kPoints; ++j) line[j] = half[j][i];
      InputAxis(line, result);
#pragma GCC unroll 6
      for (int j = 0; j < kPoints; ++j) hn::StoreU(result[j], d, v + (i * kPoints + j) * point + c);
    }
  }
}

template <int kPoints, int kTaps>
void WinogradFilter(const float* HWY_RESTRICT w, std::int64_t row, std::int64_t tap,
                    std::int64_t channels, float* HWY_RESTRICT u, std::int64_t point) {
  const WinogradTag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t c = 0; c < channels; c += lanes) {
    WinogradVector half[kTaps][kPoints];
#pragma GCC unroll 4
    for (int j = 0; j < kTaps; ++j) {
      WinogradVector column[kTaps];
#pragma GCC unroll 4
      for (int i = 0; i < kTaps; ++i) column[i] = hn::LoadU(d, w + i * row + j * tap + c);
      FilterAxis<kTaps>(column, half[j]);
    }
#pragma GCC unroll 6
    for (int i = 0; i < kPoints; ++i) {
      WinogradVector line[kTaps], result[kPoints];
#pragma GCC unroll 4
      for (int j = 0; j < kTaps; ++j) line[j] = half[j][i];
      FilterAxis<kTaps>(line, result);
#pragma GCC unroll 6
      for (int j = 0; j < kPoints; ++j) hn::StoreU(result[j], d, u + (i * kPoints + j) * point + c);
    }
  }
}

// Clamp that propagates NaN.
HWY_INLINE WinogradVector Clamp(WinogradVector sum, WinogradVector low, WinogradVector high) {
#if HWY_ARCH_X86
  // x86 min and max return the second operand if one is NaN.
  return hn::Min(high, hn::Max(low, sum));
#else
  sum = hn::IfThenElse(hn::Lt(sum, low), low, sum);
  return hn::IfThenElse(hn::Gt(sum, high), high, sum);
#endif
}

HWY_INLINE WinogradVector ApplyPostOps(WinogradVector sum, WinogradVector factor,
                                       WinogradVector offset, WinogradVector residual,
                                       const WinogradPostOps& post_ops) {
  const WinogradTag d;
  sum = hn::Add(hn::MulAdd(sum, factor, offset), residual);
  return Clamp(sum, hn::Set(d, post_ops.low), hn::Set(d, post_ops.high));
}

// kFinishes: tile.post_ops is set; kAdds: with a residual.
template <int kPoints, int kOutputs, bool kFinishes, bool kAdds>
HWY_INLINE void WriteTile(const float* HWY_RESTRICT m, std::int64_t point, std::int64_t channels,
                          const WinogradTile& tile) {
  const WinogradTag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const WinogradPostOps f = kFinishes ? *tile.post_ops : WinogradPostOps();
  const std::int64_t to_row = tile.row, to_pixel = tile.pixel;
  const std::int64_t rows = tile.rows, columns = tile.columns;
  for (std::int64_t c = 0; c < channels; c += lanes) {
    WinogradVector half[kPoints][kOutputs];
#pragma GCC unroll 6
    for (int j = 0; j < kPoints; ++j) {
      WinogradVector column[kPoints];
#pragma GCC unroll 6
      for (int i = 0; i < kPoints; ++i) column[i] = hn::LoadU(d, m + (i * kPoints + j) * point + c);
      OutputAxis<kOutputs>(column, half[j]);
    }
    WinogradVector factor = hn::Zero(d), offset = hn::Zero(d);
    if constexpr (kFinishes) {
      factor = hn::LoadU(d, f.factor + c);
      offset = hn::LoadU(d, f.offset + c);
    }
    float* to = tile.first + c;
    const float* from = kAdds ? f.residual + c : nullptr;
#pragma GCC unroll 4
    for (int i = 0; i < kOutputs; ++i, to += to_row) {
      if (i >= rows) break;
      WinogradVector line[kPoints], result[kOutputs];
#pragma GCC unroll 6
      for (int j = 0; j < kPoints; ++j) line[j] = half[j][i];
      OutputAxis<kOutputs>(line, result);
#pragma GCC unroll 4
      for (int j = 0; j < kOutputs; ++j) {
        if (j >= columns) break;
        if constexpr (kFinishes) {
          auto residual = hn::Zero(d);
          if constexpr (kAdds) residual = hn::LoadU(d, from + j * f.residual_pixel);
          result[j] = ApplyPostOps(result[j], factor, offset, residual, f);
        }
        hn::StoreU(result[j], d, to + j * to_pixel);
      }
      if constexpr (kAdds) from += f.residual_row;
    }
  }
}

template <int kPoints, int kOutputs>
void WinogradOutput(const float* HWY_RESTRICT m, std::int64_t point, std::int64_t channels,
                    const WinogradTile& tile) {
  if (tile.post_ops == nullptr)
    WriteTile<kPoints, kOutputs, false, false>(m, point, channels, tile);
  else if (tile.post_ops->residual == nullptr)
    WriteTile<kPoints, kOutputs, true, false>(m, point, channels, tile);
  else
    WriteTile<kPoints, kOutputs, true, true>(m, point, channels, tile);
}

inline void WinogradPostOpsRow(const float* HWY_RESTRICT sums, std::int64_t count,
                               const WinogradPostOps& post_ops, float* HWY_RESTRICT y) {
  const WinogradTag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto factor = hn::Set(d, *post_ops.factor), offset = hn::Set(d, *post_ops.offset);
  for (std::int64_t i = 0; i < count; i += lanes) {
    const std::int64_t there = count - i;
    const float* from = post_ops.residual != nullptr ? post_ops.residual + i : nullptr;
    if (there >= lanes) {
      const auto residual = from != nullptr ? hn::LoadU(d, from) : hn::Zero(d);
      hn::StoreU(ApplyPostOps(hn::LoadU(d, sums + i), factor, offset, residual, post_ops), d,
                 y + i);
      continue;
    }
#if HWY_TARGET <= HWY_AVX3
    const auto mask = hn::FirstN(d, static_cast<std::size_t>(there));
    const auto sum = hn::MaskedLoad(mask, d, sums + i);
    const auto residual = from != nullptr ? hn::MaskedLoad(mask, d, from) : hn::Zero(d);
    hn::BlendedStore(ApplyPostOps(sum, factor, offset, residual, post_ops), mask, d, y + i);
#else
    alignas(64) float sum[hn::MaxLanes(d)] = {}, residual[hn::MaxLanes(d)] = {};
    const auto bytes = static_cast<std::size_t>(there) * sizeof(float);
    std::memcpy(sum, sums + i, bytes);
    if (from != nullptr) std::memcpy(residual, from, bytes);
    hn::StoreU(ApplyPostOps(hn::LoadU(d, sum), factor, offset, hn::LoadU(d, residual), post_ops), d,
               sum);
    std::memcpy(y + i, sum, bytes);
#endif
  }
}

template <int kOutputs, int kTaps>
const WinogradKernel& MakeWinogradKernel() {
  constexpr int kPoints = kOutputs + kTaps - 1;
  static const WinogradKernel kernel = {static_cast<std::int64_t>(hn::Lanes(WinogradTag())),
                                        WinogradInput<kPoints>, WinogradFilter<kPoints, kTaps>,
                                        WinogradOutput<kPoints, kOutputs>, WinogradPostOpsRow};
  return kernel;
}

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard

// Rotary position embedding of rows. Compiled once per SIMD target.
#if defined(ASHLAR_CPU_KERNELS_ROTATE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASHLAR_CPU_KERNELS_ROTATE_INL_H_
#undef ASHLAR_CPU_KERNELS_ROTATE_INL_H_
#else
#define ASHLAR_CPU_KERNELS_ROTATE_INL_H_
#endif

#include <hwy/highway.h>

#include <cmath>
#include <type_traits>

#include "cpu/kernels/rotate.hpp"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Taylor series of sin(r) / r and cos(r) in r^2: below 1e-11 for |r| <= pi / 4.
inline constexpr double kSinSeries[] = {1.0,
                                        -1.0 / 6.0,
                                        1.0 / 120.0,
                                        -1.0 / 5040.0,
                                        1.0 / 362880.0,
                                        -1.0 / 39916800.0,
                                        1.0 / 6227020800.0};
inline constexpr double kCosSeries[] = {
    1.0, -1.0 / 2.0, 1.0 / 24.0, -1.0 / 720.0, 1.0 / 40320.0, -1.0 / 3628800.0, 1.0 / 479001600.0};

template <class D, class V, std::size_t kCount>
HWY_INLINE V Series(D d, V x, const double (&c)[kCount]) {
  V result = hn::Set(d, c[kCount - 1]);
  for (std::size_t i = kCount - 1; i-- > 0;) result = hn::MulAdd(result, x, hn::Set(d, c[i]));
  return result;
}

template <class D, class V>
HWY_INLINE void SinCosOf(D d, V angle, V& sin, V& cos) {
  // pi / 2 in two parts. The first has 33 bits: its multiples are exact up to 2^20.
  const V turns = hn::Round(hn::Mul(angle, hn::Set(d, 0.6366197723675814)));
  V r = hn::NegMulAdd(turns, hn::Set(d, 0x1.921fb544p+0), angle);
  r = hn::NegMulAdd(turns, hn::Set(d, 0x1.0b4611a626331p-34), r);
  const V square = hn::Mul(r, r);
  const V s = hn::Mul(r, Series(d, square, kSinSeries)), c = Series(d, square, kCosSeries);
  // Quadrants 0 to 3: (sin, cos) = (s, c), (c, -s), (-s, -c), (-c, s).
  const V quarter = hn::Mul(turns, hn::Set(d, 0.25));
  const V quadrant = hn::Mul(hn::Sub(quarter, hn::Floor(quarter)), hn::Set(d, 4.0));
  const auto first = hn::Eq(quadrant, hn::Set(d, 1.0)), third = hn::Eq(quadrant, hn::Set(d, 3.0));
  const auto swapped = hn::Or(first, third);
  const auto back = hn::Gt(quadrant, hn::Set(d, 1.5));
  const auto left = hn::Or(first, hn::Eq(quadrant, hn::Set(d, 2.0)));
  const V sin_size = hn::IfThenElse(swapped, c, s), cos_size = hn::IfThenElse(swapped, s, c);
  sin = hn::IfThenElse(back, hn::Neg(sin_size), sin_size);
  cos = hn::IfThenElse(left, hn::Neg(cos_size), cos_size);
}

template <class T>
void Angles(double position, const double* frequencies, std::int64_t n, double scale, T* cos,
            T* sin) {
  std::int64_t i = 0;
  if constexpr (std::is_same_v<T, float>) {
    const hn::ScalableTag<double> d;
    const hn::Rebind<float, decltype(d)> narrow;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const auto factor = hn::Set(d, scale);
    for (; i + lanes <= n; i += lanes) {
      auto s = hn::Zero(d), c = s;
      SinCosOf(d, hn::Mul(hn::Set(d, position), hn::LoadU(d, frequencies + i)), s, c);
      hn::StoreU(hn::DemoteTo(narrow, hn::Mul(c, factor)), narrow, cos + i);
      hn::StoreU(hn::DemoteTo(narrow, hn::Mul(s, factor)), narrow, sin + i);
    }
  }
  for (; i < n; ++i) {
    const double angle = position * frequencies[i];
    cos[i] = static_cast<T>(std::cos(angle) * scale);
    sin[i] = static_cast<T>(std::sin(angle) * scale);
  }
}

// Whether non-temporal stores of whole vectors are possible at these addresses.
template <class T>
HWY_INLINE bool IsAligned(const T* first, const T* second) {
  const std::size_t bytes = hn::Lanes(hn::ScalableTag<T>()) * sizeof(T);
  return (reinterpret_cast<std::uintptr_t>(first) | reinterpret_cast<std::uintptr_t>(second)) %
             bytes ==
         0;
}

template <class T>
void Halves(const T* x, const T* cos, const T* sin, std::int64_t n, T* y, bool stream) {
  const auto rotate = [&](auto d, std::int64_t i, bool streams) HWY_ATTR {
    const auto u = hn::LoadU(d, x + i), v = hn::LoadU(d, x + n + i);
    const auto c = hn::LoadU(d, cos + i), s = hn::LoadU(d, sin + i);
    const auto first = hn::NegMulAdd(v, s, hn::Mul(u, c));
    const auto second = hn::MulAdd(u, s, hn::Mul(v, c));
    if (streams) {
      hn::Stream(first, d, y + i);
      hn::Stream(second, d, y + n + i);
    } else {
      hn::StoreU(first, d, y + i);
      hn::StoreU(second, d, y + n + i);
    }
  };
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const bool streams = stream && IsAligned(y, y + n);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) rotate(d, i, streams);
  for (; i < n; ++i) rotate(hn::CappedTag<T, 1>(), i, false);
}

template <class T>
void Interleaved(const T* x, const T* cos, const T* sin, std::int64_t n, T* y, bool) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    auto u = hn::Zero(d), v = u;
    hn::LoadInterleaved2(d, x + 2 * i, u, v);
    const auto c = hn::LoadU(d, cos + i), s = hn::LoadU(d, sin + i);
    hn::StoreInterleaved2(hn::NegMulAdd(v, s, hn::Mul(u, c)), hn::MulAdd(u, s, hn::Mul(v, c)), d,
                          y + 2 * i);
  }
  for (; i < n; ++i) {
    const T u = x[2 * i], v = x[2 * i + 1];
    y[2 * i] = u * cos[i] - v * sin[i];
    y[2 * i + 1] = v * cos[i] + u * sin[i];
  }
}

template <class T>
constexpr RotateRows<T> kRotateRows = {&Angles<T>, &Halves<T>, &Interleaved<T>};

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard

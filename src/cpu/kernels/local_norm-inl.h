// The power s^-beta of local response normalisation. Compiled once per SIMD target.
#if defined(ASHLAR_CPU_KERNELS_LOCAL_NORM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASHLAR_CPU_KERNELS_LOCAL_NORM_INL_H_
#undef ASHLAR_CPU_KERNELS_LOCAL_NORM_INL_H_
#else
#define ASHLAR_CPU_KERNELS_LOCAL_NORM_INL_H_
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <cmath>
#include <limits>

#include "cpu/kernels/local_norm.hpp"
#include "cpu/kernels/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Powers computed by square roots: faster and more accurate than exp(-beta * log(s)).
enum class Power { three_quarters, half, one, any };

// s^-beta by exp and log; scalar pow where those leave their range.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> GeneralPower(D d, hn::Vec<D> s, T beta) {
  constexpr double kMaxExponent = sizeof(T) == 4 ? 80.0 : 700.0;
  const auto normal = hn::And(hn::Ge(s, hn::Set(d, std::numeric_limits<T>::min())),
                              hn::Le(s, hn::Set(d, std::numeric_limits<T>::max())));
  const auto base = hn::IfThenElse(normal, s, hn::Set(d, T{1}));
  const auto exponent = hn::Mul(hn::Set(d, -beta), hn::Log(d, base));
  const auto small = hn::Le(hn::Abs(exponent), hn::Set(d, static_cast<T>(kMaxExponent)));
  if (HWY_LIKELY(hn::AllTrue(d, hn::And(normal, small)))) return hn::Exp(d, exponent);
  HWY_ALIGN T lanes[hn::MaxLanes(D())];
  hn::Store(s, d, lanes);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) lanes[i] = std::pow(lanes[i], -beta);
  return hn::Load(d, lanes);
}

template <Power kPower, class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> InversePower(D d, hn::Vec<D> s, T beta) {
  const auto one = hn::Set(d, T{1});
  if constexpr (kPower == Power::one) return hn::Div(one, s);
  if constexpr (kPower == Power::half) return hn::Div(one, hn::Sqrt(s));
  if constexpr (kPower == Power::three_quarters) {
    const auto root = hn::Sqrt(s);
    return hn::Div(one, hn::Mul(root, hn::Sqrt(root)));
  }
  return GeneralPower(d, s, beta);
}

template <Power kPower, class T>
void DividedBy(const T* sums, T k, T factor, T beta, std::int64_t n, T* power, T* over_s) {
  const hn::ScalableTag<T> d;
  const auto s_of = [&](hn::Vec<decltype(d)> sum)
                        HWY_ATTR { return hn::MulAdd(hn::Set(d, factor), sum, hn::Set(d, k)); };
  // over_s first: the outputs may alias the sums.
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i < n; i += lanes) {
    const auto rest = static_cast<std::size_t>(n - i);
    const bool whole = n - i >= lanes;
    const auto s = s_of(whole ? hn::LoadU(d, sums + i) : LoadPart(d, sums + i, rest));
    const auto result = InversePower<kPower>(d, s, beta);
    if (over_s != nullptr) {
      const auto quotient = hn::Div(result, s);
      if (whole)
        hn::StoreU(quotient, d, over_s + i);
      else
        StorePart(d, quotient, over_s + i, rest);
    }
    if (whole)
      hn::StoreU(result, d, power + i);
    else
      StorePart(d, result, power + i, rest);
  }
}

template <class T>
void LocalNorm(const T* sums, T k, T factor, T beta, std::int64_t n, T* power, T* over_s) {
  if (beta == T{0.75})
    return DividedBy<Power::three_quarters>(sums, k, factor, beta, n, power, over_s);
  if (beta == T{0.5}) return DividedBy<Power::half>(sums, k, factor, beta, n, power, over_s);
  if (beta == T{1}) return DividedBy<Power::one>(sums, k, factor, beta, n, power, over_s);
  DividedBy<Power::any>(sums, k, factor, beta, n, power, over_s);
}

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard

// The CTC recursion step in log space. Compiled once per SIMD target.
#if defined(ASHLAR_CPU_KERNELS_LOG_SUM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASHLAR_CPU_KERNELS_LOG_SUM_INL_H_
#undef ASHLAR_CPU_KERNELS_LOG_SUM_INL_H_
#else
#define ASHLAR_CPU_KERNELS_LOG_SUM_INL_H_
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <limits>

#include "cpu/kernels/log_sum.hpp"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> LogSumOf(D d, hn::Vec<D> a, hn::Vec<D> b, hn::Vec<D> c) {
  const auto nothing = hn::Set(d, -std::numeric_limits<T>::infinity());
  const auto largest = hn::Max(hn::Max(a, b), c);
  const auto absent = hn::Eq(largest, nothing);
  const auto shift = hn::IfThenElse(absent, hn::Zero(d), largest);
  const auto sum = hn::Add(hn::Add(hn::Exp(d, hn::Sub(a, shift)), hn::Exp(d, hn::Sub(b, shift))),
                           hn::Exp(d, hn::Sub(c, shift)));
  const auto result = hn::IfThenElse(absent, nothing, hn::Add(largest, hn::Log(d, sum)));
  // Highway's Exp returns 0 for NaN.
  const auto all = hn::Add(hn::Add(a, b), c);
  const auto wrong = hn::Or(hn::IsNaN(all), hn::Gt(all, hn::Set(d, std::numeric_limits<T>::max())));
  return hn::IfThenElse(wrong, hn::Set(d, std::numeric_limits<T>::quiet_NaN()), result);
}

template <class T>
void LogSumRow(const T* x, const T* skip, std::int64_t n, T* y) {
  const auto step = [&](auto d, std::int64_t s) HWY_ATTR {
    // Selected, not added as -inf: a disallowed term must not count even if it is NaN.
    const auto allowed = hn::Eq(hn::LoadU(d, skip + s), hn::Zero(d));
    const auto skipped = hn::IfThenElse(allowed, hn::LoadU(d, x + s - 2),
                                        hn::Set(d, -std::numeric_limits<T>::infinity()));
    hn::StoreU(LogSumOf(d, hn::LoadU(d, x + s), hn::LoadU(d, x + s - 1), skipped), d, y + s);
  };
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t s = 0;
  for (; s + lanes <= n; s += lanes) step(d, s);
  for (; s < n; ++s) step(hn::CappedTag<T, 1>(), s);
}

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard

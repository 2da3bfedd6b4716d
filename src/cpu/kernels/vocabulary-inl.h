// Rows of logits over a vocabulary. Compiled once per SIMD target.
#if defined(ASHLAR_CPU_KERNELS_VOCABULARY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASHLAR_CPU_KERNELS_VOCABULARY_INL_H_
#undef ASHLAR_CPU_KERNELS_VOCABULARY_INL_H_
#else
#define ASHLAR_CPU_KERNELS_VOCABULARY_INL_H_
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <cstring>
#include <limits>

#include "cpu/kernels/exp-inl.h"
#include "cpu/kernels/float_math-inl.h"
#include "cpu/kernels/loops-inl.h"
#include "cpu/kernels/vocabulary.hpp"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Four independent sums and maxima, since the latency of one limits a row.
template <class T>
ExpSum<T> ExpSumOf(const T* x, T shift, std::int64_t n, const T* prefetch) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const T lowest = -std::numeric_limits<T>::infinity();
  const auto shifts = hn::Set(d, shift);
  const auto ahead = reinterpret_cast<std::uintptr_t>(prefetch);  // may be no valid address
  auto nan = hn::IsNaN(hn::Zero(d));
  const auto take = [&](auto v, auto& sum, auto& largest) HWY_ATTR {
    nan = hn::Or(nan, hn::IsNaN(v));
    largest = hn::Max(largest, v);
    sum = hn::Add(sum, SoftmaxExp(d, hn::Sub(v, shifts)));
  };
  const auto fetch = [&](std::int64_t i) HWY_ATTR {
    if (prefetch != nullptr)
      hwy::Prefetch(reinterpret_cast<const T*>(ahead + static_cast<std::size_t>(i) * sizeof(T)));
    return hn::LoadU(d, x + i);
  };
  auto a = hn::Zero(d), b = a, c = a, e = a;
  auto p = hn::Set(d, lowest), q = p, r = p, s = p;
  std::int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    take(fetch(i), a, p);
    take(fetch(i + lanes), b, q);
    take(fetch(i + 2 * lanes), c, r);
    take(fetch(i + 3 * lanes), e, s);
  }
  for (; i + lanes <= n; i += lanes) take(fetch(i), a, p);
  if (i < n) {  // -inf adds nothing
    HWY_ALIGN T rest[hn::MaxLanes(d)];
    hn::Store(hn::Set(d, lowest), d, rest);
    std::memcpy(rest, x + i, static_cast<std::size_t>(n - i) * sizeof(T));
    take(hn::Load(d, rest), a, p);
  }
  const T sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e))));
  const T largest = hn::GetLane(hn::MaxOfLanes(d, hn::Max(hn::Max(p, q), hn::Max(r, s))));
  return {sum, hn::AllFalse(d, nan) ? largest : std::numeric_limits<T>::quiet_NaN()};
}

template <class T>
void VocabularyGradient(const T* x, T shift, T offset, T factor, std::int64_t n, T* y,
                        const RowHints& hints) {
  const hn::ScalableTag<T> d;
  const auto shifts = hn::Set(d, shift), offsets = hn::Set(d, offset), factors = hn::Set(d, factor);
  ForVectorsWithHints(d, n, y, hints, [=](std::int64_t i, auto load) HWY_ATTR {
    const auto argument = hn::Sub(load(x + i), shifts);
    auto p = argument;
    if constexpr (sizeof(T) == sizeof(float))
      p = ExpOf(d, argument);
    else  // Highway's Exp returns 0 for NaN and is wrong far beyond its largest finite result
      p = hn::IfThenElse(hn::IsNaN(argument), argument,
                         hn::Exp(d, hn::Min(argument, hn::Set(d, 1000.0))));
    return hn::Mul(hn::Sub(p, offsets), factors);
  });
}

template <class T>
constexpr VocabularyRows<T> kVocabularyRows = {&ExpSumOf<T>, &VocabularyGradient<T>};

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard

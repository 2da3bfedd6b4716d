// Rows of logits over a vocabulary. Compiled once per SIMD target.
#if defined(ASHLAR_CPU_KERNELS_VOCABULARY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASHLAR_CPU_KERNELS_VOCABULARY_INL_H_
#undef ASHLAR_CPU_KERNELS_VOCABULARY_INL_H_
#else
#define ASHLAR_CPU_KERNELS_VOCABULARY_INL_H_
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "cpu/kernels/exp-inl.h"
#include "cpu/kernels/float_math-inl.h"
#include "cpu/kernels/loops-inl.h"
#include "cpu/kernels/vocabulary.hpp"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Four independent sums, since the latency of additions limits one.
template <class T>
T ExpSum(const T* x, T shift, std::int64_t n, const T* prefetch) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> one;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto largest = hn::Set(d, shift);
  const auto ahead = reinterpret_cast<std::uintptr_t>(prefetch);  // may be no valid address
  const auto weight = [&](std::int64_t i) HWY_ATTR {
    if (prefetch != nullptr)
      hwy::Prefetch(reinterpret_cast<const T*>(ahead + static_cast<std::size_t>(i) * sizeof(T)));
    return SoftmaxExp(d, hn::Sub(hn::LoadU(d, x + i), largest));
  };
  auto a = hn::Zero(d), b = a, c = a, e = a;
  std::int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a = hn::Add(a, weight(i));
    b = hn::Add(b, weight(i + lanes));
    c = hn::Add(c, weight(i + 2 * lanes));
    e = hn::Add(e, weight(i + 3 * lanes));
  }
  for (; i + lanes <= n; i += lanes) a = hn::Add(a, weight(i));
  T sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e))));
  for (; i < n; ++i)
    sum += hn::GetLane(SoftmaxExp(one, hn::Sub(hn::LoadU(one, x + i), hn::Set(one, shift))));
  return sum;
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
    else  // Highway's Exp returns 0 for NaN
      p = hn::IfThenElse(hn::IsNaN(argument), argument, hn::Exp(d, argument));
    return hn::Mul(hn::Sub(p, offsets), factors);
  });
}

template <class T>
constexpr VocabularyRows<T> kVocabularyRows = {&ExpSum<T>, &VocabularyGradient<T>};

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard

// Searches of rows for candidates of top_k. Compiled once per SIMD target.
#if defined(ASHLAR_CPU_KERNELS_TOP_K_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASHLAR_CPU_KERNELS_TOP_K_ROWS_INL_H_
#undef ASHLAR_CPU_KERNELS_TOP_K_ROWS_INL_H_
#else
#define ASHLAR_CPU_KERNELS_TOP_K_ROWS_INL_H_
#endif

#include <hwy/highway.h>

#include "cpu/kernels/top_k_rows.hpp"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// `better(d, v)` is the mask of the lanes that are better.
template <class T, class Better>
HWY_INLINE std::int64_t FindFirst(const T* x, std::int64_t begin, std::int64_t n,
                                  const Better& better) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = begin;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    const auto m0 = better(d, hn::LoadU(d, x + i));
    const auto m1 = better(d, hn::LoadU(d, x + i + lanes));
    const auto m2 = better(d, hn::LoadU(d, x + i + 2 * lanes));
    const auto m3 = better(d, hn::LoadU(d, x + i + 3 * lanes));
    if (!hn::AllFalse(d, hn::Or(hn::Or(m0, m1), hn::Or(m2, m3)))) break;
  }
  for (; i + lanes <= n; i += lanes) {
    const auto found = hn::FindFirstTrue(d, better(d, hn::LoadU(d, x + i)));
    if (found >= 0) return i + found;
  }
  const hn::CappedTag<T, 1> one;
  for (; i < n; ++i)
    if (!hn::AllFalse(one, better(one, hn::LoadU(one, x + i)))) return i;
  return n;
}

template <class T>
std::int64_t FindBetter(const T* x, std::int64_t begin, std::int64_t n, T bound, bool largest) {
  if (largest) {
    if (bound != bound) return n;
    return FindFirst<T>(x, begin, n, [&](auto d, auto v) HWY_ATTR {
      return hn::Or(hn::Gt(v, hn::Set(d, bound)), hn::IsNaN(v));
    });
  }
  if (bound != bound)
    return FindFirst<T>(x, begin, n, [&](auto, auto v) HWY_ATTR { return hn::Eq(v, v); });
  return FindFirst<T>(x, begin, n,
                      [&](auto d, auto v) HWY_ATTR { return hn::Lt(v, hn::Set(d, bound)); });
}

template <class T>
constexpr TopKRows<T> kTopKRows = {&FindBetter<T>};

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard

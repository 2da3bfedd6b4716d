// Arithmetic on short contiguous rows. Compiled once per SIMD target.
#if defined(ASHLAR_CPU_KERNELS_ROW_OPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASHLAR_CPU_KERNELS_ROW_OPS_INL_H_
#undef ASHLAR_CPU_KERNELS_ROW_OPS_INL_H_
#else
#define ASHLAR_CPU_KERNELS_ROW_OPS_INL_H_
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <limits>

#include "cpu/kernels/float_math-inl.h"
#include "cpu/kernels/row_ops.hpp"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
using One = hn::CappedTag<T, 1>;

// Calls body(tag, i) for whole vectors, then per element for the remainder.
template <class T, class Body>
HWY_INLINE void ForRow(std::int64_t n, Body&& body) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) body(d, i);
  for (; i < n; ++i) body(One<T>(), i);
}

template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> LoadArg(D d, RowArg<T> arg, std::int64_t i) {
  return arg.per_element ? hn::LoadU(d, arg.data + i) : hn::Set(d, *arg.data);
}

template <Premap kPremap, class D>
HWY_INLINE hn::Vec<D> Map(D d, hn::Vec<D> v) {
  if constexpr (kPremap == Premap::absolute) return hn::Abs(v);
  if constexpr (kPremap == Premap::square) return hn::Mul(v, v);
  if constexpr (kPremap == Premap::one_for_zero)
    return hn::IfThenElse(hn::Eq(v, hn::Zero(d)), hn::Set(d, hn::TFromD<D>{1}), v);
  return v;
}

template <Fold kFold, class D>
HWY_INLINE hn::Vec<D> Combine(D, hn::Vec<D> a, hn::Vec<D> b) {
  if constexpr (kFold == Fold::sum) return hn::Add(a, b);
  if constexpr (kFold == Fold::product) return hn::Mul(a, b);
  const auto chosen = kFold == Fold::minimum ? hn::Min(a, b) : hn::Max(a, b);
  return hn::IfThenElse(hn::IsNaN(a), a, hn::IfThenElse(hn::IsNaN(b), b, chosen));
}

template <Fold kFold, class T>
constexpr T Neutral() {
  if constexpr (kFold == Fold::sum) return 0;
  if constexpr (kFold == Fold::product) return 1;
  if constexpr (kFold == Fold::minimum) return std::numeric_limits<T>::infinity();
  return -std::numeric_limits<T>::infinity();
}

template <Fold kFold, class D, class T = hn::TFromD<D>>
HWY_INLINE T Lanes1(D d, hn::Vec<D> v) {
  HWY_ALIGN T lanes[hn::MaxLanes(D())];
  hn::Store(v, d, lanes);
  const One<T> one;
  auto result = hn::Set(one, lanes[0]);
  for (std::size_t i = 1; i < hn::Lanes(d); ++i)
    result = Combine<kFold>(one, result, hn::Set(one, lanes[i]));
  return hn::GetLane(result);
}

// Folds element(tag, i) over i < n with four independent dependency chains.
template <Fold kFold, class T, class Element>
HWY_INLINE T FoldRow(std::int64_t n, Element&& element) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto neutral = hn::Set(d, Neutral<kFold, T>());
  auto a0 = neutral, a1 = neutral, a2 = neutral, a3 = neutral;
  std::int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a0 = Combine<kFold>(d, a0, element(d, i));
    a1 = Combine<kFold>(d, a1, element(d, i + lanes));
    a2 = Combine<kFold>(d, a2, element(d, i + 2 * lanes));
    a3 = Combine<kFold>(d, a3, element(d, i + 3 * lanes));
  }
  for (; i + lanes <= n; i += lanes) a0 = Combine<kFold>(d, a0, element(d, i));
  const One<T> one;
  const auto all = Combine<kFold>(d, Combine<kFold>(d, a0, a1), Combine<kFold>(d, a2, a3));
  auto result = hn::Set(
      one, kFold == Fold::sum ? hn::GetLane(hn::SumOfLanes(d, all)) : Lanes1<kFold>(d, all));
  for (; i < n; ++i) result = Combine<kFold>(one, result, element(one, i));
  return hn::GetLane(result);
}

template <Fold kFold, Premap kPremap, class T>
T FoldMapped(const T* x, std::int64_t n) {
  return FoldRow<kFold, T>(
      n, [&](auto d, std::int64_t i) HWY_ATTR { return Map<kPremap>(d, hn::LoadU(d, x + i)); });
}

template <Fold kFold, Premap kPremap, class T>
void FoldMappedInto(const T* x, std::int64_t n, T* accumulator) {
  ForRow<T>(n, [&](auto d, std::int64_t i) HWY_ATTR {
    const auto mapped = Map<kPremap>(d, hn::LoadU(d, x + i));
    hn::StoreU(Combine<kFold>(d, hn::LoadU(d, accumulator + i), mapped), d, accumulator + i);
  });
}

// Dispatch run-time modes to template arguments.
template <Fold kFold, class T, class Call>
HWY_INLINE auto WithPremap(Premap premap, Call&& call) {
  switch (premap) {
    case Premap::absolute: return call.template operator()<kFold, Premap::absolute>();
    case Premap::square: return call.template operator()<kFold, Premap::square>();
    case Premap::one_for_zero: return call.template operator()<kFold, Premap::one_for_zero>();
    case Premap::identity: break;
  }
  return call.template operator()<kFold, Premap::identity>();
}

template <class T, class Call>
HWY_INLINE auto WithFold(Fold fold, Premap premap, Call&& call) {
  switch (fold) {
    case Fold::product: return WithPremap<Fold::product, T>(premap, call);
    case Fold::minimum: return WithPremap<Fold::minimum, T>(premap, call);
    case Fold::maximum: return WithPremap<Fold::maximum, T>(premap, call);
    case Fold::sum: break;
  }
  return WithPremap<Fold::sum, T>(premap, call);
}

template <class T>
T FoldAny(Fold fold, Premap premap, const T* x, std::int64_t n) {
  return WithFold<T>(fold, premap, [&]<Fold kFold, Premap kPremap>() HWY_ATTR {
    return FoldMapped<kFold, kPremap>(x, n);
  });
}

template <class T>
void FoldAnyInto(Fold fold, Premap premap, const T* x, std::int64_t n, T* accumulator) {
  WithFold<T>(fold, premap, [&]<Fold kFold, Premap kPremap>() HWY_ATTR {
    FoldMappedInto<kFold, kPremap>(x, n, accumulator);
  });
}

template <class T>
T Dot(const T* a, const T* b, std::int64_t n) {
  return FoldRow<Fold::sum, T>(n, [&](auto d, std::int64_t i) HWY_ATTR {
    return hn::Mul(hn::LoadU(d, a + i), hn::LoadU(d, b + i));
  });
}

template <class T>
void DotInto(const T* a, const T* b, std::int64_t n, T* accumulator) {
  ForRow<T>(n, [&](auto d, std::int64_t i) HWY_ATTR {
    const auto sum =
        hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), hn::LoadU(d, accumulator + i));
    hn::StoreU(sum, d, accumulator + i);
  });
}

template <class T>
T SquaresAbout(const T* x, T mean, std::int64_t n) {
  return FoldRow<Fold::sum, T>(n, [&](auto d, std::int64_t i) HWY_ATTR {
    const auto difference = hn::Sub(hn::LoadU(d, x + i), hn::Set(d, mean));
    return hn::Mul(difference, difference);
  });
}

template <class T>
void SquaresAboutInto(const T* x, const T* mean, std::int64_t n, T* accumulator) {
  ForRow<T>(n, [&](auto d, std::int64_t i) HWY_ATTR {
    const auto difference = hn::Sub(hn::LoadU(d, x + i), hn::LoadU(d, mean + i));
    hn::StoreU(hn::MulAdd(difference, difference, hn::LoadU(d, accumulator + i)), d,
               accumulator + i);
  });
}

template <class T>
void Normalise(const T* x, RowArg<T> mean, RowArg<T> inv, RowArg<T> scale, RowArg<T> bias,
               std::int64_t n, T* y) {
  ForRow<T>(n, [&](auto d, std::int64_t i) HWY_ATTR {
    const auto centred =
        hn::Mul(hn::Sub(hn::LoadU(d, x + i), LoadArg(d, mean, i)), LoadArg(d, inv, i));
    hn::StoreU(hn::MulAdd(centred, LoadArg(d, scale, i), LoadArg(d, bias, i)), d, y + i);
  });
}

template <class T>
void Gradient(const T* a, const T* b, RowArg<T> c, RowArg<T> slope, RowArg<T> factor,
              std::int64_t n, T* y) {
  ForRow<T>(n, [&](auto d, std::int64_t i) HWY_ATTR {
    const auto rest = hn::Sub(hn::LoadU(d, a + i), LoadArg(d, c, i));
    const auto inner = hn::NegMulAdd(hn::LoadU(d, b + i), LoadArg(d, slope, i), rest);
    hn::StoreU(hn::Mul(inner, LoadArg(d, factor, i)), d, y + i);
  });
}

template <class T>
void Multiply(const T* a, RowArg<T> b, std::int64_t n, T* y) {
  ForRow<T>(n, [&](auto d, std::int64_t i) HWY_ATTR {
    hn::StoreU(hn::Mul(hn::LoadU(d, a + i), LoadArg(d, b, i)), d, y + i);
  });
}

template <class T>
void Axpy(T a, const T* x, std::int64_t n, T* y) {
  ForRow<T>(n, [&](auto d, std::int64_t i) HWY_ATTR {
    hn::StoreU(hn::MulAdd(hn::Set(d, a), hn::LoadU(d, x + i), hn::LoadU(d, y + i)), d, y + i);
  });
}

template <class T>
T ExpShifted(const T* x, RowArg<T> shift, std::int64_t n, T* y) {
  return FoldRow<Fold::sum, T>(n, [&](auto d, std::int64_t i) HWY_ATTR {
    const auto argument = hn::Sub(hn::LoadU(d, x + i), LoadArg(d, shift, i));
    if constexpr (sizeof(T) == sizeof(float)) {
      const auto value = ExpOf(d, argument);
      hn::StoreU(value, d, y + i);
      return value;
    } else {
      // Highway's Exp returns 0 for NaN.
      const auto value = hn::IfThenElse(hn::IsNaN(argument), argument, hn::Exp(d, argument));
      hn::StoreU(value, d, y + i);
      return value;
    }
  });
}

template <class T>
void ArgmaxInto(const T* x, T position, std::int64_t n, T* best, T* where) {
  ForRow<T>(n, [&](auto d, std::int64_t i) HWY_ATTR {
    const auto candidate = hn::LoadU(d, x + i), leader = hn::LoadU(d, best + i),
               at = hn::LoadU(d, where + i);
    const auto first = hn::Lt(at, hn::Zero(d));
    const auto overtakes = hn::Gt(candidate, leader);
    const auto turns_nan = hn::And(hn::IsNaN(candidate), hn::Not(hn::IsNaN(leader)));
    const auto wins = hn::Or(hn::Or(first, overtakes), turns_nan);
    hn::StoreU(hn::IfThenElse(wins, candidate, leader), d, best + i);
    hn::StoreU(hn::IfThenElse(wins, hn::Set(d, position), at), d, where + i);
  });
}

template <class T>
void AddWhere(const T* x, const T* where, T position, std::int64_t n, T* sums) {
  ForRow<T>(n, [&](auto d, std::int64_t i) HWY_ATTR {
    const auto here = hn::Eq(hn::LoadU(d, where + i), hn::Set(d, position));
    const auto sum = hn::Add(hn::LoadU(d, sums + i), hn::IfThenElseZero(here, hn::LoadU(d, x + i)));
    hn::StoreU(sum, d, sums + i);
  });
}

template <class T>
constexpr RowOps<T> kRowOps = {
    &FoldAny<T>,          &FoldAnyInto<T>, &Dot<T>,      &DotInto<T>,  &SquaresAbout<T>,
    &SquaresAboutInto<T>, &Normalise<T>,   &Gradient<T>, &Multiply<T>, &Axpy<T>,
    &ExpShifted<T>,       &ArgmaxInto<T>,  &AddWhere<T>};

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard

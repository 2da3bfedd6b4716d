// Elementary functions on vectors of float, computed in float: good to a few units in the last
// place over the whole range, NaN in and NaN out, results below the smallest normal number may lose
// digits. docs/numerics.md states the bounds, tests/cpu/float_math_test.cpp holds them. Polynomials
// are near-minimax fits made for these intervals.
#include <cstdint>
#include <limits>

#include "cpu/kernels/x86_instructions-inl.h"
#include "hwy/highway.h"

#if defined(ASHLAR_CPU_FLOAT_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASHLAR_CPU_FLOAT_MATH_INL_H_
#undef ASHLAR_CPU_FLOAT_MATH_INL_H_
#else
#define ASHLAR_CPU_FLOAT_MATH_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Smaller of `limit` and x, larger likewise; NaN for a NaN x. x86's instructions give the second
// operand then.
template <class V>
HWY_INLINE V AtMost(V limit, V x) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  return hn::Min(limit, x);
#else
  return hn::IfThenElse(hn::Gt(x, limit), limit, x);
#endif
}
template <class V>
HWY_INLINE V AtLeast(V limit, V x) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  return hn::Max(limit, x);
#else
  return hn::IfThenElse(hn::Lt(x, limit), limit, x);
#endif
}

// c[0] + c[1] x + c[2] x^2 + ...
template <class D, class V, std::size_t kCount>
HWY_INLINE V Horner(D d, V x, const float (&c)[kCount]) {
  V result = hn::Set(d, c[kCount - 1]);
  for (std::size_t i = kCount - 1; i-- > 0;) result = hn::MulAdd(result, x, hn::Set(d, c[i]));
  return result;
}

// 1 / x and a / b, for divisors between 1 and 2^20. AVX-512 has a 14-bit estimate that one step of
// Newton's method makes better than float, at a fifth of the price of its division.
template <class D, class V>
HWY_INLINE V FastReciprocal(D d, V x) {
#if HWY_TARGET <= HWY_AVX3
  const V estimate = hn::ApproximateReciprocal(x);
  return hn::MulAdd(estimate, hn::NegMulAdd(x, estimate, hn::Set(d, 1.0f)), estimate);
#else
  return hn::Div(hn::Set(d, 1.0f), x);
#endif
}
template <class D, class V>
HWY_INLINE V FastDivide(D d, V a, V b) {
#if HWY_TARGET <= HWY_AVX3
  return hn::Mul(a, FastReciprocal(d, b));
#else
  (void)d;
  return hn::Div(a, b);
#endif
}

// x * 2^n, for whole numbers n in [-252, 254]: in two steps, so that neither factor leaves the
// range.
template <class D, class V>
HWY_INLINE V ScaleByPower(D d, V x, V n) {
#if HWY_TARGET <= HWY_AVX3
  if constexpr (sizeof(V) == 64) return ScaleByPowers(x, n);
#endif
  const hn::Rebind<std::int32_t, D> di;
  const auto bias = hn::Set(di, 127);
  const auto whole = hn::ConvertTo(di, n);
  const auto half = hn::ShiftRight<1>(whole);
  const auto power = [&](auto exponent) HWY_ATTR {
    return hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(exponent, bias)));
  };
  return hn::Mul(hn::Mul(x, power(half)), power(hn::Sub(whole, half)));
}

// exp(x + low...) = 2^n (1 + p), n whole, for |x| < 128 log(2) or so and low far below 1.
template <class V>
struct ExpParts {
  V n, p;
};
template <class D, class V, class... Low>
HWY_INLINE ExpParts<V> SplitExp(D d, V x, Low... low) {
  static constexpr float kCoefficients[] = {4.9999994e-01f, 1.6666521e-01f, 4.166839e-02f,
                                            8.368745e-03f, 1.3814538e-03f};
  // Adding 1.5 * 2^23 leaves no fraction.
  const V round = hn::Set(d, 12582912.0f);
  const V n = hn::Sub(hn::MulAdd(x, hn::Set(d, 1.44269504f), round), round);
  // log(2) in two parts, the first short enough that its multiples are exact.
  V r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), x);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), r);
  ((r = hn::Add(r, low)), ...);
  return {n, hn::MulAdd(hn::Mul(r, r), Horner(d, r, kCoefficients), r)};
}

template <class D, class V>
HWY_INLINE V ExpOf(D d, V x) {
  const V inside = AtMost(hn::Set(d, 89.0f), AtLeast(hn::Set(d, -105.0f), x));
  const ExpParts<V> e = SplitExp(d, inside);
  return ScaleByPower(d, hn::Add(hn::Set(d, 1.0f), e.p), e.n);
}

// exp(x) - 1 for x <= 0.
template <class D, class V>
HWY_INLINE V Expm1OfNegative(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const ExpParts<V> e = SplitExp(d, AtLeast(hn::Set(d, -30.0f), x));
  const V power = ScaleByPower(d, one, e.n);
  return hn::MulAdd(power, e.p, hn::Sub(power, one));
}

template <class D, class V>
HWY_INLINE V LogOf(D d, V x) {
  static constexpr float kCoefficients[] = {3.3333313e-01f,  -2.500001e-01f,  2.0002124e-01f,
                                            -1.6668005e-01f, 1.4219451e-01f,  -1.24053426e-01f,
                                            1.1888709e-01f,  -1.1677505e-01f, 6.747692e-02f};
  const hn::Rebind<std::int32_t, D> di;
  constexpr float kSmallestNormal = std::numeric_limits<float>::min(), kTwo23 = 8388608.0f;
  const auto subnormal = hn::Lt(x, hn::Set(d, kSmallestNormal));
  const V scaled = hn::IfThenElse(subnormal, hn::Mul(x, hn::Set(d, kTwo23)), x);
  // x = 2^e m, m in [sqrt(1/2), sqrt(2))
  const auto offset = hn::Sub(hn::BitCast(di, scaled), hn::Set(di, 0x3f3504f3));
  const auto exponent = hn::ShiftRight<23>(offset);
  const V m =
      hn::BitCast(d, hn::Add(hn::And(offset, hn::Set(di, 0x007fffff)), hn::Set(di, 0x3f3504f3)));
  const V e = hn::Sub(hn::ConvertTo(d, exponent), hn::IfThenElseZero(subnormal, hn::Set(d, 23.0f)));
  const V f = hn::Sub(m, hn::Set(d, 1.0f));
  const V square = hn::Mul(f, f);
  V rest = hn::Mul(hn::Mul(square, f), Horner(d, f, kCoefficients));
  rest = hn::MulAdd(e, hn::Set(d, -2.12194440e-4f), rest);
  rest = hn::NegMulAdd(hn::Set(d, 0.5f), square, rest);
  V result = hn::MulAdd(e, hn::Set(d, 0.693359375f), hn::Add(f, rest));
  const V infinity = hn::Set(d, std::numeric_limits<float>::infinity());
  const V zero = hn::Zero(d);
  result = hn::IfThenElse(hn::Lt(x, infinity), result, x);  // infinity and NaN
  result = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(infinity), result);
  return hn::IfThenElse(hn::Lt(x, zero), hn::Set(d, std::numeric_limits<float>::quiet_NaN()),
                        result);
}

// log(1 + x) for 0 <= x <= 1: 2 atanh(x / (2 + x)).
template <class D, class V>
HWY_INLINE V Log1pOfUnit(D d, V x) {
  static constexpr float kCoefficients[] = {3.3333337e-01f, 1.9999442e-01f, 1.4308374e-01f,
                                            1.0714472e-01f, 1.2148461e-01f};
  const V z = FastDivide(d, x, hn::Add(hn::Set(d, 2.0f), x));
  const V square = hn::Mul(z, z);
  const V twice = hn::Add(z, z);
  return hn::MulAdd(hn::Mul(twice, square), Horner(d, square, kCoefficients), twice);
}

// exp(-|x|), 0 where that is below the normal floats, which would take a hundred cycles each.
template <class D, class V>
HWY_INLINE V ExpOfDistance(D d, V x) {
  const V distance = hn::Abs(x);
  const auto far = hn::Gt(distance, hn::Set(d, 87.3f));
  return hn::IfThenZeroElse(far, ExpOf(d, hn::Neg(hn::IfThenZeroElse(far, distance))));
}

// Neither form overflows or cancels: 1 / (1 + e) for x >= 0, else e / (1 + e), e = exp(-|x|).
template <class D, class V>
HWY_INLINE V SigmoidOf(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V e = ExpOfDistance(d, x);
  return FastDivide(d, hn::IfThenElse(hn::Ge(x, hn::Zero(d)), one, e), hn::Add(one, e));
}

// sigmoid(x) * (1 - sigmoid(x)) without cancellation: even in x.
template <class D, class V>
HWY_INLINE V SigmoidSlope(D d, V x) {
  const V e = ExpOfDistance(d, x);
  const V sum = hn::Add(hn::Set(d, 1.0f), e);
  return FastDivide(d, e, hn::Mul(sum, sum));
}

// With e = exp(-2|x|) - 1, which keeps its relative accuracy near 0: -e / (2 + e).
template <class D, class V>
HWY_INLINE V TanhOf(D d, V x) {
  const V e = Expm1OfNegative(d, hn::Mul(hn::Set(d, -2.0f), hn::Abs(x)));
  return hn::CopySign(FastDivide(d, hn::Neg(e), hn::Add(hn::Set(d, 2.0f), e)), x);
}

// The normal distribution's lower tail, Phi(-|x|), and exp(-x^2 / 2). With c = 3.5, s = 1 / (|x| +
// c) and t = 1 - 2cs:  Phi(-|x|) = exp(-x^2 / 2) s P(t).  Past 13.2 both are below the normal
// floats, which would take a hundred cycles each, and count as 0.
template <class V>
struct NormalTail {
  V tail, bell;
};
template <class D, class V>
HWY_INLINE NormalTail<V> NormalTailOf(D d, V x) {
  static constexpr float kCoefficients[] = {
      7.4441606e-01f, -5.655618e-01f,  3.1542504e-01f, -1.1605304e-01f, 1.740638e-02f,
      6.4931163e-03f, -3.1753124e-03f, -4.949448e-04f, 4.2189978e-04f,  1.10690926e-04f};
  const auto far = hn::Gt(hn::Abs(x), hn::Set(d, 13.2f));
  const V a = hn::IfThenZeroElse(far, hn::Abs(x));
  const V s = FastReciprocal(d, hn::Add(a, hn::Set(d, 3.5f)));
  const V t = hn::NegMulAdd(hn::Set(d, 7.0f), s, hn::Set(d, 1.0f));
  // -a^2 / 2 without rounding: high + low.
#if HWY_NATIVE_FMA
  const V half = hn::Mul(hn::Set(d, -0.5f), a);
  const V high = hn::Mul(half, a);
  const V low = hn::MulSub(half, a, high);
#else
  const hn::Rebind<std::uint32_t, D> du;
  const V front = hn::BitCast(d, hn::And(hn::BitCast(du, a), hn::Set(du, 0xfffff000u)));
  const V high = hn::Mul(hn::Set(d, -0.5f), hn::Mul(front, front));
  const V low = hn::Mul(hn::Set(d, -0.5f), hn::Mul(hn::Sub(a, front), hn::Add(a, front)));
#endif
  const ExpParts<V> e = SplitExp(d, high, low);
  const V bell = ScaleByPower(d, hn::Add(hn::Set(d, 1.0f), e.p), e.n);
  const V tail = hn::Mul(bell, hn::Mul(s, Horner(d, t, kCoefficients)));
  return {hn::IfThenZeroElse(far, tail), hn::IfThenZeroElse(far, bell)};
}

// Phi(x) from the tail; near 0, where that has lost a few digits, 1/2 + x P(x^2).
template <class D, class V>
HWY_INLINE V NormalDistribution(D d, V x, V tail) {
  static constexpr float kCoefficients[] = {3.9894226e-01f, -6.6490325e-02f, 9.9726752e-03f,
                                            -1.1824182e-03f, 1.0414810e-04f};
  const V inside = hn::MulAdd(x, Horner(d, hn::Mul(x, x), kCoefficients), hn::Set(d, 0.5f));
  const V outside = hn::IfThenElse(hn::Gt(x, hn::Zero(d)), hn::Sub(hn::Set(d, 1.0f), tail), tail);
  return hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(d, 0.7f)), inside, outside);
}

template <class D, class V>
HWY_INLINE V ErfOf(D d, V x) {
  static constexpr float kCoefficients[] = {1.1283791e+00f, -3.7612608e-01f, 1.1282794e-01f,
                                            -2.675507e-02f, 4.713205e-03f};
  const V magnitude = hn::Abs(x);
  const V tail = NormalTailOf(d, hn::Mul(hn::Set(d, 1.41421356f), magnitude)).tail;
  const V outside = hn::CopySign(hn::NegMulAdd(hn::Set(d, 2.0f), tail, hn::Set(d, 1.0f)), x);
  const V inside = hn::Mul(x, Horner(d, hn::Mul(x, x), kCoefficients));
  return hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0.5f)), inside, outside);
}

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

// Elementary functions on float vectors, computed in float: accurate to a few ULP over the full
// range, NaN in and NaN out; results below the smallest normal float may lose digits.
// docs/numerics.md states the bounds, tests/cpu/float_math_test.cpp checks them. Polynomials are
// near-minimax fits for these intervals.
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

// min(limit, x) and max(limit, x); NaN for NaN x. x86 instructions return the second operand then.
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

// 1 / x for 1 <= x <= 2^126. AVX-512 has a 14-bit estimate that one Newton step refines beyond
// float accuracy, at a fifth of the cost of its division.
template <class D, class V>
HWY_INLINE V FastReciprocal(D d, V x) {
#if HWY_TARGET <= HWY_AVX3
  const V estimate = hn::ApproximateReciprocal(x);
  return hn::MulAdd(estimate, hn::NegMulAdd(x, estimate, hn::Set(d, 1.0f)), estimate);
#else
  return hn::Div(hn::Set(d, 1.0f), x);
#endif
}
// a / b, nearly as accurate as a division; b as above. For a below 2^-112 the residual may be
// subnormal, which costs a hundred cycles: multiply by FastReciprocal then.
template <class V>
HWY_INLINE V FastDivide(V a, V b) {
#if HWY_TARGET <= HWY_AVX3
  const V estimate = hn::ApproximateReciprocal(b);
  const V quotient = hn::Mul(a, estimate);
  return hn::MulAdd(hn::NegMulAdd(b, quotient, a), estimate, quotient);
#else
  return hn::Div(a, b);
#endif
}

// x * 2^n, for integers n in [-252, 254]: in two steps, so that neither factor overflows.
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

// Adding it leaves the nearest integer in the low mantissa bits.
inline constexpr float kRoundToWhole = 12582912.0f;  // 1.5 * 2^23

// exp(x) = 2^n (1 + p), n integer, for |x| < 128 log(2) or so.
template <class V>
struct ExpParts {
  V n, p;
};
template <class D, class V>
HWY_INLINE ExpParts<V> SplitExp(D d, V x) {
  static constexpr float kCoefficients[] = {4.9999994e-01f, 1.6666521e-01f, 4.166839e-02f,
                                            8.368745e-03f, 1.3814538e-03f};
  const V round = hn::Set(d, kRoundToWhole);
  const V n = hn::Sub(hn::MulAdd(x, hn::Set(d, 1.44269504f), round), round);
  // log(2) in two parts; the first is short, so that its multiples are exact.
  V r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), x);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), r);
  return {n, hn::MulAdd(hn::Mul(r, r), Horner(d, r, kCoefficients), r)};
}

template <class D, class V>
HWY_INLINE V ExpOf(D d, V x) {
  const V inside = AtMost(hn::Set(d, 89.0f), AtLeast(hn::Set(d, -105.0f), x));
  const ExpParts<V> e = SplitExp(d, inside);
  return ScaleByPower(d, hn::Add(hn::Set(d, 1.0f), e.p), e.n);
}

// mantissa * 2^n where that is normal: `shifted` is n + kRoundToWhole, mantissa in [1/2, 2).
template <class D, class V>
HWY_INLINE V AddToExponent(D d, V mantissa, V shifted) {
  const hn::Rebind<std::int32_t, D> di;
  return hn::BitCast(
      d, hn::Add(hn::BitCast(di, mantissa), hn::ShiftLeft<23>(hn::BitCast(di, shifted))));
}

// 2^r for |r| <= 1/2, to 2^-23.
template <class D, class V>
HWY_INLINE V ShortExp2(D d, V r) {
  static constexpr float kCoefficients[] = {1.0f,          0.693147004f,   0.240222394f,
                                            0.0555073656f, 0.00967172626f, 0.00132644374f};
  return Horner(d, r, kCoefficients);
}

// exp(-x) for |x| <= 87.3, where it is normal.
template <class D, class V>
HWY_INLINE V ShortExpOfMinus(D d, V x) {
  static constexpr float kCoefficients[] = {
      1.0f, 1.0f, 0.49999994f, 0.166664287f, 0.0416680127f, 0.00837431662f, 0.00138435164f};
  const V round = hn::Set(d, kRoundToWhole);
  const V shifted = hn::NegMulAdd(x, hn::Set(d, 1.44269504f), round);
  const V n = hn::Sub(shifted, round);
  V r = hn::NegMulSub(n, hn::Set(d, 0.693359375f), x);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), r);
  return AddToExponent(d, Horner(d, r, kCoefficients), shifted);
}

// exp(x) - 1 = 2 (2^(n - 1) p + (2^(n - 1) - 1 / 2)), where 2^n itself may overflow.
template <class D, class V>
HWY_INLINE V Expm1Of(D d, V x) {
  const hn::Rebind<std::int32_t, D> di;
  const ExpParts<V> e = SplitExp(d, AtMost(hn::Set(d, 89.0f), AtLeast(hn::Set(d, -30.0f), x)));
  const V half =
      hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::ConvertTo(di, e.n), hn::Set(di, 126))));
  const V sum = hn::MulAdd(half, e.p, hn::Sub(half, hn::Set(d, 0.5f)));
  return hn::Add(sum, sum);
}

// exp(x) - 1 for x <= 0.
template <class D, class V>
HWY_INLINE V Expm1OfNegative(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const ExpParts<V> e = SplitExp(d, AtLeast(hn::Set(d, -30.0f), x));
  const V power = ScaleByPower(d, one, e.n);
  return hn::MulAdd(power, e.p, hn::Sub(power, one));
}

// log(x), or log(x + c) for a c of at most half an ULP of x, where kCorrected.
template <bool kCorrected, class D, class V>
HWY_INLINE V LogOfSum(D d, V x, V c) {
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
  if constexpr (kCorrected) rest = hn::Add(rest, hn::Div(c, x));
  rest = hn::NegMulAdd(hn::Set(d, 0.5f), square, rest);
  V result = hn::MulAdd(e, hn::Set(d, 0.693359375f), hn::Add(f, rest));
  const V infinity = hn::Set(d, std::numeric_limits<float>::infinity());
  const V zero = hn::Zero(d);
  result = hn::IfThenElse(hn::Lt(x, infinity), result, x);  // infinity and NaN
  result = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(infinity), result);
  return hn::IfThenElse(hn::Lt(x, zero), hn::Set(d, std::numeric_limits<float>::quiet_NaN()),
                        result);
}

template <class D, class V>
HWY_INLINE V LogOf(D d, V x) {
  return LogOfSum<false>(d, x, x);
}

// log(1 + x): the sum is rounded, and the correction is what rounding took from it.
template <class D, class V>
HWY_INLINE V Log1pOf(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V sum = hn::Add(one, x);
  const V c =
      hn::IfThenElse(hn::Gt(x, one), hn::Sub(one, hn::Sub(sum, x)), hn::Sub(x, hn::Sub(sum, one)));
  return LogOfSum<true>(d, sum, c);
}

// log(1 + x) for 0 <= x <= 1: 2 atanh(x / (2 + x)).
template <class D, class V>
HWY_INLINE V Log1pOfUnit(D d, V x) {
  static constexpr float kCoefficients[] = {3.3333337e-01f, 1.9999442e-01f, 1.4308374e-01f,
                                            1.0714472e-01f, 1.2148461e-01f};
  const V z = hn::Mul(x, FastReciprocal(d, hn::Add(hn::Set(d, 2.0f), x)));
  const V square = hn::Mul(z, z);
  const V twice = hn::Add(z, z);
  return hn::MulAdd(hn::Mul(twice, square), Horner(d, square, kCoefficients), twice);
}

// 1 / (1 + exp(-x)); 0 for subnormal results, which would cost a hundred cycles each.
template <class D, class V>
HWY_INLINE V SigmoidOf(D d, V x) {
  const V least = hn::Set(d, -87.3f);
  const V e = ShortExpOfMinus(d, AtMost(hn::Set(d, 87.3f), AtLeast(least, x)));
  const V result = FastReciprocal(d, hn::Add(hn::Set(d, 1.0f), e));
  return hn::IfThenZeroElse(hn::Lt(x, least), result);
}

// sigmoid(x) * (1 - sigmoid(x)) without cancellation: even in x. 0 for subnormal results.
template <class D, class V>
HWY_INLINE V SigmoidSlope(D d, V x) {
  const V most = hn::Set(d, 87.3f), distance = hn::Abs(x);
  const V e = ExpOf(d, hn::Neg(AtMost(most, distance)));
  const V sum = hn::Add(hn::Set(d, 1.0f), e);
  const V slope = hn::Mul(e, FastReciprocal(d, hn::Mul(sum, sum)));
  return hn::IfThenZeroElse(hn::Gt(distance, most), slope);
}

// tanh(x) = p q / (p^2 / 4 + q^2), where tanh(x / 2) = p / 2q, p = x + x^3 N(x^2), q = D(x^2).
// Errors of p and q vanish as the quotient approaches 1, which it rounds to in float from 9.012 on.
// At 9.102 the arithmetic gives exactly 1, with and without FMA.
template <class D, class V>
HWY_INLINE V TanhOf(D d, V x) {
  static constexpr float kNumerator[] = {2.97688096e-02f, 1.141550892e-04f};
  static constexpr float kDenominator[] = {1.0f, 0.113102093f, 0.00120603899f, 1.22715642e-06f};
  const V a = AtMost(hn::Set(d, 9.102f), hn::Abs(x));
  const V square = hn::Mul(a, a);
  const V p = hn::MulAdd(hn::Mul(a, square), Horner(d, square, kNumerator), a);
  const V q = Horner(d, square, kDenominator);
  const V sum = hn::MulAdd(q, q, hn::Mul(hn::Mul(hn::Set(d, 0.25f), p), p));
  return hn::CopySign(AtMost(hn::Set(d, 1.0f), hn::Mul(p, FastDivide(q, sum))), x);
}

// The normal distribution's lower tail, Phi(-a), and exp(-a^2 / 2), for 0 <= a <= kNormalTailEnd,
// where both are normal floats: Phi(-a) = exp(-a^2 / 2) N(a) / D(a).
inline constexpr float kNormalTailEnd = 12.9f;
template <class V>
struct NormalTail {
  V tail, bell;
};
template <class D, class V>
HWY_INLINE NormalTail<V> NormalTailOf(D d, V a) {
  static constexpr float kNumerator[] = {0.5f, 0.434755504f, 0.180622041f, 0.0397545733f,
                                         0.00398639496f};
  static constexpr float kDenominator[] = {1.0f,         1.66739595f,   1.19162965f,
                                           0.462573439f, 0.0996576697f, 0.00999225769f};
  // exp(-rest / 2), where rest = a^2 + 2 n log(2), with an unrounded a^2.
  static constexpr float kBell[] = {
      1.0f, -0.5f, 0.124999985f, -0.0208330359f, 0.0026042508f, -0.000261697394f, 2.16304943e-05f};
  const V round = hn::Set(d, kRoundToWhole), twice_log2 = hn::Set(d, 1.38671875f);
  const V square = hn::Mul(a, a);
  const V shifted = hn::MulAdd(square, hn::Set(d, -0.72134752f), round);
  const V n = hn::Sub(shifted, round);
#if HWY_NATIVE_FMA
  V rest = hn::MulAdd(a, a, hn::Mul(n, twice_log2));
#else
  const hn::Rebind<std::uint32_t, D> du;
  const V front = hn::BitCast(d, hn::And(hn::BitCast(du, a), hn::Set(du, 0xfffff000u)));
  const V low = hn::Mul(hn::Sub(a, front), hn::Add(a, front));
  V rest = hn::Add(hn::MulAdd(n, twice_log2, hn::Mul(front, front)), low);
#endif
  rest = hn::MulAdd(n, hn::Set(d, -4.24388883e-4f), rest);
  const V bell = AddToExponent(d, Horner(d, rest, kBell), shifted);
  // A true division: other work hides its latency.
  return {hn::Mul(bell, hn::Div(Horner(d, a, kNumerator), Horner(d, a, kDenominator))), bell};
}

// The same of |x| for every x: 0 past the end, where subnormals would cost a hundred cycles each
// (and for NaN).
template <class D, class V>
HWY_INLINE NormalTail<V> NormalTailOfDistance(D d, V x) {
  const V end = hn::Set(d, kNormalTailEnd), distance = hn::Abs(x);
  const auto inside = hn::Le(distance, end);
  const NormalTail<V> normal = NormalTailOf(d, AtMost(end, distance));
  return {hn::IfThenElseZero(inside, normal.tail), hn::IfThenElseZero(inside, normal.bell)};
}

// Phi(x) from its tail.
template <class D, class V>
HWY_INLINE V NormalDistribution(D d, V x, V tail) {
  return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), hn::Sub(hn::Set(d, 1.0f), tail), tail);
}

template <class D, class V>
HWY_INLINE V ErfOf(D d, V x) {
  static constexpr float kCoefficients[] = {1.1283791e+00f, -3.7612608e-01f, 1.1282794e-01f,
                                            -2.675507e-02f, 4.713205e-03f};
  const V magnitude = hn::Abs(x);
  // It rounds to 1 in float from 4.2 on.
  const V distance = hn::Mul(hn::Set(d, 1.41421356f), AtMost(hn::Set(d, 4.2f), magnitude));
  const V tail = NormalTailOf(d, distance).tail;
  const V outside = hn::CopySign(hn::NegMulAdd(hn::Set(d, 2.0f), tail, hn::Set(d, 1.0f)), x);
  const V inside = hn::Mul(x, Horner(d, hn::Mul(x, x), kCoefficients));
  return hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0.5f)), inside, outside);
}

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

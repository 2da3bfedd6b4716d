// Elementary functions and activations on rows of float.
#include <ashlar/ops.hpp>
#include <cstdint>

#include "cpu/kernels/float_math-inl.h"
#include "cpu/kernels/loops-inl.h"
#include "cpu/kernels/pointwise.hpp"
#include "hwy/highway.h"

#if defined(ASHLAR_CPU_POINTWISE_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASHLAR_CPU_POINTWISE_MATH_INL_H_
#undef ASHLAR_CPU_POINTWISE_MATH_INL_H_
#else
#define ASHLAR_CPU_POINTWISE_MATH_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline constexpr float kInverseSqrt2Pi = 0.39894228040143267794f;
inline constexpr float kTwiceSqrt2OverPi = 1.59576912160573071176f;
inline constexpr float kGeluCubic = 0.044715f;

// 2 sqrt(2 / pi) (x + 0.044715 x^3): (1 + tanh(u)) / 2 = sigmoid(2u).
template <class D, class V>
HWY_INLINE V GeluArgument(D d, V x) {
  const V cubic = hn::MulAdd(hn::Mul(hn::Set(d, kGeluCubic), hn::Mul(x, x)), x, x);
  return hn::Mul(hn::Set(d, kTwiceSqrt2OverPi), cubic);
}

// x / (1 + 2^y), y = -log2(e) * GeluArgument(x); 0 past 125, where the quotient is close to
// subnormal.
template <class D, class V>
HWY_INLINE V GeluTanhOf(D d, V x) {
  constexpr float kLinear = -2.30220819814433f, kCubic = kLinear * kGeluCubic;
  const V one = hn::Set(d, 1.0f), most = hn::Set(d, 125.0f), round = hn::Set(d, kRoundToWhole);
  const V slope = hn::MulAdd(hn::Mul(x, x), hn::Set(d, kCubic), hn::Set(d, kLinear));
  const V y = hn::Mul(x, slope);
  const V near = AtMost(most, AtLeast(hn::Set(d, -125.0f), y));
  const V shifted = hn::Add(near, round);
  const V r = hn::Sub(near, hn::Sub(shifted, round));
  const V e = AddToExponent(d, ShortExp2(d, r), shifted);
  const V sigmoid = FastReciprocal(d, hn::Add(one, e));
  return hn::Mul(x, hn::IfThenElseZero(hn::Lt(y, most), sigmoid));
}

template <PointwiseMode kMode, class D, class V>
HWY_INLINE V MathUnary(D d, const Pointwise& op, V x) {
  using enum PointwiseMode;
  const V zero = hn::Zero(d);
  if constexpr (kMode == exp) return ExpOf(d, x);
  if constexpr (kMode == log) return LogOf(d, x);
  if constexpr (kMode == log1p) return Log1pOf(d, x);
  if constexpr (kMode == expm1) return Expm1Of(d, x);
  if constexpr (kMode == erf) return ErfOf(d, x);
  if constexpr (kMode == tanh_fwd) return TanhOf(d, x);
  if constexpr (kMode == sigmoid_fwd) return SigmoidOf(d, x);
  if constexpr (kMode == elu_fwd) {
    const V below =
        hn::Mul(hn::Set(d, static_cast<float>(op.elu_alpha)), Expm1OfNegative(d, AtMost(zero, x)));
    return hn::IfThenElse(hn::Gt(x, zero), x, below);
  }
  if constexpr (kMode == gelu_fwd)
    return hn::Mul(x, NormalDistribution(d, x, NormalTailOfDistance(d, x).tail));
  if constexpr (kMode == softplus_fwd) {
    const V beta = hn::Set(d, static_cast<float>(op.softplus_beta));
    const V scaled = hn::Mul(beta, x);
    const V tail = Log1pOfUnit(d, ExpOf(d, hn::Neg(hn::Abs(scaled))));
    const V sum = hn::Add(AtLeast(zero, scaled), tail);
    return op.softplus_beta == 1.0 ? sum : hn::Div(sum, beta);
  }
  if constexpr (kMode == swish_fwd) {
    if (op.swish_beta == 1.0) return hn::Mul(x, SigmoidOf(d, x));
    return hn::Mul(x, SigmoidOf(d, hn::Mul(hn::Set(d, static_cast<float>(op.swish_beta)), x)));
  }
  if constexpr (kMode == gelu_approx_tanh_fwd) return GeluTanhOf(d, x);
}

// The derivative of the activation at x.
template <PointwiseMode kMode, class D, class V>
HWY_INLINE V MathSlope(D d, const Pointwise& op, V x) {
  using enum PointwiseMode;
  const V one = hn::Set(d, 1.0f), zero = hn::Zero(d);
  if constexpr (kMode == tanh_bwd)  // 1 - tanh^2(x) = 4 s(2x) (1 - s(2x))
    return hn::Mul(hn::Set(d, 4.0f), SigmoidSlope(d, hn::Add(x, x)));
  if constexpr (kMode == sigmoid_bwd) return SigmoidSlope(d, x);
  if constexpr (kMode == elu_bwd) {
    const V below =
        hn::Mul(hn::Set(d, static_cast<float>(op.elu_alpha)), ExpOf(d, AtMost(zero, x)));
    return hn::IfThenElse(hn::Gt(x, zero), one, below);
  }
  if constexpr (kMode == gelu_bwd) {
    const auto normal = NormalTailOfDistance(d, x);
    const V density = hn::Mul(hn::Set(d, kInverseSqrt2Pi), normal.bell);
    return hn::MulAdd(x, density, NormalDistribution(d, x, normal.tail));
  }
  if constexpr (kMode == softplus_bwd)
    return SigmoidOf(d, hn::Mul(hn::Set(d, static_cast<float>(op.softplus_beta)), x));
  if constexpr (kMode == swish_bwd) {
    const V scaled = hn::Mul(hn::Set(d, static_cast<float>(op.swish_beta)), x);
    return hn::MulAdd(scaled, SigmoidSlope(d, scaled), SigmoidOf(d, scaled));
  }
  if constexpr (kMode == gelu_approx_tanh_bwd) {
    // Past 16 the sigmoid is exactly 0 or 1, and x^2 might overflow. Infinities still give NaN, as
    // infinity times a zero slope does: x - x.
    const V near = AtMost(hn::Set(d, 16.0f), AtLeast(hn::Set(d, -16.0f), x));
    const V twice_u = GeluArgument(d, near);
    const V slope = hn::Mul(hn::Set(d, kTwiceSqrt2OverPi),
                            hn::MulAdd(hn::Set(d, 3 * kGeluCubic), hn::Mul(near, near), one));
    const V bend = hn::Mul(hn::Mul(near, slope), SigmoidSlope(d, twice_u));
    return hn::Add(hn::Add(bend, SigmoidOf(d, twice_u)), hn::Sub(x, x));
  }
}

template <PointwiseMode kMode>
void MathUnaryRow(const Pointwise& op, const float* x, const float*, const float*,
                  std::int64_t count, float* y, const RowHints& hints) {
  const hn::ScalableTag<float> d;
  const auto apply = [&](auto vx) HWY_ATTR { return MathUnary<kMode>(d, op, vx); };
  TransformRowWithHints(d, count, y, hints, apply, x);
}

template <PointwiseMode kMode>
void MathSlopeRow(const Pointwise& op, const float* dy, const float* x, const float*,
                  std::int64_t count, float* dx, const RowHints& hints) {
  const hn::ScalableTag<float> d;
  const auto apply = [&](auto vdy, auto vx)
                         HWY_ATTR { return hn::Mul(vdy, MathSlope<kMode>(d, op, vx)); };
  TransformRowWithHints(d, count, dx, hints, apply, dy, x);
}

// Null for unsupported modes.
inline PointwiseRow<float> MathRow(PointwiseMode mode) {
  using enum PointwiseMode;
  switch (mode) {
    case exp: return MathUnaryRow<exp>;
    case log: return MathUnaryRow<log>;
    case log1p: return MathUnaryRow<log1p>;
    case expm1: return MathUnaryRow<expm1>;
    case erf: return MathUnaryRow<erf>;
    case tanh_fwd: return MathUnaryRow<tanh_fwd>;
    case sigmoid_fwd: return MathUnaryRow<sigmoid_fwd>;
    case elu_fwd: return MathUnaryRow<elu_fwd>;
    case gelu_fwd: return MathUnaryRow<gelu_fwd>;
    case softplus_fwd: return MathUnaryRow<softplus_fwd>;
    case swish_fwd: return MathUnaryRow<swish_fwd>;
    case gelu_approx_tanh_fwd: return MathUnaryRow<gelu_approx_tanh_fwd>;
    case tanh_bwd: return MathSlopeRow<tanh_bwd>;
    case sigmoid_bwd: return MathSlopeRow<sigmoid_bwd>;
    case elu_bwd: return MathSlopeRow<elu_bwd>;
    case gelu_bwd: return MathSlopeRow<gelu_bwd>;
    case softplus_bwd: return MathSlopeRow<softplus_bwd>;
    case swish_bwd: return MathSlopeRow<swish_bwd>;
    case gelu_approx_tanh_bwd: return MathSlopeRow<gelu_approx_tanh_bwd>;
    default: return nullptr;
  }
}

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

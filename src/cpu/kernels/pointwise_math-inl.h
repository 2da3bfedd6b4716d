// Elementary functions and activations on rows of float, evaluated in vectors of double: the
// formula's own error is then far below float's rounding, also where terms cancel.
#include <ashlar/ops.hpp>
#include <cstdint>

#include "cpu/kernels/loops-inl.h"
#include "cpu/kernels/pointwise.hpp"
#include "hwy/contrib/math/math-inl.h"
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

template <class V>
HWY_INLINE V KeepNan(V x, V result) {
  return hn::IfThenElse(hn::Eq(x, x), result, x);
}

// Past 700 every float has overflowed; the vector exponential needs arguments below 706.
template <class D, class V>
HWY_INLINE V SafeExp(D d, V x) {
  return KeepNan(x, hn::Exp(d, hn::Min(x, hn::Set(d, 700.0))));
}

template <class D, class V>
HWY_INLINE V SafeExpm1(D d, V x) {
  return KeepNan(x, hn::Expm1(d, hn::Min(x, hn::Set(d, 700.0))));
}

template <class D, class V>
HWY_INLINE V SafeLog(D d, V x) {
  const V zero = hn::Zero(d);
  const V infinity = hn::Set(d, std::numeric_limits<double>::infinity());
  V result = hn::Log(d, x);
  result = hn::IfThenElse(hn::Eq(x, infinity), x, result);
  result = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(infinity), result);
  result =
      hn::IfThenElse(hn::Lt(x, zero), hn::Set(d, std::numeric_limits<double>::quiet_NaN()), result);
  return KeepNan(x, result);
}

template <class D, class V, std::size_t kCount>
HWY_INLINE V Polynomial(D d, V x, const double (&coefficients)[kCount]) {
  V result = hn::Set(d, coefficients[kCount - 1]);
  for (std::size_t i = kCount - 1; i-- > 0;)
    result = hn::MulAdd(result, x, hn::Set(d, coefficients[i]));
  return result;
}

// erfc for x >= 0, relative error below 2e-10: exp(-x^2) / (1 + 2x) times a polynomial in
// (x - 3) / (x + 3), fitted by Chebyshev interpolation over 0 <= x <= 28; erfc(28) is below any
// float.
template <class D, class V>
HWY_INLINE V ErfcPositive(D d, V x) {
  static constexpr double kCoefficients[] = {
      1.253008058264406,       -0.13562110490094271,    -0.047562294414126391,
      0.1296451089109332,      -0.11927365363312323,    0.068308616543284786,
      -0.023770614988625495,   0.0025263017763564207,   0.0018890135794552096,
      -0.00077147055281725259, -0.00010542623963913386, 0.00011287465074389144,
      4.5469980324804319e-6,   -1.0696970485543422e-5};
  const V three = hn::Set(d, 3.0);
  const V clamped = hn::Min(x, hn::Set(d, 28.0));
  const V t = hn::Div(hn::Sub(clamped, three), hn::Add(clamped, three));
  const V scale = hn::Exp(d, hn::Neg(hn::Mul(clamped, clamped)));
  const V denominator = hn::MulAdd(clamped, hn::Set(d, 2.0), hn::Set(d, 1.0));
  return hn::Div(hn::Mul(scale, Polynomial(d, t, kCoefficients)), denominator);
}

template <class D, class V>
HWY_INLINE V ErfcOf(D d, V x) {
  const V tail = ErfcPositive(d, hn::Abs(x));
  return KeepNan(x, hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Sub(hn::Set(d, 2.0), tail), tail));
}

// Below 1: x times a polynomial in x^2, relative error below 1e-12.
template <class D, class V>
HWY_INLINE V ErfOf(D d, V x) {
  static constexpr double kCoefficients[] = {
      1.1283791670946767,    -0.37612638889635307,   0.11283791308604581,
      -0.026866133235095592, 0.0052237834771892481,  -0.00085426379970872296,
      0.0001195656256820733, -1.3909340021874599e-5, 1.0589380641075019e-6};
  const V one = hn::Set(d, 1.0);
  const V magnitude = hn::Abs(x);
  const V near_zero = hn::Mul(x, Polynomial(d, hn::Mul(x, x), kCoefficients));
  const V far = hn::CopySign(hn::Sub(one, ErfcPositive(d, magnitude)), x);
  return KeepNan(x, hn::IfThenElse(hn::Lt(magnitude, one), near_zero, far));
}

template <class D, class V>
HWY_INLINE V SigmoidOf(D d, V x) {
  const V one = hn::Set(d, 1.0);
  return hn::Div(one, hn::Add(one, SafeExp(d, hn::Neg(x))));
}

// sigmoid(x) * (1 - sigmoid(x)) without cancellation: even in x.
template <class D, class V>
HWY_INLINE V SigmoidSlope(D d, V x) {
  const V e = SafeExp(d, hn::Neg(hn::Abs(x)));
  const V sum = hn::Add(hn::Set(d, 1.0), e);
  return hn::Div(e, hn::Mul(sum, sum));
}

// expm1(-2|x|) keeps its relative accuracy near 0.
template <class D, class V>
HWY_INLINE V TanhOf(D d, V x) {
  const V e = SafeExpm1(d, hn::Mul(hn::Set(d, -2.0), hn::Abs(x)));
  const V magnitude = hn::Div(hn::Neg(e), hn::Add(hn::Set(d, 2.0), e));
  return KeepNan(x, hn::CopySign(magnitude, x));
}

inline constexpr double kInverseSqrt2 = 0.70710678118654752440;
inline constexpr double kInverseSqrt2Pi = 0.39894228040143267794;
inline constexpr double kSqrt2OverPi = 0.79788456080286535588;
inline constexpr double kGeluCubic = 0.044715;

template <PointwiseMode kMode, class D, class V>
HWY_INLINE V MathUnary(D d, const Pointwise& op, V x) {
  using enum PointwiseMode;
  const V half = hn::Set(d, 0.5);
  if constexpr (kMode == exp) return SafeExp(d, x);
  if constexpr (kMode == log) return SafeLog(d, x);
  if constexpr (kMode == erf) return ErfOf(d, x);
  if constexpr (kMode == tanh_fwd) return TanhOf(d, x);
  if constexpr (kMode == sigmoid_fwd) return SigmoidOf(d, x);
  if constexpr (kMode == elu_fwd) {
    const V below = hn::Mul(hn::Set(d, op.elu_alpha), SafeExpm1(d, x));
    return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), x, below);
  }
  if constexpr (kMode == gelu_fwd)
    return hn::Mul(hn::Mul(half, x), ErfcOf(d, hn::Mul(x, hn::Set(d, -kInverseSqrt2))));
  if constexpr (kMode == softplus_fwd) {
    const V scaled = hn::Mul(hn::Set(d, op.softplus_beta), x);
    const V tail = hn::Log1p(d, SafeExp(d, hn::Neg(hn::Abs(scaled))));
    const V above = hn::IfThenElse(hn::Gt(scaled, hn::Zero(d)), scaled, hn::Zero(d));
    return KeepNan(x, hn::Div(hn::Add(above, tail), hn::Set(d, op.softplus_beta)));
  }
  if constexpr (kMode == swish_fwd)
    return hn::Mul(x, SigmoidOf(d, hn::Mul(hn::Set(d, op.swish_beta), x)));
  if constexpr (kMode == gelu_approx_tanh_fwd) {  // (1 + tanh(u)) / 2 = sigmoid(2u)
    const V cubic = hn::MulAdd(hn::Mul(hn::Set(d, kGeluCubic), hn::Mul(x, x)), x, x);
    return hn::Mul(x, SigmoidOf(d, hn::Mul(hn::Set(d, 2 * kSqrt2OverPi), cubic)));
  }
}

// The derivative of the activation at x.
template <PointwiseMode kMode, class D, class V>
HWY_INLINE V MathSlope(D d, const Pointwise& op, V x) {
  using enum PointwiseMode;
  const V one = hn::Set(d, 1.0);
  if constexpr (kMode == tanh_bwd)  // 1 - tanh^2(x) = 4 s(2x) (1 - s(2x))
    return hn::Mul(hn::Set(d, 4.0), SigmoidSlope(d, hn::Add(x, x)));
  if constexpr (kMode == sigmoid_bwd) return SigmoidSlope(d, x);
  if constexpr (kMode == elu_bwd)
    return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), one,
                          hn::Mul(hn::Set(d, op.elu_alpha), SafeExp(d, x)));
  if constexpr (kMode == gelu_bwd) {
    const V below = hn::Mul(hn::Set(d, 0.5), ErfcOf(d, hn::Mul(x, hn::Set(d, -kInverseSqrt2))));
    const V density =
        hn::Mul(hn::Set(d, kInverseSqrt2Pi), SafeExp(d, hn::Mul(hn::Set(d, -0.5), hn::Mul(x, x))));
    return hn::MulAdd(x, density, below);
  }
  if constexpr (kMode == softplus_bwd)
    return SigmoidOf(d, hn::Mul(hn::Set(d, op.softplus_beta), x));
  if constexpr (kMode == swish_bwd) {
    const V scaled = hn::Mul(hn::Set(d, op.swish_beta), x);
    return hn::MulAdd(scaled, SigmoidSlope(d, scaled), SigmoidOf(d, scaled));
  }
  if constexpr (kMode == gelu_approx_tanh_bwd) {
    const V square = hn::Mul(x, x);
    const V cubic = hn::MulAdd(hn::Mul(hn::Set(d, kGeluCubic), square), x, x);
    const V twice_u = hn::Mul(hn::Set(d, 2 * kSqrt2OverPi), cubic);
    const V slope =
        hn::Mul(hn::Set(d, 2 * kSqrt2OverPi), hn::MulAdd(hn::Set(d, 3 * kGeluCubic), square, one));
    return hn::MulAdd(hn::Mul(x, slope), SigmoidSlope(d, twice_u), SigmoidOf(d, twice_u));
  }
}

template <PointwiseMode kMode>
void MathUnaryRow(const Pointwise& op, const float* x, const float*, const float*,
                  std::int64_t count, float* y) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> df;
  const auto apply = [&](auto vx) HWY_ATTR {
    return hn::DemoteTo(df, MathUnary<kMode>(d, op, hn::PromoteTo(d, vx)));
  };
  TransformRow(df, df, count, y, apply, x);
}

template <PointwiseMode kMode>
void MathSlopeRow(const Pointwise& op, const float* dy, const float* x, const float*,
                  std::int64_t count, float* dx) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> df;
  const auto apply = [&](auto vdy, auto vx) HWY_ATTR {
    const auto slope = MathSlope<kMode>(d, op, hn::PromoteTo(d, vx));
    return hn::DemoteTo(df, hn::Mul(hn::PromoteTo(d, vdy), slope));
  };
  TransformRow(df, df, count, dx, apply, dy, x);
}

// Null for modes that are not here.
inline PointwiseRow<float> MathRow(PointwiseMode mode) {
  using enum PointwiseMode;
  switch (mode) {
    case exp: return MathUnaryRow<exp>;
    case log: return MathUnaryRow<log>;
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

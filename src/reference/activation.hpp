// Activations f(x) and their derivatives f'(x), for double and for Approx.
#pragma once

#include <ashlar/ops.hpp>
#include <numbers>

#include "reference/scalar.hpp"

namespace ashlar::reference {

// relu: lower_clip + slope * (x - lower_clip) below lower_clip, at most upper_clip, x between.
template <class Scalar>
Scalar relu(const Pointwise& op, Scalar x) {
  const Scalar lower(op.relu_lower_clip);
  const Scalar below =
      op.relu_lower_slope == 0.0 ? lower : lower + Scalar(op.relu_lower_slope) * (x - lower);
  return select(less(x, lower), below, minimum(x, Scalar(op.relu_upper_clip)));
}
// At a kink the slope is that of the clipped side, as in PyTorch.
template <class Scalar>
Scalar relu_slope(const Pointwise& op, Scalar x) {
  const Scalar one(1.0), zero(0.0);
  const Scalar inside = op.relu_upper_clip == kInfinity
                            ? one
                            : select(less_equal(Scalar(op.relu_upper_clip), x), zero, one);
  return select(less_equal(x, Scalar(op.relu_lower_clip)), Scalar(op.relu_lower_slope), inside);
}

// elu: x above 0, alpha * (exp(x) - 1) below.
template <class Scalar>
Scalar elu(const Pointwise& op, Scalar x) {
  return select(less(Scalar(0.0), x), x, Scalar(op.elu_alpha) * expm1(minimum(x, Scalar(0.0))));
}
template <class Scalar>
Scalar elu_slope(const Pointwise& op, Scalar x) {
  return select(less(Scalar(0.0), x), Scalar(1.0),
                Scalar(op.elu_alpha) * exp(minimum(x, Scalar(0.0))));
}

// gelu: x * Phi(x), Phi(x) = (1 + erf(x / sqrt(2))) / 2; Phi' = exp(-x^2 / 2) / sqrt(2 pi).
// Phi is a function like erf itself: erfc(-x / sqrt(2)) / 2 is another way to it, whose error is
// relative to Phi. That of 1 + erf vanishes with x.
template <class Scalar>
Scalar normal_distribution(Scalar x) {
  const Scalar phi = Scalar(0.5) * (Scalar(1.0) + erf(x * Scalar(std::numbers::sqrt2 / 2.0)));
  return allow_units(phi, 2 * kFunctionUnits, phi);
}
template <class Scalar>
Scalar gelu(Scalar x) {
  return x * normal_distribution(x);
}
template <class Scalar>
Scalar gelu_slope(Scalar x) {
  const Scalar density =
      Scalar(std::numbers::inv_sqrtpi * std::numbers::sqrt2 / 2.0) * exp(Scalar(-0.5) * (x * x));
  return normal_distribution(x) + x * density;
}

// gelu_approx_tanh: x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) / 2.
inline constexpr double kGeluCubic = 0.044715;
inline constexpr double kGeluFactor = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
template <class Scalar>
Scalar gelu_tanh_inner(Scalar x) {
  return tanh(Scalar(kGeluFactor) * (x + Scalar(kGeluCubic) * (x * x * x)));
}
template <class Scalar>
Scalar gelu_tanh(Scalar x) {
  return Scalar(0.5) * x * (Scalar(1.0) + gelu_tanh_inner(x));
}
template <class Scalar>
Scalar gelu_tanh_slope(Scalar x) {
  const Scalar one(1.0), half(0.5), t = gelu_tanh_inner(x);
  const Scalar inner_slope = Scalar(kGeluFactor) * (one + Scalar(3.0 * kGeluCubic) * (x * x));
  return half * (one + t) + half * x * (one - t * t) * inner_slope;
}

// softplus: log(1 + exp(beta x)) / beta; its slope is sigmoid(beta x).
template <class Scalar>
Scalar scaled_softplus(const Pointwise& op, Scalar x) {
  return softplus(Scalar(op.softplus_beta) * x) / Scalar(op.softplus_beta);
}

// swish: x * sigmoid(beta x).
template <class Scalar>
Scalar swish(const Pointwise& op, Scalar x) {
  return x * sigmoid(Scalar(op.swish_beta) * x);
}
template <class Scalar>
Scalar swish_slope(const Pointwise& op, Scalar x) {
  const Scalar s = sigmoid(Scalar(op.swish_beta) * x);
  return s + Scalar(op.swish_beta) * x * s * (Scalar(1.0) - s);
}

// Bounded like a library function: implementations may use other formulas, such as
// 4 s(2x) (1 - s(2x)).
template <class Scalar>
Scalar tanh_slope(Scalar x) {
  const Scalar t = tanh(x), slope = Scalar(1.0) - t * t;
  return allow_units(slope, 2 * kFunctionUnits, slope);
}
template <class Scalar>
Scalar sigmoid_slope(Scalar x) {
  const Scalar s = sigmoid(x);
  return s * (Scalar(1.0) - s);
}

}  // namespace ashlar::reference

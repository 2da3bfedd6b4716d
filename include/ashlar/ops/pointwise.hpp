// Pointwise operations.
#pragma once

#include <ashlar/ops/slots.hpp>
#include <cstdint>
#include <limits>

namespace ashlar {

enum class PointwiseMode : std::uint8_t {
  // arithmetic: x op b
  add,
  mul,
  min,
  max,
  add_square,
  div,
  mod,
  pow,
  sub,
  atan2,
  // unary
  sqrt,
  abs,
  ceil,
  cos,
  exp,
  floor,
  log,
  neg,
  rsqrt,
  sin,
  tan,
  erf,
  identity,
  reciprocal,
  // activations and their gradients (dy, x)
  relu_fwd,
  tanh_fwd,
  sigmoid_fwd,
  elu_fwd,
  gelu_fwd,
  softplus_fwd,
  swish_fwd,
  gelu_approx_tanh_fwd,
  relu_bwd,
  tanh_bwd,
  sigmoid_bwd,
  elu_bwd,
  gelu_bwd,
  softplus_bwd,
  swish_bwd,
  gelu_approx_tanh_bwd,
  // comparisons: x op b, result boolean
  cmp_eq,
  cmp_neq,
  cmp_gt,
  cmp_ge,
  cmp_lt,
  cmp_le,
  logical_and,
  logical_or,
  logical_not,
  gen_index,      // the coordinate along `axis`
  binary_select,  // predicate ? x : b
  // unary, continued
  trunc,  // towards zero; with an integer result the conversion of C
  round,  // to nearest, half to even
  sign,   // -1, 0 or 1; NaN of NaN
  log1p,
  expm1,
  // two's complement in the dtype of x: integers, all but the shifts also bool
  bit_and,
  bit_or,
  bit_xor,
  bit_not,
  shift_left,   // by b bits; 0 unless 0 <= b < width
  shift_right,  // by b bits with sign fill, which is all that is left unless 0 <= b < width
};
inline constexpr int kPointwiseModeCount = 62;

// y = op(alpha1 * x, alpha2 * b). For gradients the first operand is dy and the second x; the third
// is the predicate of binary_select. Operands broadcast as in NumPy: the last axes are aligned, and
// axes that are missing or have extent 1 repeat. A scalar or constant goes with any rank. The
// result of identity and gen_index may have larger dims than x, any that x broadcasts to.
struct Pointwise {
  ASHLAR_INPUTS(x, ASHLAR_OPTIONAL(b, predicate));
  ASHLAR_OUTPUTS(y);
  PointwiseMode mode = PointwiseMode::identity;
  double alpha1 = 1.0;
  double alpha2 = 1.0;
  double relu_lower_clip = 0.0;
  double relu_upper_clip = std::numeric_limits<double>::infinity();
  double relu_lower_slope = 0.0;
  double elu_alpha = 1.0;
  double softplus_beta = 1.0;
  double swish_beta = 1.0;
  std::int64_t axis = 0;  // gen_index only

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("mode", self.mode);
    visit("alpha1", self.alpha1);
    visit("alpha2", self.alpha2);
    visit("relu_lower_clip", self.relu_lower_clip);
    visit("relu_upper_clip", self.relu_upper_clip);
    visit("relu_lower_slope", self.relu_lower_slope);
    visit("elu_alpha", self.elu_alpha);
    visit("softplus_beta", self.softplus_beta);
    visit("swish_beta", self.swish_beta);
    visit("axis", self.axis);
  }
};

}  // namespace ashlar

// One element of a pointwise operation: y = op(x, b), operands already multiplied by their alphas.
#pragma once

#include "reference/activation.hpp"
#include "reference/bits.hpp"
#include "reference/evaluate.hpp"

namespace ashlar::reference {

template <class Scalar>
Scalar both(Scalar a, Scalar b) {
  return minimum(is_nonzero(a), is_nonzero(b));
}
template <class Scalar>
Scalar either(Scalar a, Scalar b) {
  return maximum(is_nonzero(a), is_nonzero(b));
}

template <class Scalar>
Scalar apply_pointwise(const Pointwise& op, DType compute, Scalar x, Scalar b, Scalar predicate,
                       std::int64_t coordinate) {
  switch (op.mode) {
    case PointwiseMode::add: return x + b;
    case PointwiseMode::mul: return x * b;
    case PointwiseMode::min: return minimum(x, b);
    case PointwiseMode::max: return maximum(x, b);
    case PointwiseMode::add_square: return x + b * b;
    case PointwiseMode::div: return quotient(compute, x, b);
    case PointwiseMode::mod: return fmod(x, b);
    case PointwiseMode::pow: return pow(x, b);
    case PointwiseMode::sub: return x - b;
    case PointwiseMode::atan2: return atan2(x, b);

    case PointwiseMode::sqrt: return sqrt(x);
    case PointwiseMode::abs: return absolute(x);
    case PointwiseMode::ceil: return ceil(x);
    case PointwiseMode::cos: return cos(x);
    case PointwiseMode::exp: return exp(x);
    case PointwiseMode::floor: return floor(x);
    case PointwiseMode::log: return log(x);
    case PointwiseMode::neg: return -x;
    case PointwiseMode::rsqrt: return rsqrt(x);
    case PointwiseMode::sin: return sin(x);
    case PointwiseMode::tan: return tan(x);
    case PointwiseMode::erf: return erf(x);
    case PointwiseMode::identity: return x;
    case PointwiseMode::reciprocal: return quotient(compute, Scalar(1.0), x);

    case PointwiseMode::relu_fwd: return relu(op, x);
    case PointwiseMode::tanh_fwd: return tanh(x);
    case PointwiseMode::sigmoid_fwd: return sigmoid(x);
    case PointwiseMode::elu_fwd: return elu(op, x);
    case PointwiseMode::gelu_fwd: return gelu(x);
    case PointwiseMode::softplus_fwd: return scaled_softplus(op, x);
    case PointwiseMode::swish_fwd: return swish(op, x);
    case PointwiseMode::gelu_approx_tanh_fwd: return gelu_tanh(x);

    case PointwiseMode::relu_bwd: return x * relu_slope(op, b);
    case PointwiseMode::tanh_bwd: return x * tanh_slope(b);
    case PointwiseMode::sigmoid_bwd: return x * sigmoid_slope(b);
    case PointwiseMode::elu_bwd: return x * elu_slope(op, b);
    case PointwiseMode::gelu_bwd: return x * gelu_slope(b);
    case PointwiseMode::softplus_bwd: return x * sigmoid(Scalar(op.softplus_beta) * b);
    case PointwiseMode::swish_bwd: return x * swish_slope(op, b);
    case PointwiseMode::gelu_approx_tanh_bwd: return x * gelu_tanh_slope(b);

    case PointwiseMode::cmp_eq: return equal(x, b);
    case PointwiseMode::cmp_neq: return negated(equal(x, b));
    case PointwiseMode::cmp_gt: return less(b, x);
    case PointwiseMode::cmp_ge: return less_equal(b, x);
    case PointwiseMode::cmp_lt: return less(x, b);
    case PointwiseMode::cmp_le: return less_equal(x, b);
    case PointwiseMode::logical_and: return both(x, b);
    case PointwiseMode::logical_or: return either(x, b);
    case PointwiseMode::logical_not: return negated(is_nonzero(x));

    case PointwiseMode::gen_index: return Scalar(real(coordinate));
    case PointwiseMode::binary_select: return select(is_nonzero(predicate), x, b);

    case PointwiseMode::trunc: return trunc(x);
    case PointwiseMode::round: return round_half_even(x);
    case PointwiseMode::sign: return sign(x);
    case PointwiseMode::log1p: return log1p(x);
    case PointwiseMode::expm1: return expm1(x);
    case PointwiseMode::bit_and:
    case PointwiseMode::bit_or:
    case PointwiseMode::bit_xor:
    case PointwiseMode::bit_not:
    case PointwiseMode::shift_left:
    case PointwiseMode::shift_right: return bitwise(op.mode, compute, x, b);
  }
  return x;
}

}  // namespace ashlar::reference

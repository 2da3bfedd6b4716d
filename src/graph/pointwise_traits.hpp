// Traits of pointwise modes.
#pragma once

#include <ashlar/ops.hpp>

namespace ashlar {

constexpr bool gives_boolean(PointwiseMode mode) {
  return mode >= PointwiseMode::cmp_eq && mode <= PointwiseMode::logical_not;
}

constexpr bool is_activation_gradient(PointwiseMode mode) {
  return mode >= PointwiseMode::relu_bwd && mode <= PointwiseMode::gelu_approx_tanh_bwd;
}

constexpr bool is_bitwise(PointwiseMode mode) {
  return mode >= PointwiseMode::bit_and && mode <= PointwiseMode::shift_right;
}
constexpr bool is_shift(PointwiseMode mode) {
  return mode == PointwiseMode::shift_left || mode == PointwiseMode::shift_right;
}

constexpr int operand_count(PointwiseMode mode) {
  if (mode == PointwiseMode::binary_select) return 3;
  if (mode <= PointwiseMode::atan2 || is_activation_gradient(mode)) return 2;
  if (mode >= PointwiseMode::cmp_eq && mode <= PointwiseMode::logical_or) return 2;
  if (is_bitwise(mode) && mode != PointwiseMode::bit_not) return 2;
  return 1;
}

}  // namespace ashlar

// Pointwise operations as free functions of Values.
#include <array>

#include "graph/borrowed_graph.hpp"

namespace ashlar {

namespace {

// A constant has the precision of a floating-point operand, and f32 with integer operands.
Value constant_like(Value like, double value) {
  BorrowedGraph graph(like);
  return graph->constant(value, like.dtype() == f64 ? f64 : f32, like.dims().rank());
}

}  // namespace

Value pointwise(PointwiseMode mode, Value x) {
  return BorrowedGraph(x)->pointwise(mode, std::array{x});
}
Value pointwise(PointwiseMode mode, Value x, Value b) {
  return BorrowedGraph(x)->pointwise(mode, std::array{x, b});
}

Value operator+(Value a, Value b) { return pointwise(PointwiseMode::add, a, b); }
Value operator-(Value a, Value b) { return pointwise(PointwiseMode::sub, a, b); }
Value operator*(Value a, Value b) { return pointwise(PointwiseMode::mul, a, b); }
Value operator/(Value a, Value b) { return pointwise(PointwiseMode::div, a, b); }
Value operator-(Value a) { return pointwise(PointwiseMode::neg, a); }
Value operator+(Value a, double b) { return a + constant_like(a, b); }
Value operator-(Value a, double b) { return a - constant_like(a, b); }
Value operator*(Value a, double b) { return a * constant_like(a, b); }
Value operator/(Value a, double b) { return a / constant_like(a, b); }
Value relu(Value x) { return pointwise(PointwiseMode::relu_fwd, x); }
Value gelu(Value x) { return pointwise(PointwiseMode::gelu_fwd, x); }
Value gelu_tanh(Value x) { return pointwise(PointwiseMode::gelu_approx_tanh_fwd, x); }
Value sigmoid(Value x) { return pointwise(PointwiseMode::sigmoid_fwd, x); }
Value tanh(Value x) { return pointwise(PointwiseMode::tanh_fwd, x); }
Value swish(Value x) { return pointwise(PointwiseMode::swish_fwd, x); }
Value exp(Value x) { return pointwise(PointwiseMode::exp, x); }
Value log(Value x) { return pointwise(PointwiseMode::log, x); }
Value sqrt(Value x) { return pointwise(PointwiseMode::sqrt, x); }
Value rsqrt(Value x) { return pointwise(PointwiseMode::rsqrt, x); }
Value erf(Value x) { return pointwise(PointwiseMode::erf, x); }
Value maximum(Value a, Value b) { return pointwise(PointwiseMode::max, a, b); }
Value minimum(Value a, Value b) { return pointwise(PointwiseMode::min, a, b); }

Value select(Value predicate, Value if_true, Value if_false) {
  return BorrowedGraph(if_true)->pointwise(PointwiseMode::binary_select,
                                           std::array{if_true, if_false, predicate});
}

Value cast(Value x, DType dtype) {
  return BorrowedGraph(x)->pointwise(PointwiseMode::identity, std::array{x}, {}, {.dtype = dtype});
}

}  // namespace ashlar

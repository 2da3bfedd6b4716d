// Definition of softmax.
#include "graph/ops/define.hpp"

namespace ashlar {

namespace {

void infer_softmax_forward(NodeContext& node) {
  auto& op = node.op<SoftmaxForward>();
  node.require_floating(SoftmaxForward::x);
  const Tensor& x = node.input(SoftmaxForward::x);
  node.normalise_axis("axis", op.axis, x.dims.rank());
  node.infer_dims(SoftmaxForward::y, x.dims);
  node.infer_dtype(SoftmaxForward::y, x.dtype);
  node.infer_strides_like(SoftmaxForward::y, x);
  Dims stats = x.dims;
  stats[static_cast<int>(op.axis)] = 1;
  node.infer_dims(SoftmaxForward::stats, stats);
  node.infer_dtype(SoftmaxForward::stats, x.dtype == f64 ? f64 : f32);
  node.infer_strides_like(SoftmaxForward::stats, x);
}

void infer_softmax_backward(NodeContext& node) {
  auto& op = node.op<SoftmaxBackward>();
  node.require_floating(SoftmaxBackward::y);
  node.require_floating(SoftmaxBackward::dy);
  const Tensor& y = node.input(SoftmaxBackward::y);
  node.normalise_axis("axis", op.axis, y.dims.rank());
  node.require_dims(SoftmaxBackward::dy, y.dims);
  node.infer_dims(SoftmaxBackward::dx, y.dims);
  node.infer_dtype(SoftmaxBackward::dx, y.dtype);
  node.infer_strides_like(SoftmaxBackward::dx, y);
}

Contents softmax_backward_contents(const NodeShapes& node, int slot) {
  if (slot != SoftmaxBackward::y) return {};
  return node.op<SoftmaxBackward>().log ? values_within(-4, 0) : values_within(0, 1);
}

std::vector<Value> sample_softmax_forward(Graph& g, DType t) {
  return {g.softmax(g.input("x", {4, 64}, t))};
}
std::vector<Value> sample_softmax_backward(Graph& g, DType t) {
  return {g.softmax_backward(g.input("y", {4, 64}, t), g.input("dy", {4, 64}, t))};
}

// stats = log(sum(exp(x))), whose gradient is the softmax.
void softmax_forward_gradient(GradientContext& c) {
  using Self = SoftmaxForward;
  const SoftmaxAttributes op = c.op<Self>();
  const Value y = c.output(Self::y);
  if (const Value dy = c.dy(Self::y))
    c.add(Self::x, c.graph().softmax_backward(y, dy, op, {.dtype = c.spec(Self::x).dtype}));
  if (const Value dstats = c.dy(Self::stats))
    c.add(Self::x, c.multiply(dstats, op.log ? c.pointwise(PointwiseMode::exp, {y}) : y));
}

// dx = y * (dy - sum(y * dy)), or dy - exp(y) * sum(dy) with log.
void softmax_backward_gradient(GradientContext& c) {
  using Self = SoftmaxBackward;
  const SoftmaxAttributes op = c.op<Self>();
  const Value y = c.input(Self::y), dy = c.input(Self::dy), gradient = c.dy();
  const auto sum = [&](Value x) {
    return c.graph().reduce(x, ReductionMode::add, {op.axis}, {.dtype = c.wide()});
  };
  if (op.log) {
    const Value p = c.pointwise(PointwiseMode::exp, {y});
    const Value weighted = c.multiply(gradient, p);
    c.add(Self::dy, c.pointwise(PointwiseMode::sub, {gradient, sum(weighted)}));
    c.add(Self::y, c.multiply(weighted, sum(dy), -1.0));
    return;
  }
  const Value of_y = c.multiply(gradient, y);
  c.add(Self::dy, c.multiply(y, c.pointwise(PointwiseMode::sub, {gradient, sum(of_y)})));
  const Value total = sum(c.multiply(y, dy));
  const Value direct = c.multiply(gradient, c.pointwise(PointwiseMode::sub, {dy, total}));
  c.add(Self::y, c.pointwise(PointwiseMode::sub, {direct, c.multiply(dy, sum(of_y))}));
}

}  // namespace

template <>
OpTraits define_traits<SoftmaxForward>() {
  return {.name = "softmax_forward",
          .doc_page = "softmax",
          .infer = infer_softmax_forward,
          .gradient = softmax_forward_gradient,
          .sample = sample_softmax_forward,
          .fused_inputs = {SoftmaxForward::x},
          .draws_in_epilogue = true};
}

template <>
OpTraits define_traits<SoftmaxBackward>() {
  return {.name = "softmax_backward",
          .doc_page = "softmax",
          .infer = infer_softmax_backward,
          .gradient = softmax_backward_gradient,
          .sample = sample_softmax_backward,
          .contents = softmax_backward_contents,
          .fused_inputs = {SoftmaxBackward::y, SoftmaxBackward::dy}};
}

}  // namespace ashlar

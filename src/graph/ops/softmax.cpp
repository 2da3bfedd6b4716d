// Inference and validation of softmax.
#include "graph/ops/infer.hpp"

namespace ashlar {

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

}  // namespace ashlar

// Inference and validation of dropout.
#include "graph/ops/infer.hpp"

namespace ashlar {

namespace {

template <class Self>
void check_state(const NodeContext& node, const Self& op) {
  for (const int slot : {Self::seed_tensor, Self::offset_tensor}) {
    node.require_one_element(slot);
    node.require_integer(slot);
  }
  if (!(op.probability >= 0.0 && op.probability <= 1.0))
    node.reject("probability", op.probability, "a value in [0, 1]");
}

}  // namespace

void infer_dropout_forward(NodeContext& node) {
  using Self = DropoutForward;
  check_state(node, node.op<Self>());
  node.require_floating(Self::x);
  const Tensor& x = node.input(Self::x);
  node.infer_dims(Self::y, x.dims);
  node.infer_dtype(Self::y, x.dtype);
  node.infer_strides_like(Self::y, x);
  node.infer_dims(Self::mask, x.dims);
  node.infer_dtype(Self::mask, boolean);
  node.infer_strides_like(Self::mask, Tensor{});
  if (!node.has_output(Self::next_offset)) return;
  Tensor& next = node.output(Self::next_offset);
  node.infer_dims(Self::next_offset,
                  next.dims.empty() ? Dims{1} : Dims::filled(next.dims.rank(), 1));
  node.infer_dtype(Self::next_offset, i64);
  if (next.dtype != i64) node.reject("dtype of next_offset", next.dtype, "i64");
  node.infer_strides_like(Self::next_offset, Tensor{});
}

void infer_dropout_backward(NodeContext& node) {
  using Self = DropoutBackward;
  check_state(node, node.op<Self>());
  node.require_floating(Self::dy);
  const Tensor& dy = node.input(Self::dy);
  node.require_dims(Self::mask, dy.dims);
  node.infer_dims(Self::dx, dy.dims);
  node.infer_dtype(Self::dx, dy.dtype);
  node.infer_strides_like(Self::dx, dy);
}

}  // namespace ashlar

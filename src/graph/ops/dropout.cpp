// Definition of dropout.
#include "graph/ops/define.hpp"

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

Contents dropout_forward_contents(const NodeShapes&, int slot) {
  return slot == DropoutForward::x ? Contents{} : seeds();
}

Contents dropout_backward_contents(const NodeShapes& node, int slot) {
  using Self = DropoutBackward;
  if (slot == Self::mask) return keeps_with(1 - node.op<Self>().probability);
  return slot == Self::dy ? Contents{} : seeds();
}

std::vector<Value> sample_dropout_forward(Graph& g, DType t) {
  using Op = DropoutForward;
  return g.apply(Op{}, {{Op::x, g.input("x", {4, 16}, t)}}, {Op::y, Op::mask}).all();
}
std::vector<Value> sample_dropout_backward(Graph& g, DType t) {
  using Op = DropoutBackward;
  return g.apply(Op{}, {{Op::dy, g.input("dy", {4, 16}, t)}}, {Op::dx}).all();
}

void dropout_forward_gradient(GradientContext& c) {
  using Backward = DropoutBackward;
  Backward op;
  static_cast<DropoutAttributes&>(op) = c.op<DropoutForward>();
  std::vector<AnyOperand> operands = c.shared_operands(op);
  // The mask takes an eighth of a byte per element; without it the numbers are drawn again.
  if (const Value mask = c.output(DropoutForward::mask)) operands = {{Backward::mask, mask}};
  operands.push_back({Backward::dy, c.dy()});
  c.add(DropoutForward::x, c.graph().apply_any(op, operands, {})[Backward::dx]);
}

void dropout_backward_gradient(GradientContext& c) {
  const Op op = c.op<DropoutBackward>();
  std::vector<AnyOperand> operands = c.shared_operands(op);
  for (AnyOperand& operand : operands)
    if (operand.slot == DropoutBackward::dy) operand.value = c.dy();
  c.add(DropoutBackward::dy, c.graph().apply_any(op, operands, {})[DropoutBackward::dx]);
}

}  // namespace

template <>
OpTraits define_traits<DropoutForward>() {
  return {.name = "dropout_forward",
          .doc_page = "dropout",
          .infer = infer_dropout_forward,
          .gradient = dropout_forward_gradient,
          .sample = sample_dropout_forward,
          .contents = dropout_forward_contents,
          .fused_inputs = {DropoutForward::x}};
}

template <>
OpTraits define_traits<DropoutBackward>() {
  return {.name = "dropout_backward",
          .doc_page = "dropout",
          .infer = infer_dropout_backward,
          .gradient = dropout_backward_gradient,
          .sample = sample_dropout_backward,
          .contents = dropout_backward_contents,
          .fused_inputs = {DropoutBackward::dy}};
}

}  // namespace ashlar

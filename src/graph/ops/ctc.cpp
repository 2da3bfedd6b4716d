// Inference and validation of the CTC loss.
#include "graph/ops/infer.hpp"

namespace ashlar {

namespace {

// [N]: one length per sequence.
void require_lengths(NodeContext& node, int slot, std::int64_t sequences) {
  node.require_integer(slot);
  node.require_dims(slot, {sequences});
}

}  // namespace

void infer_ctc_loss(NodeContext& node) {
  const auto& op = node.op<CtcLoss>();
  node.require_rank(CtcLoss::x, 3, 3);
  node.require_floating(CtcLoss::x);
  const Tensor& x = node.input(CtcLoss::x);
  const std::int64_t sequences = x.dims[1], classes = x.dims[2];
  if (classes < 1) node.reject("classes of x", classes, "at least 1, the blank");
  if (op.blank < 0 || op.blank >= classes)
    node.reject("blank", op.blank, "0 to {}, one of the classes", classes - 1);

  node.require_rank(CtcLoss::labels, 1, 2);
  node.require_integer(CtcLoss::labels);
  const Dims& labels = node.input(CtcLoss::labels).dims;
  if (labels.rank() == 2 && labels[0] != sequences)
    node.reject(fmt::format("dims of {}", node.input_name(CtcLoss::labels)), labels,
                "[{}, longest], or one axis with the labels of all sequences", sequences);
  require_lengths(node, CtcLoss::label_lengths, sequences);
  require_lengths(node, CtcLoss::input_lengths, sequences);

  const bool keeps = op.padding == CtcPadding::skip && node.has_output(CtcLoss::gradient);
  if (keeps && !node.has_input(CtcLoss::previous))
    node.reject("input previous", "nothing", "a tensor: padding skip copies it into the gradient");
  if (!keeps && node.has_input(CtcLoss::previous))
    node.reject("input previous", "a tensor", "none: it is read only with padding skip");
  node.require_dims(CtcLoss::previous, x.dims);
  node.require_floating(CtcLoss::previous);

  node.infer_dims(CtcLoss::loss, {sequences});
  node.infer_dtype(CtcLoss::loss, x.dtype == f64 ? f64 : f32);
  node.infer_strides_like(CtcLoss::loss, Tensor{});
  node.infer_dims(CtcLoss::gradient, x.dims);
  node.infer_dtype(CtcLoss::gradient, x.dtype);
  node.infer_strides_like(CtcLoss::gradient, x);
}

}  // namespace ashlar

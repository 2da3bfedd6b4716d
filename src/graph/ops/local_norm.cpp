// Inference and validation of local response and divisive normalisation.
#include <cmath>

#include "graph/ops/infer.hpp"

namespace ashlar {

namespace {

// Common to all four operations: x is input 0 and output 0 has its shape.
void infer_like_x(NodeContext& node, const LocalNormAttributes& op, int min_rank) {
  node.require_rank(0, min_rank, kMaxRank);
  node.require_floating(0);
  const Tensor& x = node.input(0);
  for (int slot = 1; slot < node.input_count(); ++slot) {
    node.require_dims(slot, x.dims);
    node.require_floating(slot);
  }
  if (op.window < 1) node.reject("window", op.window, "at least 1");
  if (!std::isfinite(op.alpha)) node.reject("alpha", op.alpha, "a finite number");
  if (!std::isfinite(op.beta)) node.reject("beta", op.beta, "a finite number");
  if (!(op.k >= 0.0 && std::isfinite(op.k))) node.reject("k", op.k, "a finite number, at least 0");
  for (int slot = 0; slot < static_cast<int>(node.outputs().size()); ++slot) {
    node.infer_dims(slot, x.dims);
    node.infer_dtype(slot, x.dtype);
    node.infer_strides_like(slot, x);
  }
}

}  // namespace

void infer_lrn_forward(NodeContext& node) { infer_like_x(node, node.op<LrnForward>(), 2); }

void infer_lrn_backward(NodeContext& node) { infer_like_x(node, node.op<LrnBackward>(), 2); }

void infer_divisive_norm_forward(NodeContext& node) {
  infer_like_x(node, node.op<DivisiveNormForward>(), 3);
}

void infer_divisive_norm_backward(NodeContext& node) {
  if (node.has_output(DivisiveNormBackward::dmeans) && !node.has_input(DivisiveNormBackward::means))
    node.reject("output dmeans", "a tensor", "means as an input");
  infer_like_x(node, node.op<DivisiveNormBackward>(), 3);
}

}  // namespace ashlar

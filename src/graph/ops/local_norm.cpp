// Definition of local response and divisive normalisation.
#include <cmath>

#include "graph/ops/define.hpp"

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

std::vector<Value> sample_lrn_forward(Graph& g, DType t) {
  return g.apply(LrnForward{}, {{LrnForward::x, g.input("x", {1, 8, 4, 4}, t)}}, {LrnForward::y})
      .all();
}
std::vector<Value> sample_lrn_backward(Graph& g, DType t) {
  using Op = LrnBackward;
  return g
      .apply(Op{},
             {{Op::x, g.input("x", {1, 8, 4, 4}, t)}, {Op::dy, g.input("dy", {1, 8, 4, 4}, t)}},
             {Op::dx})
      .all();
}
std::vector<Value> sample_divisive_norm_forward(Graph& g, DType t) {
  using Op = DivisiveNormForward;
  return g.apply(Op{}, {{Op::x, g.input("x", {1, 8, 4, 4}, t)}}, {Op::y}).all();
}
std::vector<Value> sample_divisive_norm_backward(Graph& g, DType t) {
  using Op = DivisiveNormBackward;
  return g
      .apply(Op{},
             {{Op::x, g.input("x", {1, 8, 4, 4}, t)}, {Op::dy, g.input("dy", {1, 8, 4, 4}, t)}},
             {Op::dx})
      .all();
}

void lrn_gradient(GradientContext& c) {
  LrnBackward op;
  static_cast<LocalNormAttributes&>(op) = c.op<LrnForward>();
  c.add(LrnForward::x,
        c.graph().apply(op, {{LrnBackward::x, c.input(LrnForward::x)}, {LrnBackward::dy, c.dy()}}));
}

void divisive_norm_gradient(GradientContext& c) {
  using Backward = DivisiveNormBackward;
  Backward op;
  static_cast<LocalNormAttributes&>(op) = c.op<DivisiveNormForward>();
  std::vector<AnyOperand> operands = c.shared_operands(op);
  operands.push_back({Backward::dy, c.dy()});
  std::vector<AnyWanted> wanted;
  if (c.wants(DivisiveNormForward::means)) wanted.push_back({Backward::dmeans});
  const auto out = c.graph().apply_any(op, operands, wanted);
  c.add(DivisiveNormForward::x, out[Backward::dx]);
  if (!wanted.empty()) c.add(DivisiveNormForward::means, out[Backward::dmeans]);
}

}  // namespace

template <>
OpTraits define_traits<LrnForward>() {
  return {.name = "lrn_forward",
          .doc_page = "local_norm",
          .infer = infer_lrn_forward,
          .gradient = lrn_gradient,
          .sample = sample_lrn_forward,
          .fused_inputs = {LrnForward::x},
          .rereads_inputs = true};
}

template <>
OpTraits define_traits<LrnBackward>() {
  return {.name = "lrn_backward",
          .doc_page = "local_norm",
          .infer = infer_lrn_backward,
          .sample = sample_lrn_backward,
          .fused_inputs = {LrnBackward::x, LrnBackward::dy},
          .rereads_inputs = true};
}

template <>
OpTraits define_traits<DivisiveNormForward>() {
  return {.name = "divisive_norm_forward",
          .doc_page = "local_norm",
          .infer = infer_divisive_norm_forward,
          .gradient = divisive_norm_gradient,
          .sample = sample_divisive_norm_forward,
          .fused_inputs = {DivisiveNormForward::x},
          .rereads_inputs = true};
}

template <>
OpTraits define_traits<DivisiveNormBackward>() {
  return {.name = "divisive_norm_backward",
          .doc_page = "local_norm",
          .infer = infer_divisive_norm_backward,
          .sample = sample_divisive_norm_backward,
          .fused_inputs = {DivisiveNormBackward::x, DivisiveNormBackward::dy},
          .rereads_inputs = true};
}

}  // namespace ashlar

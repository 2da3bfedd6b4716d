// Definition of the CTC loss.
#include <cmath>

#include "graph/ops/define.hpp"

namespace ashlar {

namespace {

// [N]: one length per sequence.
void require_lengths(NodeContext& node, int slot, std::int64_t sequences) {
  node.require_integer(slot);
  node.require_dims(slot, {sequences});
}

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

Contents ctc_loss_contents(const NodeShapes& node, int slot) {
  const auto& op = node.op<CtcLoss>();
  const Dims& x = node.input(CtcLoss::x);
  const Dims& labels = node.input(CtcLoss::labels);
  const std::int64_t share = labels[0] / std::max<std::int64_t>(x[1], 1);  // of concatenated labels
  switch (slot) {
    case CtcLoss::x:
      return op.input == CtcInput::probabilities ? values_within(0.05, 1) : Contents{};
    case CtcLoss::labels:  // any class but the blank, if that is the first
      return whole_numbers(op.blank == 0 && x[2] > 1 ? 1 : 0, static_cast<double>(x[2] - 1), 3, 3);
    case CtcLoss::label_lengths:
      return lengths_up_to(labels.rank() == 2 ? labels[1] : share, -2, 4);
    case CtcLoss::input_lengths: {
      const auto times = static_cast<double>(x[0]), least = std::ceil(times / 2);
      return whole_numbers(least, times, least + 2, 4);
    }
    default: return {};
  }
}

// Per class one exponential; per state two recursions of three exponentials and a logarithm.
double ctc_loss_flops(const NodeShapes& node) {
  constexpr double kPerClass = 30, kPerState = 80;
  const Dims& x = node.input(CtcLoss::x);
  const double states = 2 * count_of(node.input(CtcLoss::labels)) + static_cast<double>(x[1]);
  return static_cast<double>(x[0]) *
         (kPerClass * static_cast<double>(x[1] * x[2]) + kPerState * states);
}

std::vector<Value> sample_ctc_loss(Graph& g, DType t) {
  using Op = CtcLoss;
  return g
      .apply(Op{},
             {{Op::x, g.input("x", {6, 2, 5}, t)},
              {Op::labels, g.input("labels", {2, 2}, i32)},
              {Op::label_lengths, g.input("label_lengths", {2}, i32)},
              {Op::input_lengths, g.input("input_lengths", {2}, i32)}},
             {Op::loss, Op::gradient})
      .all();
}

void ctc_gradient(GradientContext& c) {
  c.only_output(CtcLoss::loss);
  const Value gradient = c.require_output(CtcLoss::gradient);
  const std::int64_t sequences = c.input(CtcLoss::x).dims()[1];
  c.add(CtcLoss::x, c.multiply(gradient, c.graph().reshape(c.dy(), {1, sequences, 1})));
}

}  // namespace

template <>
OpTraits define_traits<CtcLoss>() {
  return {.name = "ctc_loss",
          .doc_page = "ctc",
          .infer = infer_ctc_loss,
          .gradient = ctc_gradient,
          .sample = sample_ctc_loss,
          .contents = ctc_loss_contents,
          .flops = ctc_loss_flops,
          .is_compute_bound = true,
          .fused_inputs = {CtcLoss::x},
          .rereads_inputs = true};
}

}  // namespace ashlar

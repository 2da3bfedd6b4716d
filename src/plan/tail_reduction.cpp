// Reductions as epilogue steps and tail reductions.
#include "plan/tail_reduction.hpp"

#include <optional>

namespace ashlar {

namespace {

using Step = PointwiseProgram::Step;

bool has_output(const Node& node, int slot) {
  return static_cast<std::size_t>(slot) < node.outputs.size() &&
         node.outputs[static_cast<std::size_t>(slot)] != kNoTensor;
}

// `count` elements are reduced to each element of `result`.
TailReduction reduction_to(const LoweredGraph& lowered, TensorId result, ReductionMode mode,
                           double count) {
  const View& view = lowered.views[static_cast<std::size_t>(result)];
  TailReduction reduction{.finish = plain_store(view)};
  PointwiseProgram& finish = reduction.finish;
  finish.space = lowered.graph.tensor(result).dims;
  const auto compute = [&](PointwiseMode mode_of_step, int second) {
    finish.stores[0].value = static_cast<int>(finish.steps.size());
    finish.steps.push_back({.kind = Step::Kind::compute,
                            .op = Pointwise{.mode = mode_of_step},
                            .args = {0, second, -1}});
  };
  switch (mode) {
    case ReductionMode::max:
    case ReductionMode::amax: reduction.fold = ReductionMode::max; break;
    case ReductionMode::min: reduction.fold = ReductionMode::min; break;
    case ReductionMode::avg:
      finish.steps.push_back({.kind = Step::Kind::constant, .constant = count});
      compute(PointwiseMode::div, 1);
      break;
    case ReductionMode::norm2: compute(PointwiseMode::sqrt, -1); break;
    default: break;
  }
  return reduction;
}

}  // namespace

bool can_be_tail(const Node& node) {
  if (node.compute != f32) return false;
  if (std::holds_alternative<GenStats>(node.op))
    return has_output(node, GenStats::sum) || has_output(node, GenStats::sq_sum);
  const auto* op = std::get_if<Reduction>(&node.op);
  return op != nullptr && op->mode != ReductionMode::mul &&
         op->mode != ReductionMode::mul_no_zeros && !has_output(node, Reduction::index);
}

std::size_t tail_count(const Node& node) {
  std::size_t count = 0;
  for (const TensorId id : node.outputs) count += id != kNoTensor ? 1 : 0;
  return count;
}

bool may_have_tails(const Op& op) {
  return std::holds_alternative<Matmul>(op) || std::holds_alternative<ConvForward>(op) ||
         std::holds_alternative<ConvBackwardData>(op);
}

void add_tail(const LoweredGraph& lowered, const Node& node, ProgramBuilder& epilogue,
              std::vector<TailReduction>& reductions) {
  const TensorId x = node.inputs[0];
  const auto add = [&](TensorId result, ReductionMode mode, std::optional<PointwiseMode> f) {
    const auto elements = [&](TensorId id) {
      return static_cast<double>(element_count(lowered.graph.tensor(id).dims));
    };
    epilogue.reduce(x, f);
    reductions.push_back(reduction_to(lowered, result, mode, elements(x) / elements(result)));
  };
  if (std::holds_alternative<GenStats>(node.op)) {
    if (has_output(node, GenStats::sum)) add(node.outputs[GenStats::sum], ReductionMode::add, {});
    if (has_output(node, GenStats::sq_sum))
      add(node.outputs[GenStats::sq_sum], ReductionMode::add, PointwiseMode::mul);
    return;
  }
  const ReductionMode mode = std::get<Reduction>(node.op).mode;
  std::optional<PointwiseMode> f;
  if (mode == ReductionMode::amax || mode == ReductionMode::norm1) f = PointwiseMode::abs;
  if (mode == ReductionMode::norm2) f = PointwiseMode::mul;
  add(node.outputs[Reduction::y], mode, f);
}

}  // namespace ashlar

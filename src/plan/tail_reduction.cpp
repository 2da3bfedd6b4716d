// Reductions as epilogue steps and tail reductions.
#include "plan/tail_reduction.hpp"

namespace ashlar {

namespace {

using Step = PointwiseProgram::Step;

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

std::vector<TailPart> tail_parts(const Node& node) {
  const OpTraits& traits = traits_of(node.op);
  return traits.tails != nullptr && node.compute == f32 ? traits.tails(node)
                                                        : std::vector<TailPart>{};
}

void add_tail(const LoweredGraph& lowered, const Node& node, ProgramBuilder& epilogue,
              std::vector<TailReduction>& reductions) {
  const TensorId x = node.inputs[0];
  const auto elements = [&](TensorId id) {
    return static_cast<double>(element_count(lowered.graph.tensor(id).dims));
  };
  for (const TailPart& part : tail_parts(node)) {
    const TensorId result = node.outputs[static_cast<std::size_t>(part.output)];
    epilogue.reduce(x, part.f);
    reductions.push_back(reduction_to(lowered, result, part.mode, elements(x) / elements(result)));
  }
}

}  // namespace ashlar

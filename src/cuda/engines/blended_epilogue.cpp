#include "cuda/engines/blended_epilogue.hpp"

#include <utility>

#include "cuda/engines/channel_axes.hpp"

namespace ashlar::cuda {

namespace {

using Step = PointwiseProgram::Step;

// Appends the steps of `program` to `to`; returns the offset of their indices.
int append(PointwiseProgram& to, const PointwiseProgram& program, std::size_t first = 0) {
  const int shift = static_cast<int>(to.steps.size() - first);
  for (std::size_t i = first; i < program.steps.size(); ++i) {
    Step step = program.steps[i];
    for (int& arg : step.args)
      if (arg >= static_cast<int>(first)) arg += shift;
    to.steps.push_back(std::move(step));
  }
  return shift;
}

}  // namespace

PointwiseProgram blended_epilogue(const Region& region) {
  const ConvAttributes* op = conv_attributes(region);
  static_assert(ConvForward::z == 2 && ConvBackwardData::z == 2 && ConvBackwardFilter::z == 2);
  const PointwiseProgram& z = input_program(region, ConvForward::z);
  const bool adds = op != nullptr && op->beta != 0.0 && !z.empty();
  if (op == nullptr || (op->alpha == 1.0 && !adds)) return region.epilogue;

  PointwiseProgram result;
  result.space = region.epilogue.space;
  result.steps.push_back(region.epilogue.steps[0]);
  result.steps[0].round_to.reset();
  Step blend{.kind = Step::Kind::compute, .args = {0, -1, -1}};
  blend.op.alpha1 = op->alpha;
  blend.op.mode = PointwiseMode::identity;
  if (adds) {
    blend.op.mode = PointwiseMode::add;
    blend.op.alpha2 = op->beta;
    const int shift = append(result, z);
    blend.args[1] = z.result + shift;
    for (const auto& store : z.stores) result.stores.push_back({store.view, store.value + shift});
  }
  blend.round_to = region.epilogue.steps[0].round_to;
  const int blended = static_cast<int>(result.steps.size());
  result.steps.push_back(blend);
  // Steps that read the accumulator read the blended value instead.
  const int shift = append(result, region.epilogue, 1);
  for (std::size_t i = static_cast<std::size_t>(blended) + 1; i < result.steps.size(); ++i)
    for (int& arg : result.steps[i].args)
      if (arg == 0) arg = blended;
  for (const auto& store : region.epilogue.stores)
    result.stores.push_back({store.view, store.value == 0 ? blended : store.value + shift});
  for (const int value : region.epilogue.reduced)
    result.reduced.push_back(value == 0 ? blended : value + shift);
  return result;
}

}  // namespace ashlar::cuda

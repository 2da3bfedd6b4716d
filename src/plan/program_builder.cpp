// ProgramBuilder: nodes to steps of a PointwiseProgram.
#include "plan/program_builder.hpp"

#include "base/element.hpp"
#include "graph/pointwise_traits.hpp"
#include "plan/random_steps.hpp"

namespace ashlar {

using Step = PointwiseProgram::Step;

int ProgramBuilder::push(Step step) {
  program_.steps.push_back(std::move(step));
  return static_cast<int>(program_.steps.size()) - 1;
}

void ProgramBuilder::set_accumulator(TensorId tensor) {
  Step step{.kind = Step::Kind::accumulator};
  step.round_to = register_rounding(lowered_.graph.tensor(tensor).dtype);
  values_[tensor] = push(step);
}

int ProgramBuilder::value_of(TensorId id) {
  const auto found = values_.find(id);
  if (found != values_.end()) return found->second;
  const Tensor& tensor = lowered_.graph.tensor(id);
  Step step;
  if (tensor.kind == TensorKind::constant) {
    step.kind = Step::Kind::constant;
    step.constant = round_to(tensor.dtype, tensor.value);
  } else {
    step.kind = Step::Kind::load;
    step.view = broadcast_to(lowered_.views[static_cast<std::size_t>(id)], program_.space);
  }
  return values_[id] = push(step);
}

View ProgramBuilder::view_of(TensorId id) const {
  return id == kNoTensor ? View{} : lowered_.views[static_cast<std::size_t>(id)];
}

void ProgramBuilder::add_random(const Node& node) {
  const TensorId y = node.outputs[Rng::y];
  values_[y] = push_random(program_, std::get<Rng>(node.op), view_of(node.inputs[Rng::seed_tensor]),
                           view_of(node.inputs[Rng::offset_tensor]));
  program_.steps.back().round_to = register_rounding(lowered_.graph.tensor(y).dtype);
}

void ProgramBuilder::add_dropout(const Node& node) {
  using Dropout = DropoutForward;
  const auto& op = std::get<Dropout>(node.op);
  const int kept = push_random(program_, keeps(op), view_of(node.inputs[Dropout::seed_tensor]),
                               view_of(node.inputs[Dropout::offset_tensor]));
  const int x = value_of(node.inputs[Dropout::x]);
  const TensorId y = node.outputs[Dropout::y];
  values_[y] = push_dropped(program_, x, kept, op.probability, node.compute);
  program_.steps.back().round_to = register_rounding(lowered_.graph.tensor(y).dtype);
  if (node.outputs.size() > Dropout::mask && node.outputs[Dropout::mask] != kNoTensor)
    values_[node.outputs[Dropout::mask]] = kept;
}

int ProgramBuilder::value_of_blocks(TensorId id, const Dims& blocks) {
  // Blocks of one element may reuse the value of an earlier step.
  if (const auto found = values_.find(id); found != values_.end()) return found->second;
  Step step{.kind = Step::Kind::load, .view = view_of(id)};
  step.view.dims = program_.space;
  step.blocks = blocks;
  return push(std::move(step));
}

void ProgramBuilder::add_dequantize(const Node& node) {
  using Dequantize = BlockScaleDequantize;
  const auto& op = std::get<Dequantize>(node.op);
  int number = value_of(node.inputs[Dequantize::x]);
  if (const TensorId zero = node.inputs[Dequantize::zero_point]; zero != kNoTensor) {
    Step difference{.kind = Step::Kind::compute,
                    .op = Pointwise{.mode = PointwiseMode::sub},
                    .args = {number, value_of_blocks(zero, op.block_size), -1},
                    .compute = node.compute};
    number = push(std::move(difference));
  }
  Step product{
      .kind = Step::Kind::compute,
      .op = Pointwise{.mode = PointwiseMode::mul, .alpha1 = op.negative_scale ? -1.0 : 1.0},
      .args = {number, value_of_blocks(node.inputs[Dequantize::scale], op.block_size), -1},
      .compute = node.compute};
  product.round_to = register_rounding(lowered_.graph.tensor(node.outputs[0]).dtype);
  values_[node.outputs[0]] = push(std::move(product));
}

void ProgramBuilder::add(const Node& node) {
  if (std::holds_alternative<BlockScaleDequantize>(node.op)) return add_dequantize(node);
  if (std::holds_alternative<Rng>(node.op)) return add_random(node);
  if (std::holds_alternative<DropoutForward>(node.op)) return add_dropout(node);
  const auto& op = std::get<Pointwise>(node.op);
  Step step{.kind = Step::Kind::compute, .op = op, .compute = node.compute};
  // gen_index depends on the coordinate only: its operand is never read.
  const int operands = op.mode == PointwiseMode::gen_index ? 0 : operand_count(op.mode);
  for (int slot = 0; slot < operands; ++slot)
    step.args[static_cast<std::size_t>(slot)] =
        value_of(node.inputs[static_cast<std::size_t>(slot)]);
  step.round_to = register_rounding(lowered_.graph.tensor(node.outputs[0]).dtype);
  const int value = push(std::move(step));
  values_[node.outputs[0]] = value;
}

void ProgramBuilder::store(TensorId tensor) {
  program_.stores.push_back({lowered_.views[static_cast<std::size_t>(tensor)], values_.at(tensor)});
}

void ProgramBuilder::reduce(TensorId tensor, std::optional<PointwiseMode> f) {
  int value = values_.at(tensor);
  if (f) {
    Step step{.kind = Step::Kind::compute, .op = Pointwise{.mode = *f}};
    for (int slot = 0; slot < operand_count(*f); ++slot)
      step.args[static_cast<std::size_t>(slot)] = value;
    value = push(std::move(step));
  }
  program_.reduced.push_back(value);
}

void ProgramBuilder::set_result(TensorId tensor) { program_.result = value_of(tensor); }

}  // namespace ashlar

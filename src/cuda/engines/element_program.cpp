#include "cuda/engines/element_program.hpp"

#include <algorithm>

#include "plan/random_steps.hpp"

namespace ashlar::cuda {

namespace {

using Step = PointwiseProgram::Step;

// Concatenates pointwise programs into one.
class Splicer {
 public:
  explicit Splicer(const Region& region) : Splicer(region, region.epilogue.space) {}
  Splicer(const Region& region, const Dims& space) : region_(region) { program_.space = space; }

  int push(Step step) {
    program_.steps.push_back(std::move(step));
    return static_cast<int>(program_.steps.size()) - 1;
  }
  // Appends the program's steps and stores, with `accumulator` as its accumulator. Returns its
  // result.
  int append(const PointwiseProgram& other, int accumulator = -1) {
    std::vector<int> values;
    for (Step step : other.steps) {
      if (step.kind == Step::Kind::accumulator) {
        const std::optional<DType> round_to = step.round_to;
        step = {.kind = Step::Kind::compute, .op = {.mode = PointwiseMode::identity}};
        step.round_to = round_to;
        values.push_back(round_to ? (step.args[0] = accumulator, push(step)) : accumulator);
        continue;
      }
      for (int& arg : step.args)
        if (arg >= 0) arg = values[static_cast<std::size_t>(arg)];
      values.push_back(push(std::move(step)));
    }
    for (const PointwiseProgram::Store& store : other.stores)
      program_.stores.push_back({store.view, values[static_cast<std::size_t>(store.value)]});
    return other.result < 0 ? -1 : values[static_cast<std::size_t>(other.result)];
  }
  void store(const View& view, int value) { program_.stores.push_back({view, value}); }

  // The random values of `op`, whose seed and offset are these inputs of the anchor.
  int random(const Rng& op, int seed_slot, int offset_slot) {
    return push_random(program_, op, input(seed_slot), input(offset_slot));
  }
  int dropped(int x, int kept, double probability) {
    return push_dropped(program_, x, kept, probability, region_.anchor->compute);
  }
  View input(int slot) const {
    const auto& inputs = region_.anchor->inputs;
    const auto at = static_cast<std::size_t>(slot);
    return at < inputs.size() ? inputs[at] : View{};
  }
  View output(int slot) const {
    const auto& outputs = region_.anchor->outputs;
    const auto at = static_cast<std::size_t>(slot);
    return at < outputs.size() ? outputs[at] : View{};
  }
  PointwiseProgram take() { return std::move(program_); }

 private:
  const Region& region_;
  PointwiseProgram program_;
};

PointwiseProgram of_random(const Region& region, const Rng& op) {
  Splicer splicer(region);
  splicer.append(region.epilogue, splicer.random(op, Rng::seed_tensor, Rng::offset_tensor));
  return splicer.take();
}

std::vector<PointwiseProgram> of_dropout(const Region& region, const DropoutForward& op) {
  using Op = DropoutForward;
  Splicer splicer(region);
  if (splicer.output(Op::next_offset).present()) return {};
  const int kept = splicer.random(keeps(op), Op::seed_tensor, Op::offset_tensor);
  if (const View mask = splicer.output(Op::mask); mask.present()) splicer.store(mask, kept);
  const int x = splicer.append(region.prologues[Op::x]);
  splicer.append(region.epilogue, splicer.dropped(x, kept, op.probability));
  return {splicer.take()};
}

PointwiseProgram of_dropout(const Region& region, const DropoutBackward& op) {
  using Op = DropoutBackward;
  Splicer splicer(region);
  const int kept = splicer.input(Op::mask).present()
                       ? splicer.append(region.prologues[Op::mask])
                       : splicer.random(keeps(op), Op::seed_tensor, Op::offset_tensor);
  const int dy = splicer.append(region.prologues[Op::dy]);
  splicer.append(region.epilogue, splicer.dropped(dy, kept, op.probability));
  return splicer.take();
}

// Scales and zero points in the linear layout become load steps of the program.
std::vector<PointwiseProgram> of_dequantize(const Region& region, const BlockScaleDequantize& op) {
  using Op = BlockScaleDequantize;
  const PointwiseProgram &scale = region.prologues[Op::scale],
                         &zero = region.prologues[Op::zero_point];
  if (op.scale_layout != ScaleLayout::linear || !scale.is_plain_load() ||
      (!zero.empty() && !zero.is_plain_load()))
    return {};
  Splicer splicer(region);
  const auto shared = [&](const PointwiseProgram& program) {
    Step step = program.steps[0];
    step.view.dims = region.epilogue.space;
    step.blocks = op.block_size;
    return splicer.push(std::move(step));
  };
  const auto compute = [&](const Pointwise& what, int a, int b) {
    return splicer.push({.kind = Step::Kind::compute,
                         .op = what,
                         .args = {a, b, -1},
                         .compute = region.anchor->compute});
  };
  int x = splicer.append(region.prologues[Op::x]);
  if (!zero.empty()) x = compute({.mode = PointwiseMode::sub}, x, shared(zero));
  const double sign = op.negative_scale ? -1.0 : 1.0;
  splicer.append(region.epilogue,
                 compute({.mode = PointwiseMode::mul, .alpha1 = sign}, x, shared(scale)));
  return {splicer.take()};
}

// The program restricted to [begin, begin + extent) of an axis.
PointwiseProgram part_of(PointwiseProgram program, int axis, std::int64_t begin,
                         std::int64_t extent) {
  const auto narrow = [&](View& view) {
    view.offset += begin * view.strides[axis];
    view.dims[axis] = extent;
  };
  for (Step& step : program.steps)
    if (step.kind == Step::Kind::load) narrow(step.view);
  for (auto& store : program.stores) narrow(store.view);
  program.space[axis] = extent;
  return program;
}

// Whether a step depends on its coordinates, which change when a program is restricted.
bool depends_on_position(const PointwiseProgram& program) {
  return std::any_of(program.steps.begin(), program.steps.end(), [](const Step& step) {
    return step.kind == Step::Kind::random ||
           (step.kind == Step::Kind::compute && step.op.mode == PointwiseMode::gen_index);
  });
}

std::vector<PointwiseProgram> of_concat(const Region& region, const Concat& op) {
  if (depends_on_position(region.epilogue)) return {};
  const int rank = region.epilogue.space.rank();
  const auto axis = static_cast<int>(op.axis < 0 ? op.axis + rank : op.axis);
  std::vector<PointwiseProgram> programs;
  std::int64_t begin = 0;
  for (const PointwiseProgram& input : region.prologues) {
    const std::int64_t extent = input.space[axis];
    Splicer splicer(region, input.space);
    const int value = splicer.append(input);
    splicer.append(part_of(region.epilogue, axis, begin, extent), value);
    programs.push_back(splicer.take());
    begin += extent;
  }
  return programs;
}

}  // namespace

std::vector<PointwiseProgram> element_programs(const Region& region) {
  if (!region.anchor) return {region.epilogue};
  if (const auto* op = region.anchor_as<Rng>()) return {of_random(region, *op)};
  if (const auto* op = region.anchor_as<DropoutForward>()) return of_dropout(region, *op);
  if (const auto* op = region.anchor_as<DropoutBackward>()) return {of_dropout(region, *op)};
  if (const auto* op = region.anchor_as<BlockScaleDequantize>()) return of_dequantize(region, *op);
  if (const auto* op = region.anchor_as<Concat>()) return of_concat(region, *op);
  return {};
}

}  // namespace ashlar::cuda

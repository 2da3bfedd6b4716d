#include "cuda/engines/weight_program.hpp"

namespace ashlar::cuda {

namespace {

using Step = PointwiseProgram::Step;
using Kind = Step::Kind;

// Which values of a program vary along an axis.
std::vector<char> differing_along(const PointwiseProgram& program, int axis) {
  std::vector<char> differs(program.steps.size(), 0);
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const Step& step = program.steps[i];
    if (step.kind == Kind::accumulator || step.kind == Kind::random) differs[i] = 1;
    if (step.kind == Kind::load && program.space[axis] > 1 && step.view.strides[axis] != 0)
      differs[i] = 1;
    if (step.kind == Kind::compute)
      for (int arg : step.args)
        if (arg >= 0 && differs[static_cast<std::size_t>(arg)]) differs[i] = 1;
  }
  return differs;
}

// A plain a * b (or a - b) in f32.
bool is_plain(const Step& step, PointwiseMode mode) {
  return step.kind == Kind::compute && step.op.mode == mode && step.op.alpha1 == 1.0 &&
         step.op.alpha2 == 1.0 && !step.round_to && step.compute == f32;
}
bool is_plain_product(const Step& step) { return is_plain(step, PointwiseMode::mul); }

// A load of a block-wise parameter (scale or zero point).
bool is_shared(const Step& step) {
  return step.kind == Kind::load && !step.blocks.empty() && !step.round_to;
}

}  // namespace

bool is_exact_in(DType dtype, DType to) {
  if (dtype == to) return true;
  if (dtype == e8m0) return to == bf16;
  return bit_width(dtype) <= 8;
}

PointwiseProgram part_of(const PointwiseProgram& program, int result) {
  std::vector<int> place(program.steps.size(), -1);
  std::vector<char> needed(program.steps.size(), 0);
  needed[static_cast<std::size_t>(result)] = 1;
  for (std::size_t i = program.steps.size(); i-- > 0;)
    if (needed[i] && program.steps[i].kind == Kind::compute)
      for (int arg : program.steps[i].args)
        if (arg >= 0) needed[static_cast<std::size_t>(arg)] = 1;
  PointwiseProgram part;
  part.space = program.space;
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    if (!needed[i]) continue;
    Step step = program.steps[i];
    if (step.kind == Kind::compute)
      for (int& arg : step.args)
        if (arg >= 0) arg = place[static_cast<std::size_t>(arg)];
    place[i] = static_cast<int>(part.steps.size());
    part.steps.push_back(std::move(step));
  }
  part.result = place[static_cast<std::size_t>(result)];
  return part;
}

PointwiseProgram hoist_scales(PointwiseProgram& program, int axis) {
  const std::vector<char> differs = differing_along(program, axis);
  std::vector<int> factors;
  for (;;) {
    const Step& step = program.steps[static_cast<std::size_t>(program.result)];
    if (!is_plain_product(step)) break;
    const int a = step.args[0], b = step.args[1];
    const bool a_differs = differs[static_cast<std::size_t>(a)] != 0;
    if (a_differs == (differs[static_cast<std::size_t>(b)] != 0)) break;
    factors.push_back(a_differs ? b : a);
    program.result = a_differs ? a : b;
  }
  PointwiseProgram product;
  if (!factors.empty()) {
    product = program;
    Step times;
    times.kind = Kind::compute;
    times.op = Pointwise{.mode = PointwiseMode::mul};
    product.result = factors[0];
    for (std::size_t i = 1; i < factors.size(); ++i) {
      times.args = {product.result, factors[i], -1};
      product.result = static_cast<int>(product.steps.size());
      product.steps.push_back(times);
    }
    product = part_of(product, product.result);
  }
  program = part_of(program, program.result);
  return product;
}

void scale_accumulator(PointwiseProgram& epilogue, const PointwiseProgram& factor) {
  const auto product = static_cast<int>(factor.steps.size()) + 1;
  const auto moved = [&](int value) {
    return value <= 0 ? (value == 0 ? product : -1) : value + product;
  };
  std::vector<Step> steps = {epilogue.steps[0]};
  for (Step step : factor.steps) {
    for (int& arg : step.args) arg = arg < 0 ? arg : arg + 1;
    for (int axis = 0; step.kind == Kind::load && axis < epilogue.space.rank(); ++axis) {
      if (factor.space[axis] == 1) step.view.strides[axis] = 0;
      step.view.dims[axis] = epilogue.space[axis];
    }
    steps.push_back(std::move(step));
  }
  Step times;
  times.kind = Kind::compute;
  times.op = Pointwise{.mode = PointwiseMode::mul};
  times.args = {0, factor.result + 1, -1};
  std::swap(times.round_to, steps[0].round_to);
  steps.push_back(std::move(times));
  for (std::size_t i = 1; i < epilogue.steps.size(); ++i) {
    steps.push_back(epilogue.steps[i]);
    if (steps.back().kind == Kind::compute)
      for (int& arg : steps.back().args) arg = moved(arg);
  }
  epilogue.steps = std::move(steps);
  for (PointwiseProgram::Store& store : epilogue.stores) store.value = moved(store.value);
}

NarrowLoad find_narrow_load(const PointwiseProgram& program) {
  const auto step = [&](int i) { return &program.steps[static_cast<std::size_t>(i)]; };
  NarrowLoad found;
  std::size_t steps = 1;
  int value = program.result;
  if (is_plain_product(*step(value))) {
    const int a = step(value)->args[0], b = step(value)->args[1];
    const int scale = is_shared(*step(a)) ? a : b;
    if (!is_shared(*step(scale))) return {};
    found.scales = step(scale);
    value = a + b - scale;
    steps += 2;
    if (is_plain(*step(value), PointwiseMode::sub)) {
      found.zeros = step(step(value)->args[1]);
      if (!is_shared(*found.zeros)) return {};
      value = step(value)->args[0];
      steps += 2;
    }
  }
  const Step* numbers = step(value);
  const bool is_rounded = numbers->round_to && *numbers->round_to != numbers->view.dtype;
  if (program.steps.size() != steps || numbers->kind != Kind::load || !numbers->blocks.empty() ||
      is_rounded)
    return {};
  found.numbers = numbers;
  return found;
}

}  // namespace ashlar::cuda

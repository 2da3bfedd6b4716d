// Rng and dropout as steps of a PointwiseProgram.
#include "plan/random_steps.hpp"

#include <utility>

namespace ashlar {

namespace {

using Step = PointwiseProgram::Step;

int push(PointwiseProgram& program, Step step) {
  program.steps.push_back(std::move(step));
  return static_cast<int>(program.steps.size()) - 1;
}

}  // namespace

int push_random(PointwiseProgram& program, const Rng& op, const View& seed, const View& offset) {
  Step step{.kind = Step::Kind::random};
  step.random = op;
  step.seed = seed;
  step.offset = offset;
  step.view.dims = program.space;
  step.view.strides = row_major.strides_for(program.space);
  return push(program, std::move(step));
}

Rng keeps(const DropoutAttributes& op) {
  return {.distribution = RngDistribution::bernoulli,
          .probability = 1.0 - op.probability,
          .seed = op.seed,
          .offset = op.offset};
}

int push_dropped(PointwiseProgram& program, int x, int kept, double probability, DType compute) {
  const double scale = probability < 1.0 ? 1.0 / (1.0 - probability) : 0.0;
  const int factor = push(program, {.kind = Step::Kind::constant, .constant = scale});
  const int zero = push(program, {.kind = Step::Kind::constant, .constant = 0.0});
  const int scaled = push(program, {.kind = Step::Kind::compute,
                                    .op = {.mode = PointwiseMode::mul},
                                    .args = {x, factor, -1},
                                    .compute = compute});
  return push(program, {.kind = Step::Kind::compute,
                        .op = {.mode = PointwiseMode::binary_select},
                        .args = {scaled, zero, kept},
                        .compute = compute});
}

}  // namespace ashlar

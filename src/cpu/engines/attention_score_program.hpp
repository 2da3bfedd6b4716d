// Lowers score programs (ashlar/ops/attention.hpp) and soft caps to pointwise programs over the
// scores [B, H, Sq, Skv].
#pragma once

#include <array>

#include "cpu/engines/attention_shape.hpp"
#include "graph/score_program.hpp"
#include "plan/engine.hpp"

namespace ashlar::cpu {

class ScoreLowering {
 public:
  ScoreLowering(const Anchor& anchor, int first_input, const Dims& space)
      : anchor_(anchor), first_input_(first_input) {
    program_.space = space;
    leaves_.fill(-1);
  }

  int row(int number) {
    Step step{.kind = Step::Kind::accumulator};
    step.row = number;
    return push(std::move(step));
  }
  int constant(double value) { return push({.kind = Step::Kind::constant, .constant = value}); }
  int compute(const Pointwise& op, std::array<int, 3> args) {
    return push({.kind = Step::Kind::compute, .op = op, .args = args, .compute = anchor_.compute});
  }
  int compute(PointwiseMode mode, int x, int b) {
    return compute(Pointwise{.mode = mode}, {x, b, -1});
  }
  // cap * tanh(x / cap), or x itself.
  struct Capped {
    int value, ratio;
  };
  Capped capped(const std::optional<double>& soft_cap, int x) {
    if (!soft_cap) return {x, x};
    const int cap = constant(*soft_cap);
    const int ratio = compute(PointwiseMode::div, x, cap);
    return {compute(PointwiseMode::mul, compute(PointwiseMode::tanh_fwd, ratio, -1), cap), ratio};
  }
  // Appends a score program whose value 0 is `score` and whose value kScoreGradient is `gradient`;
  // returns its result.
  int add(const ScoreProgram& program, int score, int gradient = -1) {
    std::vector<int> results;
    const auto value = [&](std::int64_t number) {
      if (number == 0) return score;
      if (number == kScoreGradient) return gradient;
      if (number >= kFirstScoreStep)
        return results[static_cast<std::size_t>(number - kFirstScoreStep)];
      return leaf(number);
    };
    for (const ScoreStep& step : program) {
      if (step.constant) {
        results.push_back(constant(*step.constant));
        continue;
      }
      std::array<int, 3> args = {-1, -1, -1};
      for (int i = 0; i < step.args.rank(); ++i)
        args[static_cast<std::size_t>(i)] = value(step.args[i]);
      results.push_back(compute(step.op, args));
    }
    return results.empty() ? score : results.back();
  }
  PointwiseProgram take(int result) {
    program_.result = result;
    return std::move(program_);
  }

 private:
  using Step = PointwiseProgram::Step;
  int push(Step step) {
    program_.steps.push_back(std::move(step));
    return static_cast<int>(program_.steps.size()) - 1;
  }
  // A coordinate or a score input.
  int leaf(std::int64_t number) {
    int& known = leaves_[static_cast<std::size_t>(number)];
    if (known >= 0) return known;
    if (number >= kFirstScoreInput) {
      const auto slot = static_cast<std::size_t>(first_input_ + number - kFirstScoreInput);
      Step step{.kind = Step::Kind::load};
      step.view = broadcast_to(anchor_.inputs[slot], program_.space);
      return known = push(std::move(step));
    }
    constexpr std::int64_t kAxes[] = {-1, 2, 3, 0, 1};  // query, key, batch, head
    return known = compute(Pointwise{.mode = PointwiseMode::gen_index, .axis = kAxes[number]},
                           {-1, -1, -1});
  }

  const Anchor& anchor_;
  int first_input_;
  PointwiseProgram program_;
  std::array<int, static_cast<std::size_t>(kFirstScoreStep)> leaves_;
};

// modifier(cap(scaled score)); empty if there is neither.
template <class Attention>
PointwiseProgram modifier_program(const Anchor& anchor, const Attention& op, const Dims& space) {
  if (op.score_modifier.empty() && !op.soft_cap) return {};
  ScoreLowering lowering(anchor, Attention::score_input0, space);
  const int scaled = lowering.row(0);
  return lowering.take(lowering.add(op.score_modifier, lowering.capped(op.soft_cap, scaled).value));
}

// The gradient of the scaled score: row 0 is the gradient of the modified score, row 1 the scaled
// score.
inline PointwiseProgram modifier_gradient_program(const Anchor& anchor, const AttentionBackward& op,
                                                  const Dims& space) {
  if (op.score_modifier.empty() && !op.soft_cap) return {};
  ScoreLowering lowering(anchor, AttentionBackward::score_input0, space);
  int gradient = lowering.row(0);
  const ScoreLowering::Capped capped = lowering.capped(op.soft_cap, lowering.row(1));
  if (!op.score_modifier.empty())
    gradient = lowering.add(op.score_modifier_gradient.empty() ? gradient_of(op.score_modifier)
                                                               : op.score_modifier_gradient,
                            capped.value, gradient);
  if (op.soft_cap) gradient = lowering.compute(PointwiseMode::tanh_bwd, gradient, capped.ratio);
  return lowering.take(gradient);
}

// Whether the program fits the maximum length of a row program.
inline Support fits(const PointwiseProgram& program) {
  if (program.steps.size() > static_cast<std::size_t>(kMaxProgramSteps))
    return Support::no("the score modifier has {} steps, at most {} are supported",
                       program.steps.size(), kMaxProgramSteps);
  return Support::yes();
}

}  // namespace ashlar::cpu

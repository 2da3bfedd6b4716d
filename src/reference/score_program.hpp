// A program on the attention score, for one element.
#pragma once

#include <array>

#include "graph/score_program.hpp"
#include "reference/pointwise.hpp"

namespace ashlar::reference {

// What a program reads: the score, its coordinates, the score inputs and the gradient, by number.
template <class Scalar>
using ScoreValues = std::array<Scalar, static_cast<std::size_t>(kFirstScoreStep)>;

template <class Scalar>
Scalar run_score_program(const ScoreProgram& program, const ScoreValues<Scalar>& operands) {
  std::array<Scalar, kMaxDerivedSteps> results;
  const auto value = [&](std::int64_t number) {
    return number < kFirstScoreStep ? operands[static_cast<std::size_t>(number)]
                                    : results[static_cast<std::size_t>(number - kFirstScoreStep)];
  };
  const auto scaled = [](double alpha, Scalar x) { return alpha == 1.0 ? x : Scalar(alpha) * x; };
  for (std::size_t n = 0; n < program.size(); ++n) {
    const ScoreStep& step = program[n];
    const int count = step.args.rank();
    results[n] =
        step.constant
            ? Scalar(*step.constant)
            : apply_pointwise(step.op, DType::f32, scaled(step.op.alpha1, value(step.args[0])),
                              count > 1 ? scaled(step.op.alpha2, value(step.args[1])) : Scalar(0.0),
                              count > 2 ? value(step.args[2]) : Scalar(0.0), 0);
  }
  return program.empty() ? operands[0] : results[program.size() - 1];
}

}  // namespace ashlar::reference

// Evaluates a score program for one attention score.
#pragma once

#include <array>

#include "graph/score_program.hpp"
#include "reference/pointwise.hpp"

namespace ashlar::reference {

// The operands of a program by value number: score, coordinates, score inputs, gradient.
template <class Scalar>
using ScoreValues = std::array<Scalar, static_cast<std::size_t>(kFirstScoreStep)>;

// Sums, differences and products of integers are exact: positions are compared for equality.
template <Arithmetic A>
Approx<A> exact_if_whole(PointwiseMode mode, Approx<A> x, Approx<A> b, Approx<A> result) {
  const bool closed =
      mode == PointwiseMode::add || mode == PointwiseMode::sub || mode == PointwiseMode::mul;
  if (!closed || x.error != 0.0 || b.error != 0.0 || !is_whole(x.value) || !is_whole(b.value) ||
      !(std::fabs(result.value) <= Rounding<A>::exact_integers))
    return result;
  return Approx<A>::with_error(result.value, 0.0);
}
inline double exact_if_whole(PointwiseMode, double, double, double result) { return result; }

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
    if (step.constant) {
      results[n] = Scalar(*step.constant);
      continue;
    }
    const int count = step.args.rank();
    const Scalar x = scaled(step.op.alpha1, value(step.args[0]));
    const Scalar b = count > 1 ? scaled(step.op.alpha2, value(step.args[1])) : Scalar(0.0);
    const Scalar predicate = count > 2 ? value(step.args[2]) : Scalar(0.0);
    results[n] = exact_if_whole(step.op.mode, x, b,
                                apply_pointwise(step.op, DType::f32, x, b, predicate, 0));
  }
  return program.empty() ? operands[0] : results[program.size() - 1];
}

}  // namespace ashlar::reference

// Validation and differentiation of score programs (ScoreProgram, ashlar/ops/attention.hpp).
#pragma once

#include <ashlar/ops/attention.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace ashlar {

// Parses the list of steps that docs/graph-json.md specifies; throws Error(parse) with `path` in
// the message.
ScoreProgram parse_score_program(std::string_view json, const std::string& path);

// Which values outside its own steps a program may read.
struct ScoreOperands {
  bool inputs[4] = {};    // score_input0 to score_input3
  bool gradient = false;  // value kScoreGradient
};

// The first error of a program, as parts of the error message; nullopt if it is valid.
struct ScoreProgramFault {
  std::size_t step = 0;
  std::string got, expected;
};
std::optional<ScoreProgramFault> find_fault(const ScoreProgram& program,
                                            const ScoreOperands& operands);

// The step, if any, whose derivative is not known: an activation gradient whose second operand
// depends on the score.
std::optional<std::size_t> undifferentiable_step(const ScoreProgram& program);

// The program that computes d(modified score) / d(score). At a kink the derivative is one-sided:
// max and min use the first operand for equal operands, abs has 0, activations follow their
// gradient modes. Step functions (floor, ceil, comparisons) have derivative 0. Dead steps are
// removed, so the result has at most kMaxDerivedSteps. `program` must be valid and differentiable.
ScoreProgram differentiate(const ScoreProgram& program);
inline constexpr std::size_t kMaxDerivedSteps = 16 * kMaxScoreSteps;
// The derivative as a score_modifier_gradient: multiplied by value kScoreGradient.
ScoreProgram gradient_of(const ScoreProgram& program);

}  // namespace ashlar

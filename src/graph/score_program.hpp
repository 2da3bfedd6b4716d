// Programs on the attention score (ScoreProgram, ashlar/ops/attention.hpp): what makes one valid,
// and the derivative of one.
#pragma once

#include <ashlar/ops/attention.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace ashlar {

// The list of steps as docs/graph-json.md writes it; throws Error(parse) with `path` in the
// sentence.
ScoreProgram parse_score_program(std::string_view json, const std::string& path);

// Which values outside its own steps a program may read.
struct ScoreOperands {
  bool inputs[4] = {};    // score_input0 to score_input3
  bool gradient = false;  // value kScoreGradient
};

// The first thing wrong with a program, in the words of a message, or nothing.
struct ScoreProgramFault {
  std::size_t step = 0;
  std::string got, expected;
};
std::optional<ScoreProgramFault> find_fault(const ScoreProgram& program,
                                            const ScoreOperands& operands);

// The step, if any, whose derivative is not known: an activation gradient whose second operand
// depends on the score.
std::optional<std::size_t> undifferentiable_step(const ScoreProgram& program);

// The program of d new score / d score. At a kink it takes one side: max and min that of the first
// operand when both are equal, abs 0, activations what their gradient modes take. Steps (floor,
// ceil, comparisons) have derivative 0. Steps that do not matter are left out, so the result has
// at most kMaxDerivedSteps. `program` must be valid and differentiable.
ScoreProgram differentiate(const ScoreProgram& program);
inline constexpr std::size_t kMaxDerivedSteps = 16 * kMaxScoreSteps;
// The same as a score_modifier_gradient: times value kScoreGradient.
ScoreProgram gradient_of(const ScoreProgram& program);

}  // namespace ashlar

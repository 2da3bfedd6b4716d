// The derivative of every pointwise mode a score program may use, against central differences.
#include "reference/score_program.hpp"

#include <gtest/gtest.h>

#include "graph/enum_names.hpp"
#include "graph/pointwise_traits.hpp"

namespace ashlar::reference {
namespace {

using Mode = PointwiseMode;

double run(const ScoreProgram& program, double score, double input) {
  ScoreValues<double> values = {score, 3, 4, 0, 1, input};
  return run_score_program(program, values);
}

void expect_derivative(const ScoreProgram& program, const std::string& what) {
  ASSERT_FALSE(find_fault(program, {.inputs = {true, false, false, false}})) << what;
  ASSERT_FALSE(undifferentiable_step(program)) << what;
  const ScoreProgram slope = differentiate(program);
  EXPECT_LE(slope.size(), kMaxDerivedSteps);
  EXPECT_FALSE(find_fault(slope, {.inputs = {true, false, false, false}})) << what;
  // Away from the kinks and jumps of every mode.
  for (double score : {0.31, 1.73, -0.62})
    for (double input : {0.47, 1.19}) {
      constexpr double kStep = 1e-6;
      const double difference =
          (run(program, score + kStep, input) - run(program, score - kStep, input)) / (2 * kStep);
      if (std::isnan(difference)) continue;  // outside the mode's domain
      EXPECT_NEAR(run(slope, score, input), difference, 1e-7 * std::max(1.0, std::fabs(difference)))
          << what << " at " << score << ", " << input;
    }
}

// Every mode, with the score as each operand and as both, and with alphas.
TEST(ScoreProgram, DerivativesOfEveryMode) {
  int tried = 0;
  for (int i = 0; i < kPointwiseModeCount; ++i) {
    const auto mode = static_cast<Mode>(i);
    if (mode == Mode::gen_index || is_bitwise(mode)) continue;
    const Pointwise op{.mode = mode,
                       .alpha1 = 1.5,
                       .alpha2 = 0.75,
                       .relu_lower_clip = -0.2,
                       .relu_upper_clip = 1.1,
                       .relu_lower_slope = 0.1,
                       .elu_alpha = 1.3,
                       .softplus_beta = 2.0,
                       .swish_beta = 0.7};
    std::vector<Dims> arguments;
    switch (operand_count(mode)) {
      case 1: arguments = {{0}}; break;
      case 2: arguments = {{0, 5}, {5, 0}, {0, 0}}; break;
      default: arguments = {{0, 5, 1}, {5, 0, 1}, {0, 0, 5}};
    }
    for (const Dims& args : arguments) {
      if (is_activation_gradient(mode) && args[1] == 0) continue;
      const std::string what = std::string(enum_name(mode)) + " " + to_string(args);
      expect_derivative({{.op = op, .args = args}}, what);
      // Inside a chain: the slope of the operand is not 1, and the result is used twice.
      Dims inner = args;
      for (std::int64_t& arg : inner)
        if (arg == 0) arg = kFirstScoreStep;
      expect_derivative({{.op = {.mode = Mode::add_square}, .args = {0, 0}},
                         {.op = op, .args = inner},
                         {.op = {.mode = Mode::mul}, .args = {11, 11}}},
                        what + " in a chain");
      ++tried;
    }
  }
  EXPECT_GT(tried, 80);
}

TEST(ScoreProgram, EmptyAndConstantPrograms) {
  EXPECT_EQ(run(differentiate({}), 0.4, 0), 1.0);
  EXPECT_EQ(run(differentiate({{.constant = 3.0}}), 0.4, 0), 0.0);
}

TEST(ScoreProgram, GradientProgramMultipliesTheIncomingGradient) {
  ScoreValues<double> values = {0.4};
  values[kScoreGradient] = 7.0;
  EXPECT_EQ(run_score_program(gradient_of({{.op = {.mode = Mode::mul}, .args = {0, 0}}}), values),
            7.0 * 0.8);
}

TEST(ScoreProgram, TheLongestProgramStaysInsideTheBoundOfItsDerivative) {
  ScoreProgram program;
  for (std::size_t n = 0; n < kMaxScoreSteps; ++n) {
    const std::int64_t last = n == 0 ? 0 : kFirstScoreStep + static_cast<std::int64_t>(n) - 1;
    program.push_back(
        {.op = {.mode = Mode::pow, .alpha1 = 2.0, .alpha2 = 0.5}, .args = {last, last}});
  }
  EXPECT_LE(gradient_of(program).size(), kMaxDerivedSteps);
}

TEST(ScoreProgram, FirstOperandWinsTies) {
  const ScoreProgram larger = {{.op = {.mode = Mode::max}, .args = {0, 5}}};
  EXPECT_EQ(run(differentiate(larger), 0.5, 0.5), 1.0);
  const ScoreProgram absolute = {{.op = {.mode = Mode::abs}, .args = {0}}};
  EXPECT_EQ(run(differentiate(absolute), 0.0, 0.0), 0.0);
}

}  // namespace
}  // namespace ashlar::reference

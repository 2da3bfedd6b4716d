// The elementary functions of pointwise rows against long double, on every SIMD target.
#include <gtest/gtest.h>

#include <hwy/targets.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "cpu/kernels/pointwise.hpp"

namespace ashlar::cpu {
namespace {

using Exact = long double;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kSmallestNormal = std::numeric_limits<float>::min();

// Runs `body` once per target this machine can run, with the dispatcher set to it.
void on_every_target(const std::function<void(const char* target)>& body) {
  const std::int64_t all = hwy::SupportedTargets();
  for (std::int64_t rest = all; rest != 0; rest &= rest - 1) {
    const std::int64_t target = rest & -rest;
    hwy::GetChosenTarget().Update(target);
    body(hwy::TargetName(target));
  }
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

// Floats of all magnitudes in [low, high], evenly spaced in their bits, and the ends.
std::vector<float> dense_floats(float low, float high) {
  std::vector<float> result = {low, high};
  constexpr std::uint32_t kStep = 15013;
  for (std::uint64_t bits = 0; bits <= 0xffffffffu; bits += kStep) {
    const auto x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (x >= low && x <= high) result.push_back(x);
  }
  return result;
}

// One ULP of a float near `value`, for normal values.
Exact unit_in_last_place(Exact value) {
  int exponent = 0;
  std::frexp(std::fabs(value), &exponent);
  return std::ldexp(Exact{1}, std::max(exponent, -125) - 24);
}

Exact sigmoid(Exact x) { return 1 / (1 + std::exp(-x)); }
Exact normal(Exact x) { return std::erfc(-x * 0.70710678118654752440084L) / 2; }
Exact density(Exact x) { return 0.39894228040143267794L * std::exp(-x * x / 2); }
Exact gelu_argument(Exact x) { return 1.59576912160573071176L * (x + 0.044715L * x * x * x); }
Exact gelu_argument_slope(Exact x) { return 1.59576912160573071176L * (1 + 0.134145L * x * x); }

struct Row {
  PointwiseMode mode;
  Exact (*exact)(Exact);
  float low, high;
  double units;           // ULP of the result
  bool of_one = false;    // ULP of 1 instead: where terms cancel
  bool gradient = false;  // the operand is the second one, times 1
};

// The table of docs/numerics.md.
const Row kTable[] = {
    {PointwiseMode::exp, [](Exact x) { return std::exp(x); }, -87.3f, 88.72f, 1.5},
    {PointwiseMode::log, [](Exact x) { return std::log(x); }, 1e-45f, 3.4e38f, 1.0},
    {PointwiseMode::log1p, [](Exact x) { return std::log1p(x); }, -0.99999994f, 3.4e38f, 1.5},
    {PointwiseMode::expm1, [](Exact x) { return std::expm1(x); }, -3.4e38f, 88.72f, 1.5},
    {PointwiseMode::erf, [](Exact x) { return std::erf(x); }, -3.4e38f, 3.4e38f, 4.0},
    {PointwiseMode::tanh_fwd, [](Exact x) { return std::tanh(x); }, -3.4e38f, 3.4e38f, 4.0},
    {PointwiseMode::sigmoid_fwd, sigmoid, -87.0f, 3.4e38f, 4.0},
    {PointwiseMode::swish_fwd, [](Exact x) { return x * sigmoid(x); }, -87.0f, 1e38f, 5.0},
    {PointwiseMode::gelu_fwd, [](Exact x) { return x * normal(x); }, -12.0f, 1e38f, 6.0},
    {PointwiseMode::gelu_approx_tanh_fwd, [](Exact x) { return x * sigmoid(gelu_argument(x)); },
     -2.0f, 1e12f, 10.0},
    {PointwiseMode::elu_fwd, [](Exact x) { return x > 0 ? x : std::expm1(x); }, -3.4e38f, 3.4e38f,
     1.5},
    {PointwiseMode::softplus_fwd,
     [](Exact x) { return std::max<Exact>(x, 0) + std::log1p(std::exp(-std::fabs(x))); }, -87.0f,
     3.4e38f, 4.0},
    {PointwiseMode::tanh_bwd, [](Exact x) { return 4 * sigmoid(2 * x) * sigmoid(-2 * x); }, -43.0f,
     43.0f, 5.0, false, true},
    {PointwiseMode::sigmoid_bwd, [](Exact x) { return sigmoid(x) * sigmoid(-x); }, -87.0f, 87.0f,
     5.0, false, true},
    {PointwiseMode::elu_bwd, [](Exact x) { return x > 0 ? Exact{1} : std::exp(x); }, -87.0f,
     3.4e38f, 1.5, false, true},
    {PointwiseMode::softplus_bwd, sigmoid, -87.0f, 3.4e38f, 4.0, false, true},
    {PointwiseMode::gelu_bwd, [](Exact x) { return normal(x) + x * density(x); }, -3.4e38f, 3.4e38f,
     3.0, true, true},
    {PointwiseMode::swish_bwd, [](Exact x) { return sigmoid(x) + x * sigmoid(x) * sigmoid(-x); },
     -1e30f, 1e30f, 3.0, true, true},
    {PointwiseMode::gelu_approx_tanh_bwd,
     [](Exact x) {
       const Exact u = gelu_argument(x), bend = x * sigmoid(u) * sigmoid(-u);
       return sigmoid(u) + (bend == 0 ? 0 : bend * gelu_argument_slope(x));
     },
     -3.4e38f, 3.4e38f, 3.0, true, true},
};

std::vector<float> evaluate(const Row& row, const std::vector<float>& x) {
  Pointwise op;
  op.mode = row.mode;
  std::vector<float> y(x.size()), ones(x.size(), 1.0f);
  const auto count = static_cast<std::int64_t>(x.size());
  const PointwiseRow<float> run = pointwise_row<float>(row.mode, f32);
  if (row.gradient)
    run(op, ones.data(), x.data(), nullptr, count, y.data());
  else
    run(op, x.data(), nullptr, nullptr, count, y.data());
  return y;
}

TEST(FloatMath, StaysWithinItsUnitsOnEveryTarget) {
  for (const Row& row : kTable) {
    const std::vector<float> x = dense_floats(row.low, row.high);
    std::vector<Exact> exact;
    for (const float value : x) exact.push_back(row.exact(value));
    on_every_target([&](const char* target) {
      const std::vector<float> y = evaluate(row, x);
      Exact worst = 0;
      std::size_t at = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const Exact unit = row.of_one ? std::ldexp(Exact{1}, -23) : unit_in_last_place(exact[i]);
        // A subnormal result may have lost digits.
        const Exact slack = std::fabs(exact[i]) < kSmallestNormal ? Exact{kSmallestNormal} : 0;
        const Exact error = (std::fabs(y[i] - exact[i]) - slack) / unit;
        if (!(error <= worst)) worst = error, at = i;
      }
      EXPECT_LE(worst, row.units) << "mode " << static_cast<int>(row.mode) << " on " << target
                                  << " at " << x[at];
    });
  }
}

TEST(FloatMath, EdgesOnEveryTarget) {
  struct Edge {
    PointwiseMode mode;
    float x, y;
  };
  using enum PointwiseMode;
  const Edge edges[] = {{exp, kInfinity, kInfinity},
                        {exp, -kInfinity, 0},
                        {exp, 89, kInfinity},
                        {exp, -110, 0},
                        {exp, 0, 1},
                        {log, 0, -kInfinity},
                        {log, -0.0f, -kInfinity},
                        {log, -1, kNan},
                        {log, kInfinity, kInfinity},
                        {log, 1, 0},
                        {log, -kInfinity, kNan},
                        {erf, kInfinity, 1},
                        {erf, -kInfinity, -1},
                        {erf, 0, 0},
                        {tanh_fwd, kInfinity, 1},
                        {tanh_fwd, -kInfinity, -1},
                        {tanh_fwd, 0, 0},
                        {sigmoid_fwd, kInfinity, 1},
                        {sigmoid_fwd, -kInfinity, 0},
                        {sigmoid_fwd, 0, 0.5f},
                        {elu_fwd, -kInfinity, -1},
                        {elu_fwd, kInfinity, kInfinity},
                        {softplus_fwd, kInfinity, kInfinity},
                        {softplus_fwd, -kInfinity, 0},
                        {gelu_fwd, kInfinity, kInfinity},
                        {gelu_fwd, -1e30f, 0},
                        {gelu_fwd, 0, 0},
                        {gelu_approx_tanh_fwd, kInfinity, kInfinity},
                        {gelu_approx_tanh_fwd, -1e30f, 0},
                        {swish_fwd, kInfinity, kInfinity},
                        {swish_fwd, -1e30f, 0}};
  on_every_target([&](const char* target) {
    for (const Edge& edge : edges) {
      const Row row{edge.mode, nullptr, 0, 0, 0};
      const float y = evaluate(row, {edge.x})[0];
      // The smallest subnormals may flush to 0.
      EXPECT_TRUE(std::isnan(edge.y) ? std::isnan(y)
                                     : y == edge.y || std::fabs(y - edge.y) < kSmallestNormal)
          << target << " mode " << static_cast<int>(edge.mode) << " of " << edge.x << " is " << y
          << ", expected " << edge.y;
    }
    for (const Row& row : kTable)
      EXPECT_TRUE(std::isnan(evaluate(row, {kNan})[0]))
          << target << " mode " << static_cast<int>(row.mode);
  });
}

// Subnormals cost a hundred cycles each, so they flush to 0.
TEST(FloatMath, NoSubnormalResultsOnEveryTarget) {
  using enum PointwiseMode;
  std::vector<float> x;
  for (float value = -200.0f; value <= 200.0f; value += 1.0f / 64) x.push_back(value);
  on_every_target([&](const char* target) {
    for (const PointwiseMode mode :
         {erf, tanh_fwd, sigmoid_fwd, swish_fwd, gelu_fwd, gelu_approx_tanh_fwd}) {
      const std::vector<float> y = evaluate({mode, nullptr, 0, 0, 0}, x);
      for (std::size_t i = 0; i < x.size(); ++i)
        EXPECT_NE(std::fpclassify(y[i]), FP_SUBNORMAL)
            << target << " mode " << static_cast<int>(mode) << " of " << x[i];
    }
  });
}

}  // namespace
}  // namespace ashlar::cpu

// Winograd's matrices and the error growth that their interpolation points minimise.
#include "base/winograd.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace ashlar {
namespace {

template <int kOutputs, int kTaps>
void expect_filters() {
  constexpr auto matrices = winograd_matrices<kOutputs, kTaps>();
  constexpr int kPoints = kOutputs + kTaps - 1;
  std::mt19937 random(5);
  std::uniform_real_distribution<double> uniform(-1, 1);
  double x[kPoints], w[kTaps], products[kPoints];
  for (double& value : x) value = uniform(random);
  for (double& value : w) value = uniform(random);
  for (int p = 0; p < kPoints; ++p) {
    double u = 0, v = 0;
    for (int i = 0; i < kTaps; ++i) u += matrices.filter[p][i] * w[i];
    for (int i = 0; i < kPoints; ++i) v += matrices.input[p][i] * x[i];
    products[p] = u * v;
  }
  for (int o = 0; o < kOutputs; ++o) {
    double result = 0, expected = 0;
    for (int p = 0; p < kPoints; ++p) result += matrices.output[o][p] * products[p];
    for (int i = 0; i < kTaps; ++i) expected += x[o + i] * w[i];
    EXPECT_NEAR(result, expected, 1e-13) << "F(" << kOutputs << ", " << kTaps << "), output " << o;
  }
}

TEST(Winograd, MatricesFilter) {
  expect_filters<2, 3>();
  expect_filters<4, 3>();
  expect_filters<3, 2>();
  expect_filters<3, 4>();
}

// The worst output's magnitude over the sum of |terms|, for x and w of size 1, in two dimensions;
// in the 1-norm (errors that all add up) or the 2-norm (errors of either sign).
template <int kOutputs>
double growth(const WinogradMatrices<kOutputs, 3>& m, int norm) {
  constexpr int kPoints = kOutputs + 2;
  const auto power = [&](double x) { return norm == 1 ? std::fabs(x) : x * x; };
  double worst = 0;
  for (int o = 0; o < kOutputs; ++o) {
    double sum = 0;
    for (int p = 0; p < kPoints; ++p) {
      double u = 0, v = 0;
      for (int i = 0; i < 3; ++i) u += power(m.filter[p][i]);
      for (int i = 0; i < kPoints; ++i) v += power(m.input[p][i]);
      sum += power(m.output[o][p]) * u * v;
    }
    worst = std::max(worst, sum / 3);
  }
  return norm == 1 ? worst * worst : worst;
}

double growth(double a, double b, int norm) {
  return growth(winograd_from_points<4, 3>(std::array{a, b}), norm);
}

TEST(Winograd, PointsHaveLittleGrowth) {
  const double chosen = growth(kWinogradPoints6[0], kWinogradPoints6[1], 1);
  const double chosen_square = growth(kWinogradPoints6[0], kWinogradPoints6[1], 2);
  for (int i = 1; i < 64; ++i)
    for (int j = i + 1; j <= 64; ++j) {
      const double a = i / 16.0, b = j / 16.0;
      EXPECT_GE(1.05 * growth(a, b, 1), chosen) << a << " and " << b;
      if (growth(a, b, 1) > chosen) continue;
      EXPECT_GE(growth(a, b, 2), chosen_square) << a << " and " << b;
    }
  EXPECT_NEAR(chosen, 55, 0.5) << "docs/numerics.md has this figure";
  EXPECT_NEAR(growth(winograd_matrices<2, 3>(), 1), 7.1, 0.05) << "and this";
  EXPECT_NEAR(growth(1, 2, 1), 256, 0.5) << "and this";
}

}  // namespace
}  // namespace ashlar

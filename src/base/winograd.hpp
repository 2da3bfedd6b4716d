// Winograd's minimal filtering F(m, r): m outputs of an r-tap filter from n = m + r - 1 inputs with
// n multiplications per axis instead of m r. In one dimension, with (*) element-wise,
//   y = A^T [ (G w) (*) (B^T x) ]
// and in two dimensions with every matrix applied along both axes.
//
// The matrices follow from n - 1 interpolation points p and infinity: A^T holds powers of the
// points, G powers divided by the product of distances to the other points, B^T the coefficients of
// the polynomials that vanish at all other points. Rounding errors grow with the norms of the rows,
// so the choice of points matters. For n = 6, of all multiples of 1/16 whose growth in the 1-norm
// is within 5 % of the minimum, the points below have the smallest growth in the 2-norm
// (tests/reference/winograd_test.cpp).
#pragma once

#include <array>
#include <cstddef>

namespace ashlar {

template <int kOutputs, int kTaps>
struct WinogradMatrices {
  static constexpr int kPoints = kOutputs + kTaps - 1;
  double output[kOutputs][kPoints] = {};  // A^T
  double filter[kPoints][kTaps] = {};     // G
  double input[kPoints][kPoints] = {};    // B^T
};

// 0, +-a, +-b, ... and infinity.
inline constexpr std::array<double, 1> kWinogradPoints4 = {1.0};
inline constexpr std::array<double, 2> kWinogradPoints6 = {0.625, 1.625};

template <int kOutputs, int kTaps, std::size_t kPairs>
constexpr WinogradMatrices<kOutputs, kTaps> winograd_from_points(
    const std::array<double, kPairs>& pairs) {
  WinogradMatrices<kOutputs, kTaps> result;
  constexpr int kPoints = kOutputs + kTaps - 1;
  constexpr int kFinite = kPoints - 1;
  static_assert(kFinite == 2 * kPairs + 1);
  double points[kFinite] = {};
  for (std::size_t i = 0; i < kPairs; ++i) {
    points[2 * i + 1] = pairs[i];
    points[2 * i + 2] = -pairs[i];
  }
  for (int j = 0; j < kPoints; ++j) {
    const bool infinite = j == kFinite;
    // The polynomial with the other finite points as roots; `distances` is its value at this point.
    double distances = 1.0;
    int degree = 0;
    result.input[j][0] = 1.0;
    for (int k = 0; k < kFinite; ++k) {
      if (k == j) continue;
      if (!infinite) distances *= points[j] - points[k];
      for (int c = ++degree; c > 0; --c)
        result.input[j][c] = result.input[j][c - 1] - points[k] * result.input[j][c];
      result.input[j][0] *= -points[k];
    }
    double power = 1.0;
    for (int i = 0; i < kOutputs; ++i, power *= infinite ? 1.0 : points[j])
      result.output[i][j] = infinite ? (i == kOutputs - 1 ? 1.0 : 0.0) : power;
    power = 1.0;
    for (int i = 0; i < kTaps; ++i, power *= infinite ? 1.0 : points[j])
      result.filter[j][i] = infinite ? (i == kTaps - 1 ? 1.0 : 0.0) : power / distances;
  }
  return result;
}

// F(2, 3) and F(4, 3) for forward and backward-data; F(3, 2) and F(3, 4) for backward-filter, where
// dy is the filter and dw the output.
template <int kOutputs, int kTaps>
constexpr WinogradMatrices<kOutputs, kTaps> winograd_matrices() {
  static_assert(kOutputs + kTaps == 5 || kOutputs + kTaps == 7);
  if constexpr (kOutputs + kTaps == 5)
    return winograd_from_points<kOutputs, kTaps>(kWinogradPoints4);
  else
    return winograd_from_points<kOutputs, kTaps>(kWinogradPoints6);
}

}  // namespace ashlar

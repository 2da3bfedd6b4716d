// Error bound of a Winograd convolution relative to the direct sum.
//
// Every rounding in A^T [(G w G^T) (*) (B^T x B)] A, summed over channels, has a relative error u
// of an intermediate that is bounded by the same formula with absolute values:
//   magnitude = |A^T| [ sum over channels of (|G| |w| |G^T|) (*) (|B^T| |x| |B|) ] |A|
// Unlike the sum of |terms| it includes all pixels of the tile. Every value is rounded at most 4
// times per axis and transform, once in the multiplication, and as often as the sum over channels
// rounds.
#pragma once

#include <array>
#include <vector>

#include "base/winograd.hpp"
#include "reference/accumulator.hpp"

namespace ashlar::reference {

inline constexpr double kWinogradTransformUnits = 2 * 3 * 4 + 1;

// Extents of a 2-D Winograd convolution of x (or dy) with w: `results` output channels, each a sum
// over `channels` input channels. Tap (0, 0) of result pixel (i, j) reads source pixel
// (i + shift[0], j + shift[1]).
struct WinogradProblem {
  std::int64_t images, groups, channels, results;  // the last two per group
  std::array<std::int64_t, 2> source, result, shift;
};

// m * n of |matrix| applied along both axes: to = |matrix| from |matrix^T|.
template <int kRows, int kColumns>
void apply_absolute(const double (&matrix)[kRows][kColumns],
                    const std::array<std::array<double, kColumns>, kColumns>& from,
                    std::array<std::array<double, kRows>, kRows>& to) {
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < kRows; ++j) {
      double sum = 0.0;
      for (std::size_t a = 0; a < kColumns; ++a)
        for (std::size_t b = 0; b < kColumns; ++b)
          if (matrix[i][a] != 0.0 && matrix[j][b] != 0.0)
            sum += std::fabs(matrix[i][a] * matrix[j][b]) * from[a][b];
      to[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] = sum;
    }
}

// The source patch of the tile at `corner` in one channel; zeros outside.
template <int kPoints, class Source>
std::array<std::array<double, kPoints>, kPoints> winograd_patch(
    const WinogradProblem& sums, const Source& source, std::int64_t image, std::int64_t channel,
    const std::array<std::int64_t, 2>& corner) {
  std::array<std::array<double, kPoints>, kPoints> patch{};
  for (std::size_t i = 0; i < kPoints; ++i)
    for (std::size_t j = 0; j < kPoints; ++j) {
      const std::int64_t row = corner[0] + sums.shift[0] + static_cast<std::int64_t>(i);
      const std::int64_t column = corner[1] + sums.shift[1] + static_cast<std::int64_t>(j);
      if (row >= 0 && column >= 0 && row < sums.source[0] && column < sums.source[1])
        patch[i][j] = source(image, channel, row, column);
    }
  return patch;
}

// Takes the element-wise maximum of `growth` [image, channel, row, column] and the magnitude with
// tiles of kOutputs pixels. source(image, channel, row, column) and
// weight(group, result, channel, tap row, tap column) return absolute values; source is called
// within its extents only.
template <int kOutputs, class Source, class Weight>
void max_winograd_magnitude(const WinogradProblem& sums, const Source& source, const Weight& weight,
                            std::vector<double>& growth) {
  constexpr int kPoints = kOutputs + 2;
  constexpr WinogradMatrices<kOutputs, 3> kMatrices = winograd_matrices<kOutputs, 3>();
  using Points = std::array<std::array<double, kPoints>, kPoints>;
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  for (std::int64_t group = 0; group < sums.groups; ++group) {
    std::vector<Points> u(at(sums.results * sums.channels)), v(at(sums.channels));
    for (std::int64_t k = 0; k < sums.results; ++k)
      for (std::int64_t c = 0; c < sums.channels; ++c) {
        std::array<std::array<double, 3>, 3> taps;
        for (std::size_t i = 0; i < 3; ++i)
          for (std::size_t j = 0; j < 3; ++j)
            taps[i][j] =
                weight(group, k, c, static_cast<std::int64_t>(i), static_cast<std::int64_t>(j));
        apply_absolute<kPoints, 3>(kMatrices.filter, taps, u[at(k * sums.channels + c)]);
      }
    for (std::int64_t image = 0; image < sums.images; ++image)
      for (std::int64_t top = 0; top < sums.result[0]; top += kOutputs)
        for (std::int64_t left = 0; left < sums.result[1]; left += kOutputs) {
          for (std::int64_t c = 0; c < sums.channels; ++c) {
            const Points patch = winograd_patch<kPoints>(sums, source, image,
                                                         group * sums.channels + c, {top, left});
            apply_absolute<kPoints, kPoints>(kMatrices.input, patch, v[at(c)]);
          }
          for (std::int64_t k = 0; k < sums.results; ++k) {
            Points m{};
            for (std::int64_t c = 0; c < sums.channels; ++c)
              for (std::size_t i = 0; i < kPoints; ++i)
                for (std::size_t j = 0; j < kPoints; ++j)
                  m[i][j] += u[at(k * sums.channels + c)][i][j] * v[at(c)][i][j];
            std::array<std::array<double, kOutputs>, kOutputs> tile;
            apply_absolute<kOutputs, kPoints>(kMatrices.output, m, tile);
            for (std::int64_t i = 0; i < kOutputs && top + i < sums.result[0]; ++i)
              for (std::int64_t j = 0; j < kOutputs && left + j < sums.result[1]; ++j) {
                const std::int64_t channel = group * sums.results + k;
                const std::int64_t index =
                    ((image * sums.groups * sums.results + channel) * sums.result[0] + top + i) *
                        sums.result[1] +
                    left + j;
                // Written so that NaN replaces a value.
                double& place = growth[at(index)];
                if (!(tile[at(i)][at(j)] <= place)) place = tile[at(i)][at(j)];
              }
          }
        }
  }
}

// Backward-filter: tiles of kTile x kTile pixels of dy are the filter, dw is the output.
// x(image, channel, row, column) and dy(image, filter, row, column) return absolute values and are
// called within their extents only: those of x are sums.source, those of dy sums.result.
// sums.channels channels and sums.results filters per group. `growth` is [filter, channel, 3, 3]
// indexed by tap, not by storage order.
template <int kTile, class X, class Dy>
void max_winograd_filter_magnitude(const WinogradProblem& sums, const X& x, const Dy& dy,
                                   std::vector<double>& growth) {
  constexpr int kPoints = kTile + 2;
  constexpr WinogradMatrices<3, kTile> kMatrices = winograd_matrices<3, kTile>();
  using Points = std::array<std::array<double, kPoints>, kPoints>;
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  for (std::int64_t group = 0; group < sums.groups; ++group) {
    std::vector<Points> m(at(sums.results * sums.channels)), v(at(sums.channels)),
        d(at(sums.results));
    for (std::int64_t image = 0; image < sums.images; ++image)
      for (std::int64_t top = 0; top < sums.result[0]; top += kTile)
        for (std::int64_t left = 0; left < sums.result[1]; left += kTile) {
          for (std::int64_t c = 0; c < sums.channels; ++c) {
            const Points patch =
                winograd_patch<kPoints>(sums, x, image, group * sums.channels + c, {top, left});
            apply_absolute<kPoints, kPoints>(kMatrices.input, patch, v[at(c)]);
          }
          for (std::int64_t k = 0; k < sums.results; ++k) {
            std::array<std::array<double, kTile>, kTile> tile{};
            for (std::int64_t i = 0; i < kTile && top + i < sums.result[0]; ++i)
              for (std::int64_t j = 0; j < kTile && left + j < sums.result[1]; ++j)
                tile[at(i)][at(j)] = dy(image, group * sums.results + k, top + i, left + j);
            apply_absolute<kPoints, kTile>(kMatrices.filter, tile, d[at(k)]);
          }
          for (std::int64_t k = 0; k < sums.results; ++k)
            for (std::int64_t c = 0; c < sums.channels; ++c)
              for (std::size_t i = 0; i < kPoints; ++i)
                for (std::size_t j = 0; j < kPoints; ++j)
                  m[at(k * sums.channels + c)][i][j] += d[at(k)][i][j] * v[at(c)][i][j];
        }
    for (std::int64_t pair = 0; pair < sums.results * sums.channels; ++pair) {
      std::array<std::array<double, 3>, 3> taps;
      apply_absolute<3, kPoints>(kMatrices.output, m[at(pair)], taps);
      for (std::size_t tap = 0; tap < 9; ++tap) {
        double& place = growth[at((group * sums.results * sums.channels + pair) * 9) + tap];
        if (!(taps[tap / 3][tap % 3] <= place)) place = taps[tap / 3][tap % 3];
      }
    }
  }
}

}  // namespace ashlar::reference

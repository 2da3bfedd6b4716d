// Winograd input, filter and output transforms (base/winograd.hpp), one tile at a time, vectors
// along channels.
#pragma once

#include <cstdint>
#include <limits>

namespace ashlar::cpu {

// Post-ops of the output transform, per channel c:
//   clamp(acc * factor[c] + offset[c] + residual, low, high), propagating NaN.
struct WinogradPostOps {
  const float* factor = nullptr;
  const float* offset = nullptr;
  const float* residual = nullptr;  // at the tile's first pixel; null: none
  std::int64_t residual_row = 0, residual_pixel = 0;
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();
};

// The valid part of an output tile, channels contiguous.
struct WinogradTile {
  float* first = nullptr;
  std::int64_t row = 0, pixel = 0;            // strides in elements
  std::int64_t rows = 0, columns = 0;         // valid extent
  const WinogradPostOps* post_ops = nullptr;  // null: none
};

// F(m, r) along both axes; n = m + r - 1. Transform point (i, j) of the n x n has index i * n + j.
// Channel counts are multiples of `lanes`.
struct WinogradKernel {
  std::int64_t lanes;
  // Input transform: v[point] = B^T x B of n x n pixels.
  void (*input)(const float* x, std::int64_t row, std::int64_t pixel, std::int64_t channels,
                float* v, std::int64_t point);
  // Filter transform: u[point] = G w G^T of r x r taps.
  void (*filter)(const float* w, std::int64_t row, std::int64_t tap, std::int64_t channels,
                 float* u, std::int64_t point);
  // Output transform: y = A^T m A, m x m pixels.
  void (*output)(const float* m, std::int64_t point, std::int64_t channels,
                 const WinogradTile& tile);
  // Post-ops of a row of pixels of one channel: y = clamp(acc * factor[0] + offset[0] +
  // residual[i], ...).
  void (*post_ops_row)(const float* sums, std::int64_t count, const WinogradPostOps& post_ops,
                       float* y);
};

// F(2, 3), F(4, 3), F(3, 2) or F(3, 4).
const WinogradKernel& winograd_kernel(int outputs, int taps);

}  // namespace ashlar::cpu

// The transforms of Winograd convolution (base/winograd.hpp), one tile at a time, vectors along
// channels.
#pragma once

#include <cstdint>
#include <limits>

namespace ashlar::cpu {

// What finished sums become on their way to memory, by channel c:
//   clamp(sum * factor[c] + offset[c] + residual, low, high), where NaN stays NaN.
struct WinogradPostOps {
  const float* factor = nullptr;
  const float* offset = nullptr;
  const float* residual = nullptr;  // of the tile's first pixel; null: none
  std::int64_t residual_row = 0, residual_pixel = 0;
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();
};

// The part of a tile that lies inside the result, its channels together.
struct WinogradTile {
  float* first = nullptr;
  std::int64_t row = 0, pixel = 0;            // elements from one to the next
  std::int64_t rows = 0, columns = 0;         // to write
  const WinogradPostOps* post_ops = nullptr;  // null: sums are stored as they are
};

// F(m, r) along both axes; n = m + r - 1. Point (i, j) of the n * n is number i * n + j. Counts of
// channels are multiples of `lanes`.
struct WinogradKernel {
  std::int64_t lanes;
  // v[point] = B^T x B of n x n pixels.
  void (*input)(const float* x, std::int64_t row, std::int64_t pixel, std::int64_t channels,
                float* v, std::int64_t point);
  // u[point] = G w G^T of r x r taps.
  void (*filter)(const float* w, std::int64_t row, std::int64_t tap, std::int64_t channels,
                 float* u, std::int64_t point);
  // y = A^T m A: m x m pixels.
  void (*output)(const float* m, std::int64_t point, std::int64_t channels,
                 const WinogradTile& tile);
  // A row of pixels of one channel: y = clamp(sum * factor[0] + offset[0] + residual[i], ...).
  void (*post_ops_row)(const float* sums, std::int64_t count, const WinogradPostOps& post_ops,
                       float* y);
};

// F(2, 3), F(4, 3), F(3, 2) or F(3, 4).
const WinogradKernel& winograd_kernel(int outputs, int taps);

}  // namespace ashlar::cpu

// Shapes of Winograd F(m x m, 3 x 3) convolution: an m x m output tile reads n x n source pixels, n
// = m + 2, and costs n * n multiplications per channel pair.
#pragma once

#include <algorithm>

#include "cpu/conv/conv_geometry.hpp"
#include "cpu/gemm/gemm.hpp"

namespace ashlar::cpu {

// Forward or backward-data: the source is x or dy, the result y or dx. Tile (0, 0) starts at the
// result's first pixel, whose first tap reads the source at `shift`.
struct WinogradShape {
  std::int64_t outputs = 4;  // m
  std::int64_t images = 0, groups = 1;
  std::int64_t k = 0, results = 0;  // reduced channels and result channels, per group
  std::int64_t source[2] = {}, result[2] = {}, shift[2] = {}, tiles[2] = {};  // rows, columns
  bool reversed = false;  // taps are reversed in memory

  WinogradShape(const ConvGeometry& geometry, bool forward, std::int64_t tile_outputs)
      : outputs(tile_outputs), images(geometry.images), groups(geometry.groups) {
    k = forward ? geometry.channels : geometry.filters;
    results = forward ? geometry.filters : geometry.channels;
    reversed = forward == geometry.flip;
    for (std::size_t i = 0; i < 2; ++i) {
      const std::size_t axis = i + 1;
      source[i] = forward ? geometry.x[axis] : geometry.y[axis];
      result[i] = forward ? geometry.y[axis] : geometry.x[axis];
      shift[i] = forward ? -geometry.padding[axis] : geometry.padding[axis] - 2;
      tiles[i] = divide_up(result[i], outputs);
    }
  }
  std::int64_t patch() const { return outputs + 2; }  // n
  std::int64_t points() const { return patch() * patch(); }
  std::int64_t tile_count() const { return images * tiles[0] * tiles[1]; }
};

// Patches of a tensor: the patch of tile (i, j) starts at (i, j) * step + shift and may include
// padding.
struct PatchGrid {
  std::int64_t channels = 0;  // per group
  std::int64_t patch = 0, step = 0;
  std::int64_t extent[2] = {}, shift[2] = {};  // rows, columns
};

inline PatchGrid source_grid(const WinogradShape& shape) {
  return {shape.k,
          shape.patch(),
          shape.outputs,
          {shape.source[0], shape.source[1]},
          {shape.shift[0], shape.shift[1]}};
}

// Adjacent tiles in one row of tiles.
struct TileRun {
  std::int64_t image, row, column;  // of the first tile; row and column in tiles
  std::int64_t count;
};
inline constexpr std::int64_t kLongestRun = 16;

// Calls visit(run, done) over tiles [first, first + count), numbered image by image, row by row;
// `done` counts the tiles before the run.
template <class Visit>
void for_tile_runs(const std::int64_t (&tiles)[2], std::int64_t first, std::int64_t count,
                   Visit&& visit) {
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t number = first + done, column = number % tiles[1];
    const std::int64_t row = number / tiles[1];
    const TileRun run{row / tiles[0], row % tiles[0], column,
                      std::min({count - done, tiles[1] - column, kLongestRun})};
    visit(run, done);
    done += run.count;
  }
}

// Channels of the staging buffers: few if they are transposed from NCHW, more if every row is a
// call.
inline constexpr std::int64_t kPixelChunk = 16, kChannelChunk = 64;

inline std::int64_t stage_floats(std::int64_t rows, std::int64_t step, std::int64_t chunk) {
  const std::int64_t width = step * kLongestRun + 16;
  return rows * width * chunk + kPixelChunk * width;
}

}  // namespace ashlar::cpu

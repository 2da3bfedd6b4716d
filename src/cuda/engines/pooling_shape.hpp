// Pooling: problem, layout in memory and the tile of results per thread.
#pragma once

#include <array>
#include <optional>

#include "plan/engine.hpp"

namespace ashlar::cuda {

// 0 x 0: global pooling, see kernels/pooling_global.cuh.
struct PoolingTile {
  std::int64_t h = 1, w = 1;
};

// Windows over [n, d, h, w, c] if `columns` (NHWC), else over [n, c, d, h, w]; unused axes have
// extent 1.
struct PoolingShape {
  using Axes = std::array<std::int64_t, 3>;  // d, h, w
  const ResampleAttributes* op;
  bool forward;
  bool columns;
  PointwiseProgram from, to;  // input (x or dy) and result (y or dx)
  View index;                 // argmax positions, if requested or given
  Axes window, stride, padding, x, y;
  std::int64_t images, channels;
  int vector;  // elements per access: channels (NHWC), or along w of the input (NCHW)

  explicit PoolingShape(const Region& region);
  bool is_maximum() const { return op->mode == ResampleMode::maxpool; }
  // Backward of max pooling without given positions: a first launch finds them.
  bool finds_winners() const { return !forward && is_maximum() && !index.present(); }
  // Global pooling: programs over one axis if the pixels of an image are contiguous (NCHW), else
  // over images, pixels and channels.
  struct Flat {
    PointwiseProgram from, to;
  };
  std::optional<Flat> flat() const;
  std::int64_t pixels() const { return x[0] * x[1] * x[2]; }
  const Axes& results() const { return forward ? y : x; }
  // No window extends outside x.
  bool stays_inside() const;
  // Elements along w under the windows of a tile.
  std::int64_t span(const PoolingTile& tile) const { return (tile.w - 1) * stride[2] + window[2]; }
  // Rows of the input are loaded as vectors: x (kernels/pooling_forward.cuh), or dy and positions
  // of windows (kernels/pooling_backward.cuh).
  bool by_segments(const PoolingTile& tile) const;
  // Backward: all windows that start in a tile's columns exist.
  bool own_windows_exist(const PoolingTile& tile) const;
  // Rows of results are stored as vectors.
  bool vector_stores(const PoolingTile& tile) const;
  // x is 16-bit floats in NHWC, compared as packed pairs (half2).
  bool has_pairs(const Region& region) const;
  std::vector<PoolingTile> tiles(bool keeps_positions) const;
  // Argmax positions in scratch, one per element of y, in NHWC or NCHW.
  View winners(bool channels_last) const;
  DType precision(const Region& region) const;
};

}  // namespace ashlar::cuda

// How a pooling lies in memory, and the tile of results a thread makes.
#pragma once

#include <array>
#include <optional>

#include "plan/engine.hpp"

namespace ashlar::cuda {

// 0 x 0: whole images, see kernels/pooling_global.cuh.
struct PoolingTile {
  std::int64_t h = 1, w = 1;
};

// Windows over [n, d, h, w, c] when `columns`, else over [n, c, d, h, w]: unused axes have
// extent 1.
struct PoolingShape {
  using Axes = std::array<std::int64_t, 3>;  // d, h, w
  const ResampleAttributes* op;
  bool forward;
  bool columns;
  PointwiseProgram from, to;  // what is read (x or dy) and made (y or dx)
  View index;                 // absent: no positions asked for, or none given
  Axes window, stride, padding, x, y;
  std::int64_t images, channels;
  int vector;  // elements per access: channels, or along w of what is read

  explicit PoolingShape(const Region& region);
  bool is_maximum() const { return op->mode == ResampleMode::maxpool; }
  // Maxima whose positions are looked for first.
  bool finds_winners() const { return !forward && is_maximum() && !index.present(); }
  // Where windows are whole images: programs over one axis where the pixels of an image lie
  // together, else over images, pixels and channels (gradients only).
  struct Flat {
    PointwiseProgram from, to;
  };
  std::optional<Flat> flat() const;
  std::int64_t pixels() const { return x[0] * x[1] * x[2]; }
  const Axes& results() const { return forward ? y : x; }
  // No window has an element outside of x.
  bool stays_inside() const;
  // Elements that windows of a tile see along w.
  std::int64_t span(const PoolingTile& tile) const { return (tile.w - 1) * stride[2] + window[2]; }
  // Rows of what is read by vectors: x (kernels/pooling_forward.cuh) or what windows hand back
  // (kernels/pooling_backward.cuh).
  bool by_segments(const PoolingTile& tile) const;
  // Gradients: the windows that begin in a tile's columns are all there.
  bool own_windows_exist(const PoolingTile& tile) const;
  // Rows of results are stored as vectors.
  bool together(const PoolingTile& tile) const;
  // x lies in memory as pairs of floats of 16 bits, to be compared as they are.
  bool has_pairs(const Region& region) const;
  std::vector<PoolingTile> tiles(bool keeps_positions) const;
  // The winners' positions, one per element of y, packed with channels varying fastest or not.
  View winners(bool channels_last) const;
  DType precision(const Region& region) const;
};

}  // namespace ashlar::cuda

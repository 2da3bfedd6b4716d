// Depthwise convolution: problem, thread tiles and launch geometry.
#pragma once

#include <array>

#include "plan/engine.hpp"

namespace ashlar::cuda {

// The tile of a thread: kernels/depthwise.cuh.
struct DepthwiseTile {
  int vector;             // channels
  std::int64_t h, w;      // pixels
  std::int64_t part = 0;  // backward-filter: rows of taps
  bool rolls = false;     // rolls down the rows of the tile instead of holding it in registers
  bool operator==(const DepthwiseTile&) const = default;
};

// Programs over [n, d, h, w, c] if `columns` (NHWC), else [n, c, d, h, w]; unused axes have extent
// 1.
struct DepthwiseShape {
  enum class Kind : std::uint8_t { forward, data, filter };
  using Axes = std::array<std::int64_t, 3>;  // d, h, w
  Kind kind;
  const ConvAttributes* op;
  bool columns;
  // forward: x, y, z. data: dy, dx, z. filter: x and, as `to`, dy.
  PointwiseProgram from, to, z;
  // w or dw and its z, over [c, d, h, w].
  PointwiseProgram weights, weights_z;
  Axes window, stride, dilation, padding;
  Axes from_extent, to_extent;  // of the tensors `from` and `to`
  std::int64_t images, channels;
  DType precision;

  // Requires is_depthwise(region).
  explicit DepthwiseShape(const Region& region);
  bool backward() const { return kind == Kind::data; }
  std::int64_t taps() const { return window[0] * window[1] * window[2]; }
  // The source elements along axis 1 or 2 that a tile of `count` results uses with `count_taps`
  // taps: the first, relative to the tile's origin, and the count.
  struct Span {
    std::int64_t first, count;
  };
  Span span(std::size_t axis, std::int64_t count, std::int64_t count_taps) const;
  // Along H. A rolling tile reads `stride` rows per step.
  Span span_h(const DepthwiseTile& tile) const {
    if (tile.rolls) return {0, stride[1]};
    return span(1, tile.h, kind == Kind::filter ? tile.part : window[1]);
  }
  Span span_w(const DepthwiseTile& tile) const { return span(2, tile.w, window[2]); }
  // Loaded elements are converted to f32.
  bool converts() const;
  // The program is a plain load: registers hold the stored type until the values are used.
  static bool is_plain(const PointwiseProgram& program);
  // Rows of results (or of dy) that a row of the source (or of x) contributes to.
  std::int64_t slots() const { return (window[1] - 1) / stride[1] + 1; }
  // Unrolled steps of a rolling tile.
  std::int64_t unrolled() const { return slots() <= 3 ? slots() : 1; }
  // A rolling tile keeps its weights in registers.
  bool keeps_weights(const DepthwiseTile& tile) const;
  // Source rows in flight while one is multiplied, for a rolling tile.
  std::int64_t ahead(const DepthwiseTile& tile) const;
  // Registers for the values of a tile.
  std::int64_t registers(const DepthwiseTile& tile) const;
  // Tiles that fit, cheapest first.
  std::vector<DepthwiseTile> tiles(const DeviceProps& device) const;
  std::int64_t tile_count(const DepthwiseTile& tile) const;
  // Rows of results are stored as vectors.
  bool vector_stores(const DepthwiseTile& tile) const;
  // Tiles can roll: a window of 1 along D, no dilation along H, and stride 1 for backward-data.
  bool can_roll() const;

 private:
  double instructions(const DepthwiseTile& tile) const;
};

// Launch geometry: CTAs and threads over channels and pixels.
struct DepthwiseGeometry {
  std::int64_t lanes, threads = 0, blocks_at_once = 1;
  std::int64_t channel_blocks, pixel_blocks;

  DepthwiseGeometry(const DepthwiseShape& shape, const DepthwiseTile& tile, std::int64_t waves,
                    const DeviceProps& device);
};

// Whether the region is a depthwise convolution that these kernels support, or the reason why not.
Support is_depthwise(const Region& region);

}  // namespace ashlar::cuda

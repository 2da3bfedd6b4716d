// How a depthwise convolution lies in memory, and how threads share it out.
#pragma once

#include <array>

#include "plan/engine.hpp"

namespace ashlar::cuda {

// What a thread does: kernels/depthwise.cuh.
struct DepthwiseTile {
  int vector;             // channels
  std::int64_t h, w;      // pixels
  std::int64_t part = 0;  // backward-filter: rows of taps
  bool rolls = false;     // down the rows of the tile, instead of holding all of it in registers
  bool operator==(const DepthwiseTile&) const = default;
};

// Over [n, d, h, w, c] when `columns`, else over [n, c, d, h, w]: unused axes have extent 1.
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

  // The anchor is a convolution with a filter per channel.
  explicit DepthwiseShape(const Region& region);
  bool backward() const { return kind == Kind::data; }
  std::int64_t taps() const { return window[0] * window[1] * window[2]; }
  // The source along axis 1 or 2 that a tile of `count` results meets: first (from where the tile
  // begins) and how many. For a filter's part, `count_taps` of its rows.
  struct Span {
    std::int64_t first, count;
  };
  Span span(std::size_t axis, std::int64_t count, std::int64_t count_taps) const;
  // Along H. A tile that is walked meets one row after the other: `stride` of them per step.
  Span span_h(const DepthwiseTile& tile) const {
    if (tile.rolls) return {0, stride[1]};
    return span(1, tile.h, kind == Kind::filter ? tile.part : window[1]);
  }
  Span span_w(const DepthwiseTile& tile) const { return span(2, tile.w, window[2]); }
  // Elements are converted on their way from memory.
  bool converts() const;
  // The source is what a tensor holds, without arithmetic: it is kept as it is until it is used.
  static bool is_plain(const PointwiseProgram& program);
  // Rows of results, or of dy, that a row of the other tensor meets.
  std::int64_t slots() const { return (window[1] - 1) / stride[1] + 1; }
  // Steps of a walk that are unrolled.
  std::int64_t unrolled() const { return slots() <= 3 ? slots() : 1; }
  // A walk has its weights in registers.
  bool keeps_weights(const DepthwiseTile& tile) const;
  // Rows of the source on their way while one is multiplied, in a walk.
  std::int64_t ahead(const DepthwiseTile& tile) const;
  // Registers that hold numbers of a tile.
  std::int64_t registers(const DepthwiseTile& tile) const;
  // Those that fit, the cheapest first.
  std::vector<DepthwiseTile> tiles(const DeviceProps& device) const;
  std::int64_t tile_count(const DepthwiseTile& tile) const;
  // Rows of results are stored as vectors.
  bool together(const DepthwiseTile& tile) const;
  // Tiles may be walked: rows of the source come in order, each meets neighbouring results.
  bool can_roll() const;

 private:
  double instructions(const DepthwiseTile& tile) const;
};

// The launch of a tile for all channels and pixels.
struct DepthwiseGeometry {
  std::int64_t lanes, threads = 0, blocks_at_once = 1;
  std::int64_t channel_blocks, pixel_blocks;

  DepthwiseGeometry(const DepthwiseShape& shape, const DepthwiseTile& tile, std::int64_t waves,
                    const DeviceProps& device);
};

// A reason why the region is no depthwise convolution these kernels take; empty: it is.
Support is_depthwise(const Region& region);

}  // namespace ashlar::cuda

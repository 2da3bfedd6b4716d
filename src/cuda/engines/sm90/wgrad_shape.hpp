// The gradient of a convolution's filter as kernels/sm90/wgrad.cuh wants it, and how it
// is cut into tiles and stages.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "cuda/engines/repacked_operand.hpp"
#include "cuda/launch/tensor_map.hpp"
#include "plan/engine.hpp"

namespace ashlar::cuda {

// Channels of a box, for every type: 128 bytes of 16-bit numbers.
inline constexpr std::int64_t kBoxChannels = 64;

struct WgradShape {
  using Axes = std::array<std::int64_t, 3>;  // d, h, w; absent ones are of extent 1

  RepackedOperand x, dy;                                           // channels last
  std::int64_t images = 1, groups = 1, filters = 1, channels = 1;  // the last two of a group
  // Groups of few channels that are taken as one, whose box they fill: `groups`, `filters` and
  // `channels` are then of these. Products of one's filters with another's channels are left out.
  int side = 1;
  std::int64_t all_filters = 1, all_channels = 1;
  Axes from = {1, 1, 1}, to = {1, 1, 1};  // extents of x and dy
  Axes window = {1, 1, 1}, stride = {1, 1, 1}, dilation = {1, 1, 1}, padding = {0, 0, 0};
  // In elements, of images and spatial axes.
  std::int64_t x_image = 0, dy_image = 0;
  Axes x_strides = {0, 0, 0}, dy_strides = {0, 0, 0};
  bool flips = false;
  PointwiseProgram epilogue;  // over filters, spatial axes of the filter, channels

  std::int64_t taps() const { return window[0] * window[1] * window[2]; }
  bool is_f32() const { return x.view.dtype == f32; }
  int rank() const;  // of the tensor maps
};

// Fills in `shape`, or says why not.
Support describe(const Region& region, WgradShape& shape);

// What a block computes, and what its stages hold: see the kernel's text.
struct WgradTile {
  int dy_boxes = 1, x_boxes = 1;
  int tap_rows = 1, taps_across = 1;
  int row_blocks = 1;
  int rows = 1, width = 1, segments = 1;
  int stages = 2, splits = 1;
  // 0: every tile's stages are cut into `splits` parts, one a block. Else so many blocks share out
  // the stages of all tiles evenly, and a tile has up to `splits` parts.
  int blocks = 0;
  int parts = 1;  // that numbers are split into: 2 in place of tf32, 3 for all bits of f32
  bool transposed = false;  // f32 of one part: tf32, with dy turned in shared memory

  int consumers() const { return (transposed ? x_boxes : dy_boxes / row_blocks) * tap_rows; }
  int products() const { return parts * (parts + 1) / 2; }
  int columns() const { return taps_across * x_boxes * static_cast<int>(kBoxChannels); }
  // Of a thread.
  int sums() const {
    return transposed ? taps_across * dy_boxes * static_cast<int>(kBoxChannels) / 2
                      : row_blocks * columns() / 2;
  }
  bool operator==(const WgradTile&) const = default;
};

std::vector<std::pair<std::string, std::int64_t>> knobs_of(const WgradTile& tile);
WgradTile wgrad_tile_of(const Config& config, const WgradShape& shape);

// What follows from a tile.
struct WgradTiling {
  WgradTiling(const WgradShape& shape, const WgradTile& tile);

  std::int64_t x_width, x_rows;                                      // of a segment
  std::int64_t segment_groups;                                       // of 8 pixels of dy
  std::int64_t x_pitch;                                              // pixels of shared memory
  std::int64_t dy_piece_rows = 0, x_piece_rows = 0, raw_slots = 0;   // where numbers are split
  std::int64_t segments_w, segments_h, segments;                     // of all images
  std::int64_t stage_count;                                          // of a tile, all splits
  std::int64_t tiles_k, tiles_c, tap_blocks_h, tap_blocks_w, tiles;  // tiles: of the whole result
  std::int64_t stage_bytes, shared_bytes;
  std::int64_t loaded_bytes;  // of a stage, from global memory
  std::int64_t copies;        // that bring them
  std::int64_t blocks;        // of the launch

  // Of the same shape and tile.
  TensorMapForm map_x(const WgradShape& shape, const WgradTile& tile) const;
  TensorMapForm map_dy(const WgradShape& shape, const WgradTile& tile) const;
};

// Blocks that share out all tiles read different pixels at the same time, and the L2 cache gives
// each of them less: as if it were so many times the bytes. An estimate for an H200.
inline constexpr double kApartBytes = 1.3;

// Parts that a tile has at most where `blocks` share out the stages of all `tiles`, of which every
// block has one at least.
std::int64_t max_parts(std::int64_t tiles, std::int64_t stages, std::int64_t blocks);

// Share of the matrix units' time that a stage fills, if the L2 cache does not limit.
double wgrad_efficiency(const WgradTile& tile, const WgradTiling& tiling);

// Tiles worth trying, the most promising first.
std::vector<WgradTile> wgrad_tiles(const WgradShape& shape, int parts, bool transposed,
                                   const DeviceProps& device);

}  // namespace ashlar::cuda

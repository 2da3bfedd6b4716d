// Wgrad (backward-filter convolution) as kernels/sm90/wgrad.cuh computes it: problem, tile, and the
// decomposition into tiles and stages.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "cuda/engines/repacked_operand.hpp"
#include "cuda/launch/tensor_map.hpp"
#include "plan/engine.hpp"

namespace ashlar::cuda {

// Channels of a box, for every type: 128 bytes of 16-bit elements.
inline constexpr std::int64_t kBoxChannels = 64;

struct WgradShape {
  using Axes = std::array<std::int64_t, 3>;  // d, h, w; absent ones are of extent 1

  RepackedOperand x, dy;                                           // channels last
  std::int64_t images = 1, groups = 1, filters = 1, channels = 1;  // the last two per group
  // Groups of few channels that are packed into one box: `groups`, `filters` and `channels` then
  // count packs. Products of one group's filters with another's channels are discarded.
  int side = 1;
  std::int64_t all_filters = 1, all_channels = 1;
  Axes from = {1, 1, 1}, to = {1, 1, 1};  // extents of x and dy
  Axes window = {1, 1, 1}, stride = {1, 1, 1}, dilation = {1, 1, 1}, padding = {0, 0, 0};
  // Strides of images and spatial axes, in elements.
  std::int64_t x_image = 0, dy_image = 0;
  Axes x_strides = {0, 0, 0}, dy_strides = {0, 0, 0};
  bool flips = false;
  PointwiseProgram epilogue;  // over filters, spatial axes of the filter, channels

  std::int64_t taps() const { return window[0] * window[1] * window[2]; }
  bool is_f32() const { return x.view.dtype == f32; }
  int rank() const;  // of the TMA maps
};

// Fills in `shape`, or returns the reason of a refusal.
Support describe(const Region& region, WgradShape& shape);

// Tile of a CTA and contents of its stages: see kernels/sm90/wgrad.cuh.
struct WgradTile {
  int dy_boxes = 1, x_boxes = 1;
  int tap_rows = 1, taps_across = 1;
  int row_blocks = 1;
  int rows = 1, width = 1, segments = 1;
  int stages = 2, splits = 1;
  // 0: every tile's K is split `splits` ways, one CTA each. Otherwise stream-K: so many CTAs share
  // the stages of all tiles evenly, and a tile has up to `splits` partials.
  int blocks = 0;
  int parts = 1;            // bf16 terms per f32: 2 in place of tf32, 3 for f32 accuracy
  bool transposed = false;  // f32 of one part: tf32, with dy transposed in shared memory

  int consumers() const { return (transposed ? x_boxes : dy_boxes / row_blocks) * tap_rows; }
  int products() const { return parts * (parts + 1) / 2; }
  int columns() const { return taps_across * x_boxes * static_cast<int>(kBoxChannels); }
  // Accumulators per thread.
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
  std::int64_t segment_groups;                                       // groups of 8 pixels of dy
  std::int64_t x_pitch;                                              // pixels of shared memory
  std::int64_t dy_piece_rows = 0, x_piece_rows = 0, raw_slots = 0;   // where f32 is split into bf16
  std::int64_t segments_w, segments_h, segments;                     // of all images
  std::int64_t stage_count;                                          // of a tile, all splits
  std::int64_t tiles_k, tiles_c, tap_blocks_h, tap_blocks_w, tiles;  // tiles: of the whole result
  std::int64_t stage_bytes, shared_bytes;
  std::int64_t loaded_bytes;  // of a stage, from global memory
  std::int64_t copies;        // TMA loads per stage
  std::int64_t blocks;        // CTAs of the launch

  // Of the same shape and tile.
  TensorMapForm map_x(const WgradShape& shape, const WgradTile& tile) const;
  TensorMapForm map_dy(const WgradShape& shape, const WgradTile& tile) const;
};

// Stream-K CTAs read different pixels at the same time, so L2 serves each of them less bandwidth:
// as if the bytes were multiplied by this factor. An estimate for an H200.
inline constexpr double kApartBytes = 1.3;

// Maximum number of partials of a tile where `blocks` CTAs share the stages of all `tiles`; every
// CTA has at least one stage.
std::int64_t max_parts(std::int64_t tiles, std::int64_t stages, std::int64_t blocks);

// Share of the tensor-core time that a stage fills, if L2 bandwidth does not limit.
double wgrad_efficiency(const WgradTile& tile, const WgradTiling& tiling);

// Candidate tiles, the most promising first.
std::vector<WgradTile> wgrad_tiles(const WgradShape& shape, int parts, bool transposed,
                                   const DeviceProps& device);

}  // namespace ashlar::cuda

// Direct convolution for few channels, from patches in shared memory (kernels/conv_direct.cuh):
// problem, tiles and shared-memory layout.
#pragma once

#include <array>

#include "plan/engine.hpp"

namespace ashlar::cuda {

// The problem, independent of tiles. Axes are h, w; a missing h has extent 1.
struct ConvDirectShape {
  enum class Kind : std::uint8_t { forward, data, filter };
  using Axes = std::array<std::int64_t, 2>;
  Kind kind;
  const ConvAttributes* op;
  DType element = f32;  // of both operands: bf16, f16, f32 (as one or two tf32)
  bool splits = false;  // f32 as a sum of two tf32 (3xTF32), which keeps its precision
  bool channels_last = true;
  // forward: x, y. data: dy, dx. filter: x, dy. Over [n, h, w, c] or [n, c, h, w].
  PointwiseProgram source, result;
  // w or dw over [filter, channel of its group, h, w].
  PointwiseProgram weights;
  std::int64_t images = 0, groups = 0;
  std::int64_t source_channels = 0, result_channels = 0;
  Axes source_extent = {}, result_extent = {};
  Axes taps = {}, stride = {}, dilation = {}, padding = {};

  // As kernels see it: the window of source pixels of each point in the grid of results.
  Axes window = {}, step = {}, reach = {}, first = {}, phases = {1, 1}, grid = {};
  std::int64_t merge = 1;               // groups merged into one
  std::int64_t depth = 0, results = 0;  // source channels and results of a group of the operation

  // The anchor is a convolution over one or two spatial axes.
  explicit ConvDirectShape(const Region& region);
  bool backward() const { return kind == Kind::data; }
  std::int64_t unit() const { return element == f32 ? 4 : 8; }
  std::int64_t element_bytes() const { return element == f32 ? 4 : 2; }
  std::int64_t group_channels() const { return merge * depth; }
  std::int64_t group_results() const { return merge * results; }
  std::int64_t group_count() const { return groups / merge; }
  std::int64_t columns() const { return phases[0] * phases[1] * group_results(); }
  // Approximate number of terms of the result with the fewest, at a corner of the image.
  std::int64_t least_terms() const;
  // The taps of a window row are contiguous in a patch.
  bool runs() const;
  // Results per store: channels (NHWC), or pixels of a row (NCHW).
  std::int64_t stored() const;
  // Elements are copied to patches without conversion.
  bool copies(const PointwiseProgram& program) const;
};

// The tile of a CTA, as the knobs of a configuration name it.
struct ConvDirectTile {
  std::int64_t h = 1, w = 1;    // results
  std::int64_t row_tiles = 1;   // of 16 results, per warp
  std::int64_t warps = 1;       // along the results
  std::int64_t groups = 1;      // per CTA
  std::int64_t own_groups = 1;  // per warp
  std::int64_t tiles = 1;       // of 8 columns, per group
  std::int64_t own_tiles = 1;   // per warp
  bool held = false;            // weights stay in registers
  double clocks = 0;            // summed over all SMs
  bool operator==(const ConvDirectTile&) const = default;
};

// A patch in shared memory.
struct ConvDirectPatch {
  bool spans = false;     // contiguous spans of image rows, unconverted
  std::int64_t span = 1;  // elements per copy of a span
  std::int64_t lead = 0, shift = 0, first_element = 0;
  std::int64_t height, width;  // pixels
  std::int64_t pixel, pitch;   // elements
  std::int64_t channels;       // per pixel, without padding
  std::int64_t tap_channels;   // per group
  std::int64_t vector = 1;     // elements per access, if not spans
  std::int64_t units_of_tap = 1, units_of_row = 1, units;
  bool aligned = true;  // every unit starts at a multiple of 16 bytes
  bool odd = false;     // units of 16-bit elements may start at odd elements

  // For a tile of `rows` x `columns` results and `groups` groups.
  ConvDirectPatch(const ConvDirectShape& shape, std::int64_t rows, std::int64_t columns,
                  std::int64_t groups);
  std::int64_t steps() const { return (units + 1) / 2; }
  std::int64_t elements() const { return (height * pitch + 15) / 16 * 16; }
};

// Candidate tiles, best first.
std::vector<ConvDirectTile> conv_direct_tiles(const ConvDirectShape& shape,
                                              const DeviceProps& device);

// A CTA of the forward and backward-data kernels.
struct ConvDirectBlock {
  ConvDirectPatch patch;
  std::int64_t warps, threads;
  std::int64_t patches;  // buffers: 2 is double buffering
  bool shuffled;         // results are stored straight from MMA registers
  std::int64_t shared_bytes;
  std::int64_t blocks_at_once;  // resident CTAs per SM
  std::int64_t parts;           // CTAs that divide the columns of a group
  std::int64_t across;          // CTAs that read the same tile
  std::int64_t row_pitch;
  std::int64_t weight_words;  // of 4 bytes
  std::int64_t stored;        // results per store
  double clocks;              // estimated, summed over all SMs

  ConvDirectBlock(const ConvDirectShape& shape, const ConvDirectTile& tile);
};

// The tile of a CTA of backward-filter: kernels/conv_direct_filter.cuh.
struct ConvDirectFilterTile {
  std::int64_t h = 1, w = 1;                // results
  std::int64_t groups = 1, own_groups = 1;  // per CTA, per warp
  std::int64_t tiles = 1;                   // of 8 columns
  std::int64_t own_rows = 1;                // tiles of 16 rows, per warp
  std::int64_t warps_m = 1, warps_k = 1;    // along the rows, along the results
  double clocks = 0;
  bool operator==(const ConvDirectFilterTile&) const = default;
};
std::vector<ConvDirectFilterTile> conv_direct_filter_tiles(const ConvDirectShape& shape,
                                                           const DeviceProps& device);
struct ConvDirectFilterBlock {
  ConvDirectPatch patch;
  std::int64_t gradient_pixel, gradient_channels, gradient_vector = 1;
  std::int64_t threads, patches, shared_bytes, blocks_at_once;
  std::int64_t parts, row_parts;  // CTAs that divide the columns and the rows of a group
  std::int64_t across;            // CTAs that read the same tile
  std::int64_t sums;              // accumulators of all weights, with padding
  std::int64_t blocks;            // CTAs along the tiles
  double clocks;

  ConvDirectFilterBlock(const ConvDirectShape& shape, const ConvDirectFilterTile& tile,
                        const DeviceProps& device);
  std::int64_t pieces(const ConvDirectFilterTile& tile) const { return blocks * tile.warps_k; }
};

}  // namespace ashlar::cuda

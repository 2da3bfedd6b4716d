// What follows from a wgrad tile: stages, shared memory, TMA loads.
#include <algorithm>

#include "base/ceil_div.hpp"
#include "cuda/engines/sm90/wgrad_shape.hpp"

namespace ashlar::cuda {

namespace {

using Shape = WgradShape;
using Tile = WgradTile;
using Tiling = WgradTiling;

constexpr std::int64_t kPixelBytes = 128;     // of a box, as wgmma reads it
constexpr std::int64_t kRawPixelBytes = 256;  // f32
constexpr std::int64_t kRawPieceBytes = 16 << 10;
constexpr std::int64_t kRawPipelineBytes = 48 << 10, kMaxRawSlots = 8;
constexpr std::int64_t kTransposedSlots = 2;    // as in the kernel
constexpr std::int64_t kStageAlignment = 1024;  // of a stage

// Rows per slot: as few slots as their size allows, with about equal rows.
std::int64_t piece_rows(std::int64_t rows, std::int64_t width) {
  const std::int64_t most = std::max<std::int64_t>(kRawPieceBytes / (width * kRawPixelBytes), 1);
  return ceil_div(rows, ceil_div(rows, most));
}

TensorMapForm map_of(const Shape& shape, const View& view, std::int64_t channels,
                     const Shape::Axes& extents, const Shape::Axes& strides, std::int64_t image,
                     std::int64_t width, std::int64_t rows, const Shape::Axes& steps,
                     std::int64_t box_channels, int swizzle, bool transposed) {
  TensorMapForm form;
  form.dtype = view.dtype;
  form.rounds_to_tf32 = transposed;
  form.swizzle = swizzle;
  const auto add = [&](std::int64_t extent, std::int64_t stride, std::int64_t count,
                       std::int64_t step) {
    TensorMapAxis axis;
    axis.extent = extent;
    // arbitrary for an extent of 1
    axis.stride = extent == 1 ? elements_per_16_bytes(view.dtype) : stride;
    axis.box = (count - 1) * step + 1;
    axis.step = step;
    form.axes.push_back(axis);
  };
  add(channels, 1, box_channels, 1);
  add(extents[2], strides[2], width, steps[2]);
  if (shape.rank() > 3) add(extents[1], strides[1], rows, steps[1]);
  if (shape.rank() > 4) add(extents[0], strides[0], 1, 1);
  add(shape.images, image, 1, 1);
  return form;
}

}  // namespace

std::vector<std::pair<std::string, std::int64_t>> knobs_of(const Tile& tile) {
  return {{"tile_m", tile.dy_boxes * kBoxChannels},
          {"tile_n", tile.x_boxes * kBoxChannels},
          {"tap_rows", tile.tap_rows},
          {"taps_across", tile.taps_across},
          {"row_blocks", tile.row_blocks},
          {"rows", tile.rows},
          {"width", tile.width},
          {"segments", tile.segments},
          {"stages", tile.stages},
          {"split", tile.splits},
          {"blocks", tile.blocks},
          {"parts", tile.parts}};
}

Tile wgrad_tile_of(const Config& config, const Shape& shape) {
  const auto knob = [&](const char* name) { return static_cast<int>(config.knob(name)); };
  Tile tile;
  tile.dy_boxes = knob("tile_m") / static_cast<int>(kBoxChannels);
  tile.x_boxes = knob("tile_n") / static_cast<int>(kBoxChannels);
  tile.tap_rows = knob("tap_rows");
  tile.taps_across = knob("taps_across");
  tile.row_blocks = knob("row_blocks");
  tile.rows = knob("rows");
  tile.width = knob("width");
  tile.segments = knob("segments");
  tile.stages = knob("stages");
  tile.splits = knob("split");
  tile.blocks = knob("blocks");
  tile.parts = knob("parts");
  tile.transposed = shape.is_f32() && tile.parts == 1;
  return tile;
}

std::int64_t max_parts(std::int64_t tiles, std::int64_t stages, std::int64_t blocks) {
  // CTA b begins at stage all * b / blocks.
  const std::int64_t all = tiles * stages;
  const auto block_of = [&](std::int64_t stage) { return ((stage + 1) * blocks - 1) / all; };
  std::int64_t most = 1;
  for (std::int64_t tile = 0; tile < tiles; ++tile)
    most = std::max(most, block_of((tile + 1) * stages - 1) - block_of(tile * stages) + 1);
  return most;
}

Tiling::WgradTiling(const Shape& shape, const Tile& tile) {
  const std::int64_t reach = (tile.taps_across - 1) * shape.dilation[2];
  const std::int64_t reach_down = (tile.tap_rows - 1) * shape.dilation[1];
  x_width = tile.rows > 1 && !tile.transposed ? tile.width : tile.width + reach;
  // Transposed tiles with several taps read four rows at once: avoids bank conflicts.
  if (tile.transposed && tile.tap_rows * tile.taps_across > 1 && x_width % 4 == 0) ++x_width;
  x_rows = tile.rows + reach_down;
  segment_groups = ceil_div(std::int64_t{tile.rows} * tile.width, 8);
  if (!tile.transposed && tile.segments * segment_groups % 2 != 0) ++segment_groups;
  x_pitch = round_up(tile.transposed ? x_rows * x_width
                                     : std::max(x_rows * x_width,
                                                segment_groups * 8 + reach_down * x_width + reach),
                     8);

  segments_w = ceil_div(shape.to[2], tile.width);
  segments_h = ceil_div(shape.to[1], tile.rows);
  segments = segments_w * segments_h * shape.to[0] * shape.images;
  stage_count = ceil_div(segments, tile.segments);
  tiles_k = ceil_div(shape.filters, tile.dy_boxes * kBoxChannels);
  tiles_c = ceil_div(shape.channels, tile.x_boxes * kBoxChannels);
  tap_blocks_h = ceil_div(shape.window[1], tile.tap_rows);
  tap_blocks_w = ceil_div(shape.window[2], tile.taps_across);
  tiles = shape.groups * tiles_k * tiles_c * shape.window[0] * tap_blocks_h * tap_blocks_w;
  blocks = tile.blocks > 0 ? tile.blocks : tiles * tile.splits;

  const std::int64_t pixel_bytes = shape.is_f32() ? kRawPixelBytes : kPixelBytes;
  const std::int64_t dy_pixels = std::int64_t{tile.rows} * tile.width;
  loaded_bytes =
      tile.segments * (tile.dy_boxes * dy_pixels + tile.x_boxes * x_rows * x_width) * pixel_bytes;
  std::int64_t dy_rows = tile.rows, rows_of_x = x_rows;
  std::int64_t x_copies = tile.x_boxes, barriers = tile.stages, other_bytes = 0;
  if (tile.transposed) {
    stage_bytes = (tile.dy_boxes * dy_pixels + tile.x_boxes * x_pitch) * kRawPixelBytes;
    // A step of 8 pixels has 32 bytes of every filter; four steps are contiguous.
    other_bytes =
        kTransposedSlots * ceil_div(segment_groups, 4) * tile.dy_boxes * kBoxChannels * 128;
    barriers += kTransposedSlots;
    x_copies *= 2;  // boxes of 128 bytes
  } else {
    stage_bytes = tile.segments * (tile.dy_boxes * segment_groups * 8 + tile.x_boxes * x_pitch) *
                  kPixelBytes * tile.parts;
  }
  if (tile.parts > 1) {
    dy_rows = dy_piece_rows = piece_rows(tile.rows, tile.width);
    rows_of_x = x_piece_rows = piece_rows(x_rows, x_width);
    const std::int64_t raw_bytes =
        std::max(dy_rows * tile.width, rows_of_x * x_width) * kRawPixelBytes;
    raw_slots = std::clamp<std::int64_t>(kRawPipelineBytes / raw_bytes, 2, kMaxRawSlots);
    other_bytes = raw_slots * raw_bytes;
    barriers += raw_slots;
  }
  copies = tile.segments *
           (tile.dy_boxes * ceil_div(tile.rows, dy_rows) + x_copies * ceil_div(x_rows, rows_of_x));
  shared_bytes = kStageAlignment + tile.stages * stage_bytes + other_bytes +
                 2 * barriers * std::int64_t{sizeof(std::uint64_t)};
}

TensorMapForm Tiling::map_x(const Shape& shape, const Tile& tile) const {
  return map_of(shape, shape.x.view, shape.all_channels, shape.from, shape.x_strides, shape.x_image,
                x_width, tile.parts > 1 ? x_piece_rows : x_rows, shape.stride,
                tile.transposed ? kBoxChannels / 2 : kBoxChannels,
                shape.is_f32() && !tile.transposed ? 0 : 128, tile.transposed);
}

TensorMapForm Tiling::map_dy(const Shape& shape, const Tile& tile) const {
  return map_of(shape, shape.dy.view, shape.all_filters, shape.to, shape.dy_strides, shape.dy_image,
                tile.width, tile.parts > 1 ? dy_piece_rows : tile.rows, {1, 1, 1}, kBoxChannels,
                shape.is_f32() ? 0 : 128, tile.transposed);
}

}  // namespace ashlar::cuda

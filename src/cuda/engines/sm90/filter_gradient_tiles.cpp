// How the gradient of a filter is cut.
#include <algorithm>
#include <cmath>

#include "base/ceil_div.hpp"
#include "cuda/engines/sm90/filter_gradient_shape.hpp"

namespace ashlar::cuda {

namespace {

using Shape = FilterGradientShape;
using Tile = FilterGradientTile;
using Cut = FilterGradientCut;

constexpr std::int64_t kPixelBytes = 128;     // of a box, as the matrix units take it
constexpr std::int64_t kRawPixelBytes = 256;  // f32
constexpr std::int64_t kRawPieceBytes = 16 << 10;
constexpr std::int64_t kRawRingBytes = 48 << 10, kMostRawSlots = 8;
constexpr std::int64_t kMostBox = 256;     // pixels along an axis, of a copy
constexpr std::int64_t kAlignment = 1024;  // of a stage
constexpr int kMostStages = 8;
// Sums of a thread: of two warpgroups that multiply, and of three, which have fewer registers each.
// Where numbers have three parts, every sum is there twice.
int most_sums(const FilterGradientTile& tile) {
  if (tile.parts == 3) return tile.consumers() > 2 ? 48 : 96;
  return tile.consumers() > 2 ? 96 : 128;
}

std::int64_t round_up(std::int64_t a, std::int64_t b) { return ceil_div(a, b) * b; }

// Rows of a piece: as few pieces as their size allows, of about as many rows each.
std::int64_t piece_rows(std::int64_t rows, std::int64_t width) {
  const std::int64_t most = std::max<std::int64_t>(kRawPieceBytes / (width * kRawPixelBytes), 1);
  return ceil_div(rows, ceil_div(rows, most));
}

// Pixels from one row to the next where several rows of dy and of x lie one after the other: a tap
// that reaches past a row finds the padding before the next one.
std::int64_t pitch_of(const Shape& shape, int taps_across) {
  const std::int64_t pixels = shape.to[2], reach = (taps_across - 1) * shape.dilation[2];
  if (taps_across < shape.window[2]) return pixels + reach;
  const std::int64_t padding = shape.padding[2];
  return std::max(
      {pixels, pixels + reach - padding, std::min(shape.from[2] + padding, pixels + reach)});
}

TensorMapForm map_of(const Shape& shape, const View& view, std::int64_t channels,
                     const Shape::Axes& extents, const Shape::Axes& strides, std::int64_t image,
                     std::int64_t width, std::int64_t rows, const Shape::Axes& steps) {
  TensorMapForm form;
  form.dtype = view.dtype;
  form.swizzle = shape.splits_numbers() ? 0 : 128;
  const auto add = [&](std::int64_t extent, std::int64_t stride, std::int64_t count,
                       std::int64_t step) {
    TensorMapAxis axis;
    axis.extent = extent;
    axis.stride = stride;
    axis.box = (count - 1) * step + 1;
    axis.step = step;
    form.axes.push_back(axis);
  };
  add(channels, 1, kBoxChannels, 1);
  add(extents[2], strides[2], width, steps[2]);
  if (shape.rank() > 3) add(extents[1], strides[1], rows, steps[1]);
  if (shape.rank() > 4) add(extents[0], strides[0], 1, 1);
  add(shape.images, image, 1, 1);
  return form;
}

// What a stage takes, in clocks of a multiprocessor. The figures are of an H200: products at their
// full rate, bytes of the L2 cache and of memory per clock and multiprocessor.
struct Clocks {
  double multiply;  // at best
  double stage;
  double loading;  // where the L2 cache limits
};
Clocks clocks_of(const Tile& tile, const Cut& cut) {
  constexpr double kCacheBytes = 36, kMemoryBytes = 18, kLatency = 1500, kCopy = 200, kTurn = 60;
  constexpr double kSplitPixel = 15, kSplitPiece = 200;
  const double products = static_cast<double>(tile.segments * cut.segment_groups) / 2 *
                          tile.dy_boxes * tile.tap_rows * tile.products();
  const auto bytes = static_cast<double>(cut.loaded_bytes);
  Clocks result{};
  result.multiply = products * tile.columns() / 2.0;
  result.loading = bytes / kCacheBytes;
  // 64 rows of dy and the columns, 16 pixels each, at 128 bytes per clock less what copies take; a
  // warpgroup that is alone leaves gaps between its products.
  double multiply = products * std::max(tile.columns() / 2.0, 1.15 * (16 + tile.columns() / 4.0));
  if (tile.consumers() == 1) multiply *= 1.3;
  const auto copies = static_cast<double>(cut.copies);
  // What fills a stage: copies, or warps that split what copies brought meanwhile.
  const double fill = tile.parts > 1 ? bytes / kRawPixelBytes * kSplitPixel / tile.consumers() +
                                           copies * kSplitPiece
                                     : kLatency + bytes / kMemoryBytes;
  // From one round of a stage's memory to the next; all blocks load at the same time.
  const double round = tile.parts > 1 ? 0 : (fill + multiply + kTurn) / tile.stages;
  result.stage = std::max({multiply, round, tile.parts > 1 ? fill : 0, copies * kCopy}) + kTurn;
  return result;
}

// Of the whole launch and the one that adds its sums.
double clocks_of_all(const Shape& shape, const Tile& tile, const Cut& cut,
                     const DeviceProps& device) {
  constexpr double kTile = 4000, kLaunch = 5000, kPerSecond = 1.7e9;
  const Clocks clocks = clocks_of(tile, cut);
  const double waves = std::ceil(static_cast<double>(cut.tiles * tile.splits) /
                                 static_cast<double>(device.compute_units));
  const auto sums = static_cast<double>(element_count(shape.epilogue.space));
  const auto stages = static_cast<double>(ceil_div(cut.stage_count, tile.splits));
  return waves * (stages * std::max(clocks.stage, clocks.loading) + kTile) +
         sums * 8 * tile.splits / device.bytes_per_second * kPerSecond + kLaunch;
}

// Stages as shared memory holds them; false: not even two.
bool fit_stages(const Shape& shape, Tile& tile, const DeviceProps& device) {
  for (tile.stages = kMostStages; tile.stages >= 2; --tile.stages)
    if (Cut(shape, tile).shared_bytes <= device.shared_bytes) return true;
  return false;
}

bool is_taken(const Cut& cut) {
  return refusal(cut.map_x) == nullptr && refusal(cut.map_dy) == nullptr;
}

// The best ways to fill the stages of a tile.
std::vector<Tile> with_stages(const Shape& shape, const Tile& tile, const DeviceProps& device) {
  std::vector<std::pair<double, Tile>> found;
  const auto add = [&](std::int64_t rows, std::int64_t width, int segments) {
    Tile own = tile;
    own.rows = static_cast<int>(rows);
    own.width = static_cast<int>(width);
    own.segments = segments;
    if (width > kMostBox || !fit_stages(shape, own, device)) return;
    const Cut cut(shape, own);
    if (!is_taken(cut)) return;
    const Clocks clocks = clocks_of(own, cut);
    const double time =
        std::max(clocks.stage, clocks.loading) * static_cast<double>(cut.stage_count);
    found.emplace_back(time, own);
  };
  const std::int64_t pitch = pitch_of(shape, tile.taps_across);
  const std::int64_t most_rows = std::min<std::int64_t>(shape.to[1], 16);
  for (std::int64_t rows = 1; rows <= most_rows; ++rows)
    for (const int segments : {1, 2, 4, 8})
      if (rows * pitch * segments <= 512) add(rows, rows == 1 ? shape.to[2] : pitch, segments);
  for (const std::int64_t width : {32, 64, 96, 128, 192, 256})
    if (width < shape.to[2] && (!shape.splits_numbers() || width <= 64)) add(1, width, 1);
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Tile> result;
  for (const auto& [time, own] : found)
    if (result.size() < 2) result.push_back(own);
  return result;
}

}  // namespace

double filter_gradient_efficiency(const Tile& tile, const Cut& cut) {
  const Clocks clocks = clocks_of(tile, cut);
  return clocks.multiply / clocks.stage;
}

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
          {"parts", tile.parts}};
}

Tile filter_gradient_tile_of(const Config& config) {
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
  tile.parts = knob("parts");
  return tile;
}

Cut::FilterGradientCut(const Shape& shape, const Tile& tile) {
  const std::int64_t reach = (tile.taps_across - 1) * shape.dilation[2];
  const std::int64_t reach_down = (tile.tap_rows - 1) * shape.dilation[1];
  x_width = tile.rows > 1 ? tile.width : tile.width + reach;
  x_rows = tile.rows + reach_down;
  segment_groups = ceil_div(std::int64_t{tile.rows} * tile.width, 8);
  if (tile.segments * segment_groups % 2 != 0) ++segment_groups;
  x_pitch =
      round_up(std::max(x_rows * x_width, segment_groups * 8 + reach_down * x_width + reach), 8);

  segments_w = ceil_div(shape.to[2], tile.width);
  segments_h = ceil_div(shape.to[1], tile.rows);
  segments = segments_w * segments_h * shape.to[0] * shape.images;
  stage_count = ceil_div(segments, tile.segments);
  tiles_k = ceil_div(shape.filters, tile.dy_boxes * kBoxChannels);
  tiles_c = ceil_div(shape.channels, tile.x_boxes * kBoxChannels);
  tap_blocks_h = ceil_div(shape.window[1], tile.tap_rows);
  tap_blocks_w = ceil_div(shape.window[2], tile.taps_across);
  tiles = shape.groups * tiles_k * tiles_c * shape.window[0] * tap_blocks_h * tap_blocks_w;

  const bool splits_numbers = shape.splits_numbers();
  const std::int64_t pixels =
      tile.segments * (tile.dy_boxes * segment_groups * 8 + tile.x_boxes * x_pitch);
  stage_bytes = pixels * kPixelBytes * tile.parts;
  loaded_bytes =
      tile.segments *
      (tile.dy_boxes * std::int64_t{tile.rows} * tile.width + tile.x_boxes * x_rows * x_width) *
      (splits_numbers ? kRawPixelBytes : kPixelBytes);
  std::int64_t dy_rows = tile.rows, rows_of_x = x_rows;
  raw_bytes = 0;
  if (splits_numbers) {
    dy_rows = dy_piece_rows = piece_rows(tile.rows, tile.width);
    rows_of_x = x_piece_rows = piece_rows(x_rows, x_width);
    raw_bytes = std::max(dy_rows * tile.width, rows_of_x * x_width) * kRawPixelBytes;
    raw_slots = std::clamp<std::int64_t>(kRawRingBytes / raw_bytes, 2, kMostRawSlots);
  }
  copies = tile.segments * (tile.dy_boxes * ceil_div(tile.rows, dy_rows) +
                            tile.x_boxes * ceil_div(x_rows, rows_of_x));
  shared_bytes = kAlignment + tile.stages * stage_bytes + raw_slots * raw_bytes +
                 2 * (tile.stages + raw_slots) * std::int64_t{sizeof(std::uint64_t)};
  map_x = map_of(shape, shape.x, shape.all_channels, shape.from, shape.x_strides, shape.x_image,
                 x_width, rows_of_x, shape.stride);
  map_dy = map_of(shape, shape.dy, shape.all_filters, shape.to, shape.dy_strides, shape.dy_image,
                  tile.width, dy_rows, {1, 1, 1});
}

std::vector<Tile> filter_gradient_tiles(const Shape& shape, int parts, const DeviceProps& device) {
  constexpr std::size_t kMostTiles = 20;
  const std::int64_t filters = ceil_div(shape.filters, kBoxChannels);
  const std::int64_t channels = ceil_div(shape.channels, kBoxChannels);
  std::vector<std::pair<double, Tile>> found;
  const auto add_splits = [&](Tile tile) {
    const Cut cut(shape, tile);
    for (const std::int64_t waves : {1, 2}) {
      const std::int64_t splits =
          std::clamp<std::int64_t>(waves * device.compute_units / cut.tiles, 1, cut.stage_count);
      if (splits == tile.splits && waves > 1) continue;
      tile.splits = static_cast<int>(splits);
      found.emplace_back(clocks_of_all(shape, tile, cut, device), tile);
    }
  };
  // Taps whose pixels are of one stage; with strides they are different pixels.
  const std::int64_t most_down =
      shape.stride[1] > 1 ? 1 : std::min<std::int64_t>(shape.window[1], 3);
  const std::int64_t most_across =
      shape.stride[2] > 1 ? 1 : std::min<std::int64_t>(shape.window[2], 4);
  for (int down = 1; down <= most_down; ++down)
    for (int across = 1; across <= most_across; ++across)
      for (int dy_boxes = 1; dy_boxes <= std::min<std::int64_t>(filters, 4); ++dy_boxes)
        for (int x_boxes = 1; x_boxes <= (across > 1 ? 1 : std::min<std::int64_t>(channels, 4));
             ++x_boxes)
          for (int row_blocks = 1; row_blocks <= 2; ++row_blocks) {
            Tile tile;
            tile.parts = parts;
            tile.tap_rows = down;
            tile.taps_across = across;
            tile.dy_boxes = dy_boxes;
            tile.x_boxes = x_boxes;
            tile.row_blocks = row_blocks;
            if (dy_boxes % row_blocks != 0 || tile.consumers() > 3 ||
                row_blocks * tile.columns() / 2 > most_sums(tile))
              continue;
            for (const Tile& own : with_stages(shape, tile, device)) add_splits(own);
          }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Tile> result;
  for (const auto& [time, tile] : found)
    if (result.size() < kMostTiles) result.push_back(tile);
  return result;
}

}  // namespace ashlar::cuda

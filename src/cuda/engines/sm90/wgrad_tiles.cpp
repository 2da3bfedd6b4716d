// Candidate wgrad tiles and their cost.
#include <algorithm>
#include <cmath>

#include "base/ceil_div.hpp"
#include "cuda/engines/sm90/wgrad_shape.hpp"

namespace ashlar::cuda {

namespace {

using Shape = WgradShape;
using Tile = WgradTile;
using Tiling = WgradTiling;

constexpr std::int64_t kMaxBox = 256;  // pixels along an axis, per TMA load
constexpr int kMaxPipelineStages = 8;
constexpr std::int64_t kFewestSteps = 4, kMaxSteps = 16;  // per stage of a transposed tile
// Maximum accumulators per thread: of two consumer warpgroups, and of three, which have fewer
// registers each. With three bf16 parts every accumulator exists twice.
int max_sums(const WgradTile& tile) {
  if (tile.parts == 3) return tile.consumers() > 2 ? 48 : 96;
  return tile.consumers() > 2 ? 96 : 128;
}

// Pitch in pixels where several rows of dy and of x are contiguous: a tap that reaches past a row
// reads the padding before the next one.
std::int64_t pitch_of(const Shape& shape, int taps_across) {
  const std::int64_t pixels = shape.to[2], reach = (taps_across - 1) * shape.dilation[2];
  if (taps_across < shape.window[2]) return pixels + reach;
  const std::int64_t padding = shape.padding[2];
  return std::max(
      {pixels, pixels + reach - padding, std::min(shape.from[2] + padding, pixels + reach)});
}

// Clocks per stage and SM. Measured on an H200: tensor cores at full rate, bytes from L2 and from
// DRAM per clock and SM.
constexpr double kCacheBytes = 36, kMemoryBytes = 18, kLatency = 1500;
struct Clocks {
  double multiply;  // at full rate
  double stage;
  double loading;  // if L2 bandwidth limits
};
// With transposed dy: wgmma, and the shared-memory traffic at 128 bytes per clock: dy for every
// wgmma, x once for all taps across, TMA writes, dy once more out and in.
Clocks transposed_clocks(const Tile& tile, const Tiling& tiling) {
  constexpr double kTurn = 150;
  const auto steps = static_cast<double>(tiling.segment_groups);
  const double groups = tile.consumers(), columns = tile.dy_boxes * 64.0;
  const auto bytes = static_cast<double>(tiling.loaded_bytes);
  Clocks result{};
  result.multiply = steps * groups * tile.taps_across * columns / 2;
  result.loading = bytes / kCacheBytes;
  const double shared = result.multiply / 2 + (steps + tile.taps_across - 1) * groups * 16 +
                        (bytes + 2 * steps * 8 * columns * 4) / 128;
  const double work = std::max(1.1 * result.multiply, 1.15 * shared) * (groups < 2 ? 1.3 : 1);
  // TMA latency, then the transpose of a stage, then its wgmma.
  const double round =
      (kLatency + bytes / kMemoryBytes + steps * tile.dy_boxes * 30 + work) / tile.stages;
  result.stage = std::max(work, round) + kTurn;
  return result;
}

Clocks clocks_of(const Tile& tile, const Tiling& tiling) {
  if (tile.transposed) return transposed_clocks(tile, tiling);
  constexpr double kCopy = 200, kTurn = 60, kSplitPixel = 15, kSplitPiece = 200, kSplitBytes = 256;
  const double products = static_cast<double>(tile.segments * tiling.segment_groups) / 2 *
                          tile.dy_boxes * tile.tap_rows * tile.products();
  const auto bytes = static_cast<double>(tiling.loaded_bytes);
  Clocks result{};
  result.multiply = products * tile.columns() / 2.0;
  result.loading = bytes / kCacheBytes;
  // 64 rows of dy and the columns, 16 pixels each, at 128 bytes per clock minus the TMA traffic; a
  // single warpgroup leaves gaps between its wgmma.
  double multiply = products * std::max(tile.columns() / 2.0, 1.15 * (16 + tile.columns() / 4.0));
  if (tile.consumers() == 1) multiply *= 1.3;
  const auto copies = static_cast<double>(tiling.copies);
  // What fills a stage: TMA, or warps that split f32 loaded by TMA meanwhile.
  const double fill =
      tile.parts > 1 ? bytes / kSplitBytes * kSplitPixel / tile.consumers() + copies * kSplitPiece
                     : kLatency + bytes / kMemoryBytes;
  // Round trip of a stage through the pipeline; all CTAs load at the same time.
  const double round = tile.parts > 1 ? 0 : (fill + multiply + kTurn) / tile.stages;
  result.stage = std::max({multiply, round, tile.parts > 1 ? fill : 0, copies * kCopy}) + kTurn;
  return result;
}

// Of the whole launch and its split-K reduction.
double clocks_of_all(const Shape& shape, const Tile& tile, const Tiling& tiling,
                     const DeviceProps& device) {
  constexpr double kTile = 4000, kLaunch = 5000, kPerSecond = 1.7e9;
  const Clocks clocks = clocks_of(tile, tiling);
  const double blocks =
      static_cast<double>(tile.blocks > 0 ? tile.blocks : tiling.tiles * tile.splits);
  const double waves = std::ceil(blocks / static_cast<double>(device.compute_units));
  const auto sums = static_cast<double>(element_count(shape.epilogue.space));
  const double stages = std::ceil(static_cast<double>(tiling.tiles * tiling.stage_count) / blocks);
  // Of consecutive tiles of a CTA only the epilogue does not overlap.
  const double ends = tile.blocks > 0 ? static_cast<double>(tiling.tiles) / blocks : 0;
  const double loading = clocks.loading * (tile.blocks > 0 ? kApartBytes : 1);
  return waves * (stages * std::max(clocks.stage, loading) + kTile) + ends * kTile / 2 +
         sums * 8 * tile.splits / device.bytes_per_second * kPerSecond + kLaunch;
}

// Whether stream-K shares all stages evenly: where tiles do not fill whole waves, and half of L2
// holds the operands, because no two CTAs read the same data at once.
bool is_shared_out(const Shape& shape, const Tiling& tiling, const DeviceProps& device) {
  const View &x = shape.x.view, &dy = shape.dy.view;
  const std::int64_t units = device.compute_units, bytes = bit_width(x.dtype) / 8;
  const std::int64_t read = (element_count(x.dims) + element_count(dy.dims)) * bytes;
  return tiling.tiles % units != 0 && tiling.tiles * tiling.stage_count >= 2 * units &&
         2 * read <= device.l2_bytes;
}

// As many stages as shared memory holds; false: fewer than two.
bool fit_stages(const Shape& shape, Tile& tile, const DeviceProps& device) {
  for (tile.stages = kMaxPipelineStages; tile.stages >= 2; --tile.stages)
    if (Tiling(shape, tile).shared_bytes <= device.shared_bytes) return true;
  return false;
}

// Three warpgroups with the maximum of accumulators: the compiler overlaps several stages of two
// wgmma, runs out of registers and serialises all wgmma (C7511).
bool is_too_short(const Tile& tile, const Tiling& tiling) {
  return !tile.transposed && tile.consumers() > 2 && tile.sums() > 64 &&
         tile.segments * tiling.segment_groups <= 4;
}

bool is_taken(const Shape& shape, const Tile& tile, const Tiling& tiling) {
  return refusal(tiling.map_x(shape, tile)) == nullptr &&
         refusal(tiling.map_dy(shape, tile)) == nullptr;
}

std::vector<Tile> best(std::vector<std::pair<double, Tile>> found, std::size_t most) {
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  if (found.size() > most) found.resize(most);
  std::vector<Tile> result;
  for (const auto& [time, tile] : found) result.push_back(tile);
  return result;
}

// The best stage shapes for a tile.
std::vector<Tile> with_stages(const Shape& shape, const Tile& tile, const DeviceProps& device) {
  std::vector<std::pair<double, Tile>> found;
  const auto add = [&](std::int64_t rows, std::int64_t width, int segments) {
    Tile own = tile;
    own.rows = static_cast<int>(rows);
    own.width = static_cast<int>(width);
    own.segments = segments;
    if (width > kMaxBox || !fit_stages(shape, own, device)) return;
    const Tiling tiling(shape, own);
    if (!is_taken(shape, own, tiling) || is_too_short(own, tiling)) return;
    const Clocks clocks = clocks_of(own, tiling);
    const double time =
        std::max(clocks.stage, clocks.loading) * static_cast<double>(tiling.stage_count);
    found.emplace_back(time, own);
  };
  if (tile.transposed) {
    // 8 rows, or two halves of 4.
    for (std::int64_t parts = 1; parts <= shape.to[2]; ++parts)
      for (const int halves : {1, 2}) {
        const std::int64_t steps = ceil_div(shape.to[2], parts * halves);
        if (steps >= kFewestSteps && steps <= kMaxSteps) add(8 / halves, steps * halves, 1);
      }
    return best(found, 2);
  }
  const std::int64_t pitch = pitch_of(shape, tile.taps_across);
  const std::int64_t max_rows = std::min<std::int64_t>(shape.to[1], 16);
  for (std::int64_t rows = 1; rows <= max_rows; ++rows)
    for (const int segments : {1, 2, 4, 8})
      if (rows * pitch * segments <= 512) add(rows, rows == 1 ? shape.to[2] : pitch, segments);
  for (const std::int64_t width : {32, 64, 96, 128, 192, 256})
    if (width < shape.to[2] && (!shape.is_f32() || width <= 64)) add(1, width, 1);
  return best(found, 2);
}

}  // namespace

double wgrad_efficiency(const Tile& tile, const Tiling& tiling) {
  const Clocks clocks = clocks_of(tile, tiling);
  return clocks.multiply / clocks.stage;
}

std::vector<Tile> wgrad_tiles(const Shape& shape, int parts, bool transposed,
                              const DeviceProps& device) {
  constexpr std::size_t kMaxTiles = 20;
  const std::int64_t filters = ceil_div(shape.filters, kBoxChannels);
  const std::int64_t channels = ceil_div(shape.channels, kBoxChannels);
  std::vector<std::pair<double, Tile>> found;
  // Transposed tiles need several rows and pixels that adjacent taps share.
  if (transposed && (shape.rank() < 4 || shape.dilation[2] > 1)) return {};
  const auto add_splits = [&](Tile tile) {
    const Tiling tiling(shape, tile);
    for (const std::int64_t waves : {1, 2}) {
      const std::int64_t splits = std::clamp<std::int64_t>(
          waves * device.compute_units / tiling.tiles, 1, tiling.stage_count);
      if (splits == tile.splits && waves > 1) continue;
      tile.splits = static_cast<int>(splits);
      found.emplace_back(clocks_of_all(shape, tile, tiling, device), tile);
    }
    // No registers are left for the state of a loop over tiles: three parts; three warpgroups with
    // the maximum of accumulators and several segments.
    const bool is_full =
        !transposed && tile.consumers() > 2 && tile.sums() > 64 && tile.segments > 1;
    if (parts == 3 || is_full || !is_shared_out(shape, tiling, device)) return;
    tile.blocks = device.compute_units;
    tile.splits = static_cast<int>(max_parts(tiling.tiles, tiling.stage_count, tile.blocks));
    found.emplace_back(clocks_of_all(shape, tile, tiling, device), tile);
  };
  // Taps that share the pixels of a stage; with strides they have different pixels.
  const std::int64_t max_down =
      shape.stride[1] > 1 ? 1 : std::min<std::int64_t>(shape.window[1], 3);
  const std::int64_t max_across =
      shape.stride[2] > 1 ? 1 : std::min<std::int64_t>(shape.window[2], 4);
  for (int down = 1; down <= max_down; ++down)
    for (int across = 1; across <= max_across; ++across)
      for (int dy_boxes = 1; dy_boxes <= std::min<std::int64_t>(filters, 4); ++dy_boxes)
        for (int x_boxes = 1;
             x_boxes <= (across > 1 && !transposed ? 1 : std::min<std::int64_t>(channels, 4));
             ++x_boxes)
          for (int row_blocks = 1; row_blocks <= 2; ++row_blocks) {
            Tile tile;
            tile.parts = parts;
            tile.transposed = transposed;
            tile.tap_rows = down;
            tile.taps_across = across;
            tile.dy_boxes = dy_boxes;
            tile.x_boxes = x_boxes;
            tile.row_blocks = row_blocks;
            if (dy_boxes % row_blocks != 0 || tile.consumers() > 3 ||
                tile.sums() > max_sums(tile) || (transposed && row_blocks > 1))
              continue;
            for (const Tile& own : with_stages(shape, tile, device)) add_splits(own);
          }
  return best(found, kMaxTiles);
}

}  // namespace ashlar::cuda

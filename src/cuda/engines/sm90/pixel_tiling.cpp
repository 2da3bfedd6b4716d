#include "cuda/engines/sm90/pixel_tiling.hpp"

#include <algorithm>

#include "base/ceil_div.hpp"

namespace ashlar::cuda {

namespace {

using Phase = ImplicitGemm::Phase;

constexpr int kBoxBytes = 128;  // of a box with contiguous columns
// Bytes of K up to which the epilogue matters next to the mainloop.
constexpr std::int64_t kMaxDepthForBoxes = 2048;

// Whether the loader supports the tile.
bool fits(const PixelShape& shape, const GemmTile& tile) {
  if (shape.swap) return tile.cluster == 1;
  if (!shape.columns_contiguous) return true;
  const int columns = tile.n / tile.cluster;
  return columns * (bit_width(shape.filter_type) / 8) % kBoxBytes == 0;
}

}  // namespace

std::int64_t PixelTiling::tiles_m(const Phase& phase) const {
  const std::int64_t rows = shape.swap ? shape.product.columns : shape.pixel_count(phase);
  return ceil_div(rows, static_cast<std::int64_t>(tile.m) * tile.cluster);
}
std::int64_t PixelTiling::tiles_n(const Phase& phase) const {
  return ceil_div(shape.swap ? shape.pixel_count(phase) : shape.product.columns, tile.n);
}
std::int64_t PixelTiling::count(const Phase& phase) const {
  return shape.product.groups * tiles_m(phase) * tiles_n(phase);
}
std::int64_t PixelTiling::count() const {
  std::int64_t sum = 0;
  for (const Phase& phase : shape.product.phases) sum += count(phase);
  return sum;
}
bool PixelTiling::phases_are_equal() const {
  const std::vector<Phase>& phases = shape.product.phases;
  return std::all_of(phases.begin(), phases.end(),
                     [&](const Phase& phase) { return count(phase) == count(phases[0]); });
}
std::int64_t PixelTiling::k_blocks() const {
  return ceil_div(shape.product.depth * (bit_width(shape.pixel_type) / 8), tile.depth_bytes);
}

std::int64_t PixelTiling::split_k_blocks() const {
  const std::vector<Phase>& phases = shape.product.phases;
  if (phases.size() > 1) return 0;
  return k_blocks() * static_cast<std::int64_t>(phases[0].taps.size());
}

std::int64_t PixelTiling::clusters(const DeviceProps& device, bool keeps_columns) const {
  const std::int64_t all = std::min<std::int64_t>(count(), device.compute_units / tile.cluster);
  return keeps_columns ? all - all % tiles_n(shape.product.phases[0]) : all;
}
bool PixelTiling::can_keep_columns(const DeviceProps& device) const {
  const std::int64_t all = clusters(device, false);
  return clusters(device, true) * 8 >= all * 7;
}
std::int64_t PixelTiling::band(const DeviceProps& device) const {
  const Phase& phase = shape.product.phases[0];
  if (shape.swap) return tiles_m(phase);
  const auto phases =
      phases_are_equal() ? static_cast<std::int64_t>(shape.product.phases.size()) : 1;
  return std::max<std::int64_t>(1, device.compute_units / tile.cluster / tiles_n(phase) / phases);
}

std::vector<GemmTile> pixel_tiles(const PixelShape& shape) {
  const std::int64_t pixels = shape.pixel_count(shape.product.phases[0]);
  // Contiguous columns are loaded in whole boxes.
  const std::int64_t box =
      shape.columns_contiguous ? kBoxBytes * 8 / bit_width(shape.filter_type) : 1;
  const std::int64_t columns = std::max(shape.product.columns, box);
  std::vector<GemmTile> result;
  for (const int depth : shape.depths())
    for (GemmTile tile : gemm_tiles(shape.filter_type, shape.swap ? columns : pixels,
                                    shape.swap ? pixels : columns)) {
      tile.depth_bytes = depth;
      if (!fits(shape, tile)) continue;
      if (shape.computed && !has_producer_registers(tile, shape.filter_type)) continue;
      result.push_back(tile);
      if (!shape.computed || !has_registers_for_two(tile, shape.filter_type)) continue;
      result.push_back(tile);
      result.back().producers = 2;
    }
  return result;
}

std::optional<GemmTile> with_boxes(const PixelShape& shape, GemmTile tile) {
  const ImplicitGemm& product = shape.product;
  if (!shape.result_map()) return {};
  // TMA clips at the end of the tensor, not of a group's columns.
  if (product.groups > 1 && product.columns % tile.n != 0) return {};
  tile.boxes = boxes_of(tile, shape.epilogue.stores[0].view.dtype);
  if (tile.boxes == 0) return {};
  if (is_short(shape, tile)) return tile;
  // Cooperative: where the number of stages is the same as with lib/epilogue_rows.cuh. Ping-pong:
  // where there is one stage more.
  const bool pays = tile.ping_pong
                        ? tile.m == 128 && tile.n == 128 && bit_width(shape.filter_type) == 16
                        : tile.m * tile.n == 128 * 256;
  if (!pays) return {};
  tile.boxes = std::min(tile.boxes, 2);
  return tile;
}

bool is_short(const PixelShape& shape, const GemmTile& tile) {
  const auto taps = static_cast<std::int64_t>(shape.product.phases[0].taps.size());
  return taps * PixelTiling{shape, tile}.k_blocks() * tile.depth_bytes <= kMaxDepthForBoxes;
}

WindowStages window_stages(const PackedGroups& group_pack, const GemmTile& tile) {
  return {.rows = group_pack.window_rows,
          .windows = group_pack.windows,
          .filters = group_pack.filters,
          .resident = true,
          .bytes = group_pack.shared_bytes,
          .side = group_pack.side,
          .efficiency = group_pack.efficiency(tile)};
}

WindowStages window_stages(const PixelShape& shape, const GemmTile& tile,
                           const DeviceProps& device) {
  constexpr std::int64_t kPatternBytes = 1024, kMaxRows = 1024, kMaxFilters = 12;
  constexpr std::int64_t kLeastFilters = 4, kBarrierBytes = 8;
  // One tap: windows are ordinary stages, which pays only with resident filters.
  constexpr std::int64_t kLeastStages = 4, kMaxStages = 8;
  // Several taps: smaller tiles have too much halo.
  constexpr int kLeastPixels = 128;
  const PixelTiling tiling{shape, tile};
  WindowStages stages;
  if (!shape.has_one_tap() && tile.m < kLeastPixels) return stages;
  // rows of a swizzle period, or several
  const std::int64_t pattern = kPatternBytes / tile.depth_bytes;
  const std::int64_t rows = ceil_div(tile.m + shape.product.reach(), pattern) * pattern;
  if (rows > kMaxRows) return stages;
  const std::int64_t window = rows * tile.depth_bytes + 2 * kBarrierBytes,
                     filter =
                         static_cast<std::int64_t>(tile.n) * tile.depth_bytes + 2 * kBarrierBytes;
  const ImplicitGemm& product = shape.product;
  const Phase& phase = product.phases[0];
  const std::int64_t all = static_cast<std::int64_t>(phase.taps.size()) * tiling.k_blocks();
  // Filter stages that fit besides everything else.
  const std::int64_t free = device.shared_bytes - shared_bytes(tile, 0);
  const auto left = [&](std::int64_t windows) { return (free - windows * window) / filter; };
  if (shape.has_one_tap()) {
    if (!tiling.can_keep_columns(device) || left(kLeastStages) < all) return stages;
    stages.resident = true;
    stages.filters = static_cast<int>(all);
    stages.windows = static_cast<int>(std::min(kMaxStages, (free - all * filter) / window));
  } else {
    stages.resident = product.phases.size() == 1 && product.groups == 1 &&
                      tiling.tiles_n(phase) == 1 && left(2) >= all;
    const std::int64_t needed =
        stages.resident ? all : std::min(kMaxFilters, std::max(left(2), left(3)));
    if (left(2) < std::max(kLeastFilters, stages.resident ? all : 0)) return stages;
    stages.windows = left(3) >= (stages.resident ? all : kLeastFilters + 2) ? 3 : 2;
    stages.filters = static_cast<int>(std::min(needed, left(stages.windows)));
  }
  stages.rows = rows;
  stages.bytes = static_cast<unsigned>(shared_bytes(tile, 0) + stages.windows * window +
                                       stages.filters * filter);
  return stages;
}

}  // namespace ashlar::cuda

#include "cuda/engines/sm90/packed_groups.hpp"

#include <algorithm>

#include "base/ceil_div.hpp"
#include "cuda/text/spec_text.hpp"

namespace ashlar::cuda {

namespace {

constexpr int kMaxRowBytes = 128;  // of a window
constexpr std::int64_t kMaxWindowTaps = 25, kMaxWindow = 1024, kMaxRows = 256;

// The first of `sizes` that holds n; 0: none.
int filled(std::int64_t n, std::initializer_list<int> sizes) {
  for (const int size : sizes)
    if (n <= size) return size;
  return 0;
}

// Sizes that do not depend on tiles and stages.
std::optional<PackedGroups> sizes_of(const PixelShape& shape) {
  const ImplicitGemm& product = shape.product;
  if (product.phases.size() != 1 || shape.swap || promotes(shape.pixel_type)) return {};
  if (product.patches || product.taps() > kMaxWindowTaps) return {};
  const std::int64_t bytes = product.depth * (bit_width(shape.pixel_type) / 8);
  if (product.phases[0].planes() > 1) return {};
  PackedGroups group_pack{.side = 1,
                          .group_bytes = filled(bytes, {32, 64, 128}),
                          .columns = filled(product.columns, {8, 16, 32, 64}),
                          .taps = static_cast<int>(product.taps())};
  if (group_pack.group_bytes == 0 || group_pack.columns == 0) return {};
  if (product.groups > 1) {
    if (group_pack.group_bytes != bytes || group_pack.columns != product.columns) return {};
    group_pack.side = kMaxRowBytes / group_pack.group_bytes;
  }
  constexpr int kMaxColumns = 128, kLeastColumns = 16;
  if (group_pack.side * group_pack.columns > kMaxColumns) return {};
  // The epilogue stages 16 columns at a time, and column-contiguous filters need shared-memory rows
  // of at least 32 bytes.
  if (group_pack.side * group_pack.columns < kLeastColumns ||
      (shape.columns_contiguous && group_pack.columns < kLeastColumns)) {
    if (product.groups > 1) return {};
    group_pack.columns = kLeastColumns;
  }
  if (refusal(group_pack.filter_map(shape)) != nullptr) return {};
  return group_pack;
}

}  // namespace

std::vector<GemmTile> PackedGroups::tiles(const PixelShape& shape) {
  const auto group_pack = sizes_of(shape);
  if (!group_pack) return {};
  std::vector<GemmTile> result;
  struct Form {
    int m, consumers;
  };
  for (const Form form : {Form{128, 3}, Form{256, 3}, Form{512, 3}, Form{128, 2}, Form{256, 2}}) {
    const GemmTile tile{.m = form.m,
                        .n = group_pack->side * group_pack->columns,
                        .consumers = form.consumers,
                        .ping_pong = true,
                        .depth_bytes = group_pack->row_bytes()};
    if (shape.pointwise && form.m > kMaxRows) continue;
    // Per thread; three warpgroups have fewer registers each.
    const int max_sums = form.consumers == 2 ? 128 : 64;
    if (tile.row_blocks() * tile.n / 2 <= max_sums) result.push_back(tile);
  }
  return result;
}

std::optional<PackedGroups> PackedGroups::of(const PixelShape& shape, const GemmTile& tile,
                                             const DeviceProps& device) {
  auto group_pack = sizes_of(shape);
  if (!group_pack) return {};
  constexpr std::int64_t kPatternBytes = 1024, kBarrierBytes = 8;
  const std::int64_t pattern = kPatternBytes / group_pack->row_bytes();
  const std::int64_t rows = ceil_div(tile.m + shape.product.reach(), pattern) * pattern;
  if (rows > kMaxWindow) return {};
  group_pack->window_rows = static_cast<int>(rows);
  const std::int64_t window = rows * group_pack->row_bytes() + 2 * kBarrierBytes,
                     filters = static_cast<std::int64_t>(group_pack->taps) * group_pack->side *
                                   group_pack->columns * group_pack->group_bytes +
                               2 * kBarrierBytes;
  // More window stages in flight matter more than a second stage of filters.
  for (const auto& [rounds, stages] :
       {std::pair(2, 2), std::pair(1, 2), std::pair(2, 1), std::pair(1, 1)}) {
    // One group: all tiles use the same filters.
    if (shape.product.groups == 1 && stages > 1) continue;
    const std::int64_t bytes =
        ashlar::cuda::shared_bytes(tile, 0) + rounds * tile.consumers * window + stages * filters;
    if (bytes > device.shared_bytes) continue;
    group_pack->windows = rounds * tile.consumers;
    group_pack->filters = stages;
    group_pack->shared_bytes = static_cast<unsigned>(bytes);
    return group_pack;
  }
  return {};
}

PixelShape PackedGroups::packed_shape(const PixelShape& shape) const {
  PixelShape result = shape;
  if (side == 1) return result;
  result.product.groups = ceil_div(shape.product.groups, side);
  result.product.depth *= side;
  result.product.columns *= side;
  return result;
}

TensorMapForm PackedGroups::filter_map(const PixelShape& shape) const {
  const View& view = shape.filters.view;
  const std::int64_t bytes = bit_width(shape.filter_type) / 8, depth = group_bytes / bytes;
  TensorMapForm form{
      .dtype = shape.filter_type,
      .rounds_to_tf32 = shape.filter_type == f32,
      .swizzle = shape.columns_contiguous ? static_cast<int>(columns * bytes) : group_bytes};
  const auto axis = [&](int of, std::int64_t box) {
    const bool one = of > 0 && view.dims[of] == 1;  // a stride of an extent of 1 is arbitrary
    form.axes.push_back(
        {.extent = view.dims[of], .stride = one ? 16 / bytes : view.strides[of], .box = box});
  };
  axis(0, shape.columns_contiguous ? columns : depth);
  axis(2, shape.columns_contiguous ? depth : columns);
  axis(1, taps);
  return form;
}

std::string PackedGroups::constants(const PixelShape& shape) const {
  // constexpr functions: taps are unrolled, so the values are compile-time constants.
  std::string rows, places;
  const auto& all = shape.product.phases[0].taps;
  for (std::size_t i = 0; i < all.size(); ++i) {
    rows += fmt::format("tap == {} ? {} : ", i, all[i].offset[2]);
    places += fmt::format("tap == {} ? {} : ", i, all[i].filter);
  }
  const auto function = [](const char* name, const std::string& body) {
    return fmt::format("__device__ constexpr int {}(int tap) {{ return {}0; }}\n", name, body);
  };
  return constant("kGroupsPerTile", side) + constant("kGroupBytes", group_bytes) +
         constant("kRowBytes", row_bytes()) +
         constant("kGroupK", group_bytes * 8 / bit_width(shape.pixel_type)) +
         constant("kTapCount", static_cast<std::int64_t>(all.size())) + function("tap_row", rows) +
         function("tap_place", places);
}

double PackedGroups::efficiency(const GemmTile& tile) const {
  // A wgmma of 64 rows takes columns / 2 clocks; reading 64 rows and the columns of 32 bytes takes
  // 16 + columns / 4 clocks at 128 bytes per clock. Prologue and epilogue of a tile come on top;
  // two warpgroups leave gaps that three fill.
  constexpr double kTileClocks = 300;
  const double share = tile.consumers > 2 ? 1 : 0.93;
  const double units = columns / 2.0, reads = 16 + columns / 4.0;
  const double products = tile.row_blocks() * taps * row_bytes() / 32.0;
  return share * products * units / (products * std::max(units, reads) + kTileClocks);
}

}  // namespace ashlar::cuda

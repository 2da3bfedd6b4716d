#include "cuda/engines/conv_direct_shape.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include "cuda/engines/blended_epilogue.hpp"
#include "cuda/engines/channel_axes.hpp"

namespace ashlar::cuda {

namespace {

constexpr std::int64_t kMostRun = 4;             // channels whose taps are taken as runs
constexpr std::int64_t kMostHeldRegisters = 96;  // weights of a warp
constexpr std::int64_t kMostSumRegisters = 64;
constexpr std::int64_t kOtherRegisters = 60;  // addresses, operands, the epilogue
constexpr std::int64_t kRegistersOfUnit = 65536, kSharedOfUnit = 220 << 10, kMostBlocks = 4;
constexpr std::int64_t kMostWeightBytes = 100 << 10;
constexpr std::int64_t kMostWarps = 12;
constexpr std::int64_t kMostFilterSums = 96;  // registers of a warp

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
std::int64_t round_up(std::int64_t a, std::int64_t b) { return ceil_div(a, b) * b; }
std::int64_t floor_mod(std::int64_t a, std::int64_t b) { return ((a % b) + b) % b; }

ConvDirectShape::Axes per_axis(const Dims& values, std::int64_t absent) {
  ConvDirectShape::Axes result = {absent, absent};
  for (int axis = 0; axis < values.rank(); ++axis)
    result[static_cast<std::size_t>(axis + 2 - values.rank())] = values[axis];
  return result;
}
ConvDirectShape::Axes spatial_of(const Dims& dims) {
  ConvDirectShape::Axes result = {1, 1};
  for (int axis = 2; axis < dims.rank(); ++axis)
    result[static_cast<std::size_t>(axis + 2 - dims.rank())] = dims[axis];
  return result;
}
// Axes of a tensor of rank 3 or 4.
std::vector<int> axes_of(int rank, const std::vector<int>& front, const std::vector<int>& back) {
  constexpr int kMissing = 4;  // no axis of any tensor: extent 1
  std::vector<int> order = front;
  order.push_back(rank > 3 ? 2 : kMissing);
  order.push_back(rank - 1);
  order.insert(order.end(), back.begin(), back.end());
  return order;
}

// The fewest groups that together fill whole units of channels and whole tiles of results.
std::int64_t groups_together(const ConvDirectShape& shape) {
  for (std::int64_t count = 1; count <= 8 && count <= shape.groups; ++count)
    if (shape.groups % count == 0 && count * shape.depth % shape.unit() == 0 &&
        count * shape.results % 8 == 0)
      return count;
  return 1;
}

}  // namespace

const ConvAttributes* conv_attributes(const Region& region) {
  if (const auto* op = region.anchor_as<ConvForward>()) return op;
  if (const auto* op = region.anchor_as<ConvBackwardData>()) return op;
  return region.anchor_as<ConvBackwardFilter>();
}

ConvDirectShape::ConvDirectShape(const Region& region)
    : kind(region.anchor_as<ConvForward>()        ? Kind::forward
           : region.anchor_as<ConvBackwardData>() ? Kind::data
                                                  : Kind::filter),
      op(conv_attributes(region)),
      element(region.anchor->inputs[0].dtype),
      source(region.prologues[0]) {
  const bool filter = kind == Kind::filter;
  const PointwiseProgram epilogue = blended_epilogue(region);
  result = filter ? region.prologues[1] : epilogue;
  const PointwiseProgram& plain_weights = filter ? epilogue : region.prologues[1];
  const int rank = source.space.rank();
  images = source.space[0];
  source_channels = source.space[1];
  result_channels = result.space[1];
  source_extent = spatial_of(source.space);
  result_extent = spatial_of(result.space);
  taps = spatial_of(plain_weights.space);
  const std::int64_t filters = plain_weights.space[0], channels = plain_weights.space[1];
  groups = std::max<std::int64_t>((kind == Kind::data ? result_channels : source_channels) /
                                      std::max<std::int64_t>(channels, 1),
                                  1);
  depth = kind == Kind::data ? filters / groups : channels;
  results = kind == Kind::data ? channels : filters / groups;
  stride = per_axis(op->stride, 1);
  dilation = per_axis(op->dilation, 1);
  padding = per_axis(op->padding, 0);
  for (std::size_t axis = 0; axis < 2; ++axis) {
    if (kind != Kind::data) {
      window[axis] = taps[axis];
      step[axis] = stride[axis];
      reach[axis] = dilation[axis];
      first[axis] = -padding[axis];
      grid[axis] = result_extent[axis];
      continue;
    }
    // Result i * stride + phase takes dy at i + d for taps with d * stride = phase + padding - tap.
    std::int64_t least = std::numeric_limits<std::int64_t>::max(), most = -least;
    for (std::int64_t phase = 0; phase < stride[axis]; ++phase)
      for (std::int64_t tap = 0; tap < taps[axis]; ++tap) {
        const std::int64_t distance = phase + padding[axis] - tap * dilation[axis];
        if (distance % stride[axis] != 0) continue;
        least = std::min(least, distance / stride[axis]);
        most = std::max(most, distance / stride[axis]);
      }
    first[axis] = least;
    window[axis] = most - least + 1;
    step[axis] = reach[axis] = 1;
    phases[axis] = stride[axis];
    grid[axis] = ceil_div(result_extent[axis], stride[axis]);
  }
  merge = groups_together(*this);
  channels_last = channels_lie_together({&source, &result});
  const std::vector<int> order = channels_last ? axes_of(rank, {0}, {1}) : axes_of(rank, {0, 1}, {});
  source = reordered(source, order);
  result = reordered(result, order);
  weights = reordered(plain_weights, axes_of(rank, {0, 1}, {}));
}

bool ConvDirectShape::runs() const {
  return groups == 1 && depth <= (element == f32 ? kMostRun - 1 : kMostRun) && reach[1] == 1;
}

bool ConvDirectShape::copies(const PointwiseProgram& program) const {
  return program.is_plain_load() && program.steps[0].view.dtype == element;
}

ConvDirectPatch::ConvDirectPatch(const ConvDirectShape& shape, std::int64_t rows,
                                 std::int64_t columns, std::int64_t groups) {
  const std::int64_t unit = shape.unit(), step = shape.step[1];
  const bool is_short = unit == 8;
  height = (rows - 1) * shape.step[0] + (shape.window[0] - 1) * shape.reach[0] + 1;
  width = (columns - 1) * step + (shape.window[1] - 1) * shape.reach[1] + 1;
  if (!shape.runs()) {
    tap_channels = round_up(shape.group_channels(), unit);
    channels = groups * tap_channels;
    pixel = channels / unit % 2 == 0 ? channels + unit : channels;  // rows in different banks
    pitch = width * pixel;
    units_of_tap = tap_channels / unit;
    units = shape.window[0] * shape.window[1] * units_of_tap;
  } else {
    const std::int64_t depth = shape.depth;
    const View* view = shape.copies(shape.source) ? &shape.source.steps[0].view : nullptr;
    if (view != nullptr && shape.channels_last && (depth == 1 || view->strides[3] == 1) &&
        (shape.source_extent[1] == 1 || view->strides[2] == depth))
      for (span = is_short ? 8 : 4; span > (is_short ? 1 : 0); span /= 2) {
        spans = shape.source_extent[1] * depth % span == 0 && columns * step * depth % span == 0 &&
                view->strides[0] % span == 0 && view->strides[1] % span == 0 &&
                (!is_short || step * depth % 2 == 0);
        if (spans) break;
      }
    pixel = depth;
    // Pairs of elements begin at multiples of 4 bytes.
    if (is_short && step * depth % 2 != 0) ++pixel;
    channels = tap_channels = pixel;
    if (spans) {
      const std::int64_t start = shape.first[1] * depth;
      lead = is_short ? floor_mod(start, 2) : 0;
      shift = floor_mod(start - lead, span);
      first_element = start - lead - shift;
    }
    units_of_row = ceil_div(lead + shape.window[1] * pixel, unit);
    units = shape.window[0] * units_of_row;
    const std::int64_t end = shift + (columns - 1) * step * pixel + units_of_row * unit;
    width = std::max(width, ceil_div(end, pixel));
    pitch = round_up(spans ? end : width * pixel, spans ? span : 2);
    const auto is_whole = [&](std::int64_t elements) { return elements % unit == 0; };
    aligned = is_whole(step * pixel) && is_whole(pitch) && is_whole(shift);
  }
  if (!shape.channels_last) return;
  vector = packet_length({&shape.source}, static_cast<int>(unit));
  while (vector > 1 && (channels % vector != 0 || pixel % vector != 0 ||
                        shape.group_channels() % vector != 0 || pitch % vector != 0))
    vector /= 2;
}

ConvDirectBlock::ConvDirectBlock(const ConvDirectShape& shape, const ConvDirectTile& tile)
    : patch(shape, tile.h, tile.w, tile.groups) {
  const std::int64_t all_tiles = ceil_div(shape.columns(), 8);
  warps = tile.warps * (tile.groups / tile.own_groups) * (tile.tiles / tile.own_tiles);
  threads = warps * 32;
  parts = ceil_div(all_tiles, tile.tiles);
  const bool overlaps = shape.unit() == 8 && shape.copies(shape.source) && shape.channels_last &&
                        (patch.spans || patch.vector >= 2);
  patches = overlaps ? 2 : 1;
  const std::int64_t own = tile.own_groups * tile.own_tiles,
                     held_registers = patch.steps() * own * 2,
                     sums = tile.row_tiles * own * 4;
  held = held_registers <= kMostHeldRegisters;
  const std::int64_t columns = own * 8;
  row_pitch = columns % 16 == 8 ? columns : columns + 8;
  shared_bytes = patches * patch.elements() * shape.element_bytes() +
                 patch.steps() * tile.groups * tile.tiles * 32 * 8 +
                 (tile.own_tiles % 4 == 0 ? 0 : warps * 16 * row_pitch * 4);
  const std::int64_t registers = std::min<std::int64_t>(
      round_up(sums + (held ? held_registers : own * 2) + kOtherRegisters, 8), 255);
  blocks_at_once = std::clamp<std::int64_t>(
      std::min(kRegistersOfUnit / (registers * threads), kSharedOfUnit / (shared_bytes + 1024)), 1,
      kMostBlocks);
}

namespace {

struct ScoredTile {
  double score;
  std::int64_t h, w;
};
// Tiles of up to `capacity` results, the least wasteful first.
std::vector<ScoredTile> result_tiles(const ConvDirectShape& shape, std::int64_t capacity,
                                     std::int64_t groups) {
  std::set<std::int64_t> widths;
  for (std::int64_t parts = 1; parts <= 16; ++parts)
    widths.insert(std::min(ceil_div(shape.grid[1], parts), capacity));
  for (std::int64_t width = 8; width <= 128; width *= 2)
    widths.insert(std::min({width, capacity, shape.grid[1]}));
  std::vector<ScoredTile> found;
  for (const std::int64_t w : widths) {
    const std::int64_t rows = std::min(capacity / w, shape.grid[0]);
    const std::int64_t h = ceil_div(shape.grid[0], ceil_div(shape.grid[0], rows));
    const auto tiles =
        static_cast<double>(ceil_div(shape.grid[0], h) * ceil_div(shape.grid[1], w));
    const double waste = tiles * static_cast<double>(capacity) /
                         static_cast<double>(shape.grid[0] * shape.grid[1]);
    const ConvDirectPatch patch(shape, h, w, groups);
    const double halo = static_cast<double>(patch.height * patch.width) /
                        static_cast<double>(h * shape.step[0] * w * shape.step[1]);
    const double slowdown = shape.runs() && !patch.spans ? 1.3 : 1.0;
    found.push_back({waste * (1.0 + 0.4 * halo) * slowdown, h, w});
  }
  std::sort(found.begin(), found.end(),
            [](const ScoredTile& a, const ScoredTile& b) { return a.score < b.score; });
  return found;
}

// Groups that are 128 bytes of every pixel; 1 where a group has no whole units.
std::int64_t groups_of_block(const ConvDirectShape& shape) {
  if (shape.group_channels() % shape.unit() != 0 || shape.group_count() == 1) return 1;
  std::int64_t groups =
      std::max<std::int64_t>(128 / shape.element_bytes() / shape.group_channels(), 1);
  while (shape.group_count() % groups != 0) --groups;
  return groups;
}

template <class Tile>
std::vector<Tile> best_first(std::vector<std::pair<double, Tile>> found) {
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Tile> result;
  for (const auto& [score, tile] : found)
    if (std::find(result.begin(), result.end(), tile) == result.end()) result.push_back(tile);
  return result;
}

}  // namespace

std::vector<ConvDirectTile> conv_direct_tiles(const ConvDirectShape& shape,
                                              const DeviceProps& device) {
  const std::int64_t all_tiles = ceil_div(shape.columns(), 8);
  const std::int64_t steps = ConvDirectPatch(shape, 1, 1, 1).steps();
  std::vector<std::pair<double, ConvDirectTile>> found;
  for (const std::int64_t warps : {8, 4})
    for (const std::int64_t row_tiles : {2, 1, 4}) {
      ConvDirectTile tile{.h = 1,
                          .w = 1,
                          .row_tiles = row_tiles,
                          .warps = 1,
                          .groups = groups_of_block(shape),
                          .own_groups = 1,
                          .tiles = 1,
                          .own_tiles = std::min<std::int64_t>(all_tiles, 4)};
      if (all_tiles % 4 != 0 && all_tiles > 4)
        tile.own_tiles = all_tiles % 3 == 0 ? 3 : all_tiles % 2 == 0 ? 2 : 4;
      const std::int64_t rounded_tiles = round_up(all_tiles, tile.own_tiles);
      if (tile.groups > 1) {
        tile.tiles = rounded_tiles;
        while (tile.own_groups * 2 * tile.tiles <= 4 && tile.groups % (tile.own_groups * 2) == 0)
          tile.own_groups *= 2;
      } else {
        // The columns of a group in as few blocks as can be.
        const std::int64_t most =
            std::min({kMostWeightBytes / (steps * 256 * tile.own_tiles), warps,
                      rounded_tiles / tile.own_tiles});
        tile.tiles = std::max<std::int64_t>(most, 1) * tile.own_tiles;
      }
      const std::int64_t across = tile.groups / tile.own_groups * (tile.tiles / tile.own_tiles);
      tile.warps = std::max<std::int64_t>(warps / across, 1);
      if (row_tiles * tile.own_groups * tile.own_tiles * 4 > kMostSumRegisters) continue;
      if (tile.warps * across > kMostWarps) continue;
      int kept = 0;
      for (const ScoredTile& area :
           result_tiles(shape, row_tiles * tile.warps * 16, tile.groups)) {
        tile.h = area.h;
        tile.w = area.w;
        if (ConvDirectBlock(shape, tile).shared_bytes > device.shared_bytes) continue;
        found.emplace_back(area.score, tile);
        if (++kept == 2) break;
      }
    }
  return best_first(std::move(found));
}

ConvDirectFilterBlock::ConvDirectFilterBlock(const ConvDirectShape& shape,
                                             const ConvDirectFilterTile& tile,
                                             const DeviceProps& device)
    : patch(shape, tile.h, tile.w, tile.groups) {
  const std::int64_t unit = shape.unit(), row_tiles = ceil_div(patch.units * unit, 16);
  gradient_channels = tile.groups * tile.tiles * 8;
  gradient_pixel = gradient_channels / unit % 2 == 0 ? gradient_channels + unit : gradient_channels;
  gradient_vector = 1;
  if (shape.channels_last) {
    gradient_vector = packet_length({&shape.result}, static_cast<int>(unit));
    while (shape.group_results() % gradient_vector != 0) gradient_vector /= 2;
  }
  threads = tile.warps_k * tile.warps_m * (tile.groups / tile.own_groups) * 32;
  const bool overlaps = unit == 8 && shape.channels_last &&
                        ((shape.copies(shape.source) && (patch.spans || patch.vector >= 2)) ||
                         (shape.copies(shape.result) && gradient_vector >= 2));
  patches = overlaps ? 2 : 1;
  const std::int64_t places = round_up(tile.h * tile.w, unit * 2);
  shared_bytes =
      patches * (patch.elements() + places * gradient_pixel) * shape.element_bytes();
  parts = ceil_div(ceil_div(shape.columns(), 8), tile.tiles);
  row_parts = ceil_div(row_tiles, tile.own_rows * tile.warps_m);
  const std::int64_t across = ceil_div(shape.group_count(), tile.groups) * parts * row_parts;
  sums = across * tile.groups * (tile.warps_m * tile.own_rows * 16) * (tile.tiles * 8);
  const std::int64_t registers =
      std::min<std::int64_t>(round_up(tile.own_groups * tile.own_rows * tile.tiles * 4 +
                                          tile.own_rows * 2 + tile.tiles * 2 + kOtherRegisters,
                                      8),
                             255);
  blocks_at_once = std::clamp<std::int64_t>(
      std::min(kRegistersOfUnit / (registers * threads), kSharedOfUnit / (shared_bytes + 1024)), 1,
      kMostBlocks);
  const std::int64_t tiles = shape.images * ceil_div(shape.grid[0], tile.h) *
                             ceil_div(shape.grid[1], tile.w);
  blocks = std::min(
      tiles, std::max<std::int64_t>(device.compute_units * blocks_at_once / across, 1));
}

std::vector<ConvDirectFilterTile> conv_direct_filter_tiles(const ConvDirectShape& shape,
                                                           const DeviceProps& device) {
  const std::int64_t all_tiles = ceil_div(shape.columns(), 8);
  const std::int64_t row_tiles =
      ceil_div(ConvDirectPatch(shape, 1, 1, 1).units * shape.unit(), 16);
  std::vector<std::pair<double, ConvDirectFilterTile>> found;
  for (const std::int64_t most_sums : {kMostFilterSums, kMostFilterSums / 2})
    for (const std::int64_t capacity : {128, 64, 256}) {
      ConvDirectFilterTile tile{.h = 1,
                                .w = 1,
                                .groups = groups_of_block(shape),
                                .own_groups = 1,
                                .tiles = std::min<std::int64_t>(all_tiles, 8),
                                .own_rows = 1,
                                .warps_m = 1,
                                .warps_k = 1};
      if (shape.group_results() % 8 != 0 || all_tiles > 8) tile.groups = 1;
      const std::int64_t own = std::max<std::int64_t>(most_sums / (tile.tiles * 4), 1);
      tile.warps_m = std::min(ceil_div(row_tiles, own), kMostWarps / tile.groups);
      tile.warps_m = std::max<std::int64_t>(tile.warps_m, 1);
      tile.own_rows = std::min(own, ceil_div(row_tiles, tile.warps_m));
      const std::int64_t across = tile.warps_m * tile.groups;
      tile.warps_k = std::max<std::int64_t>(8 / across, 1);
      int kept = 0;
      for (const ScoredTile& area : result_tiles(shape, capacity, tile.groups)) {
        tile.h = area.h;
        tile.w = area.w;
        const ConvDirectFilterBlock block(shape, tile, device);
        if (block.shared_bytes > device.shared_bytes) continue;
        found.emplace_back(area.score, tile);
        if (++kept == 2) break;
      }
    }
  return best_first(std::move(found));
}

}  // namespace ashlar::cuda

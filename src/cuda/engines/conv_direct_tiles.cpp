// Candidate tiles of the direct convolution, and their cost model.
#include <algorithm>
#include <set>

#include "base/ceil_div.hpp"
#include "cuda/engines/channel_axes.hpp"
#include "cuda/engines/conv_direct_shape.hpp"

namespace ashlar::cuda {

namespace {

constexpr std::int64_t kMaxHeldRegisters = 96;  // weights per thread
constexpr std::int64_t kMaxHeldAndSums = 152;   // 160 spilled with several phases in one launch
constexpr std::int64_t kMaxSumRegisters = 64, kMaxFilterSums = 96;
constexpr std::int64_t kMaxSplitSums = 96;    // of either, with split f32
constexpr std::int64_t kOtherRegisters = 60;  // addresses, operands, the epilogue
constexpr std::int64_t kOtherOfWide = 92;     // the same for f32
constexpr std::int64_t kSharedOfUnit = 220 << 10, kMaxBlocks = 4;
constexpr std::int64_t kMaxWeightBytes = 100 << 10;
constexpr std::int64_t kMaxWarps = 12;
constexpr std::size_t kMaxConfigs = 8;
// Costs on one SM, in clocks.
constexpr double kProduct = 1.67;            // per MMA of 16 x 8 x 32 bytes
constexpr double kSharedBytesOfCycle = 128;  // shared-memory bandwidth
constexpr double kMemoryBytes = 18;          // share of DRAM bandwidth per clock
constexpr double kPerAccess = 15.0 / 128;    // per element or packet staged in shared memory
constexpr double kScattered = 0.25;          // per scattered element, in accesses
constexpr double kLeftover = 0.25;           // share of the shorter parts that does not overlap
constexpr double kBarriers = 400;            // per tile: barriers, addresses
constexpr double kWaiting = 1200;            // memory latency per tile without double buffering
constexpr std::int64_t kEnoughWarps = 16;

// Resident CTAs per SM: each of its four partitions has 512 registers per lane, allocated in
// eights.
std::int64_t resident_blocks(std::int64_t registers, std::int64_t warps, std::int64_t shared) {
  std::int64_t blocks = std::min(kMaxBlocks, kSharedOfUnit / (shared + 1024));
  while (blocks > 1 && 512 / ceil_div(blocks * warps, 4) / 8 * 8 < registers) --blocks;
  return std::max<std::int64_t>(blocks, 1);
}

// Bank conflicts of rows of 16 bytes with a pitch of that many units.
std::int64_t conflicts(std::int64_t units) {
  std::int64_t factor = 1;
  while (factor < 8 && units % (factor * 2) == 0) factor *= 2;
  return factor;
}
// Shared-memory clocks to read an MMA operand of 16 rows (or 16 places).
double operand_clocks(const ConvDirectShape& shape, const ConvDirectPatch& patch) {
  if (patch.aligned)
    return 4.0 * static_cast<double>(conflicts(shape.step[1] * patch.pixel / shape.unit()));
  if (shape.kind == ConvDirectShape::Kind::filter && shape.unit() == 8) return 12.0;
  return patch.odd ? 8.0 : 4.0;
}
// Whether copies to shared memory are asynchronous (cp.async), so that they overlap with MMAs.
bool copies_aside(const ConvDirectShape& shape, const PointwiseProgram& program,
                  std::int64_t vector) {
  return shape.channels_last && shape.copies(program) && vector * shape.element_bytes() >= 4;
}
// Factor on MMAs and accumulator registers: 3 with split f32.
std::int64_t product_factor(const ConvDirectShape& shape) { return shape.splits ? 3 : 1; }
// Cost of splitting an operand into two tf32, in MMAs.
constexpr double kSplitting = 4;
double splitting(const ConvDirectShape& shape, double operands) {
  return shape.splits ? operands * kSplitting : 0;
}

// Accesses to fill a patch.
double patch_accesses(const ConvDirectShape& shape, const ConvDirectPatch& patch) {
  if (patch.spans) return static_cast<double>(patch.height * patch.pitch / patch.span);
  const auto elements = static_cast<double>(patch.height * patch.width * patch.channels);
  const auto packets = elements / static_cast<double>(patch.vector);
  return shape.channels_last ? packets : packets + kScattered * elements;
}

// Clocks of one CTA for one tile.
double clocks_of_tile(double products, double shared_bytes, double memory_bytes, double accesses,
                      std::int64_t warps, std::int64_t blocks, bool waits) {
  const double parts[] = {products * kProduct, shared_bytes / kSharedBytesOfCycle,
                          memory_bytes / kMemoryBytes, accesses * kPerAccess};
  double sum = 0, most = 0;
  for (const double part : parts) {
    sum += part;
    most = std::max(most, part);
  }
  const double missing =
      static_cast<double>(std::max<std::int64_t>(kEnoughWarps - warps * blocks, 0)) /
      static_cast<double>(kEnoughWarps);
  return (most + kLeftover * (sum - most)) * (1.0 + 0.5 * missing) +
         (kBarriers + (waits ? kWaiting : 0.0)) / static_cast<double>(blocks);
}

// Tiles of up to `capacity` results, widest first: wide rows are long in memory.
std::vector<ConvDirectShape::Axes> result_tiles(const ConvDirectShape& shape,
                                                std::int64_t capacity) {
  std::set<std::int64_t> widths;
  for (std::int64_t parts = 1; parts <= 16; ++parts)
    widths.insert(std::min(ceil_div(shape.grid[1], parts), capacity));
  for (std::int64_t width = 8; width <= 128; width *= 2)
    widths.insert(std::min({width, capacity, shape.grid[1]}));
  std::vector<ConvDirectShape::Axes> found;
  for (auto w = widths.rbegin(); w != widths.rend(); ++w) {
    const std::int64_t rows = std::min(capacity / *w, shape.grid[0]);
    found.push_back({ceil_div(shape.grid[0], ceil_div(shape.grid[0], rows)), *w});
  }
  return found;
}

// Groups that fill 128 bytes of every pixel; 1 if a group is not a multiple of a unit.
std::int64_t groups_of_block(const ConvDirectShape& shape) {
  if (shape.group_channels() % shape.unit() != 0 || shape.group_count() == 1) return 1;
  std::int64_t groups =
      std::max<std::int64_t>(128 / shape.element_bytes() / shape.group_channels(), 1);
  while (shape.group_count() % groups != 0) --groups;
  return groups;
}

template <class Tile>
std::vector<Tile> best_first(std::vector<Tile> found) {
  std::stable_sort(found.begin(), found.end(),
                   [](const Tile& a, const Tile& b) { return a.clocks < b.clocks; });
  if (found.size() > kMaxConfigs) found.resize(kMaxConfigs);
  return found;
}

// Appends the best `most` of `tiles` to `to`.
template <class Tile>
void keep_best(std::vector<Tile> tiles, std::size_t most, std::vector<Tile>& to) {
  tiles = best_first(std::move(tiles));
  for (const Tile& tile : tiles)
    if (most > 0 && std::find(to.begin(), to.end(), tile) == to.end()) {
      to.push_back(tile);
      --most;
    }
}

}  // namespace

ConvDirectBlock::ConvDirectBlock(const ConvDirectShape& shape, const ConvDirectTile& tile)
    : patch(shape, tile.h, tile.w, tile.groups) {
  warps = tile.warps * (tile.groups / tile.own_groups) * (tile.tiles / tile.own_tiles);
  threads = warps * 32;
  parts = ceil_div(ceil_div(shape.columns(), 8), tile.tiles);
  across = ceil_div(shape.group_count(), tile.groups) * parts;
  patches = copies_aside(shape, shape.source, patch.spans ? patch.span : patch.vector) ? 2 : 1;
  const std::int64_t weights_factor = shape.splits ? 2 : 1;
  const std::int64_t own = tile.own_groups * tile.own_tiles, steps = patch.steps(),
                     held_registers = steps * own * 2 * weights_factor,
                     sums = tile.row_tiles * own * 4 * product_factor(shape),
                     others = (shape.unit() == 8 ? kOtherRegisters : kOtherOfWide) +
                              (patch.aligned && shape.unit() == 8 ? 0 : tile.row_tiles * 2);
  stored = shape.stored();
  if (!shape.channels_last)
    while (tile.w % stored != 0) stored /= 2;
  shuffled = shape.channels_last && tile.own_tiles % 4 == 0 && stored >= 4;
  row_pitch = own * 8 % 16 == 8 ? own * 8 : own * 8 + 8;
  weight_words = steps * tile.groups * tile.tiles * 64 * weights_factor;
  shared_bytes = patches * patch.elements() * shape.element_bytes() + weight_words * 4 +
                 (shuffled ? 0 : warps * 16 * row_pitch * 4);
  const std::int64_t registers =
      round_up(sums + (tile.held ? held_registers : own * 2 * weights_factor) + others, 8);
  blocks_at_once = resident_blocks(registers, warps, shared_bytes);
  const double rows = static_cast<double>(warps * tile.row_tiles),
               operands = static_cast<double>(warps * steps * tile.own_groups);
  const double elements = static_cast<double>(tile.h * tile.w * tile.groups);
  double shared =
      operands *
          (static_cast<double>(tile.row_tiles) * operand_clocks(shape, patch) +
           (tile.held ? 0.0 : static_cast<double>(2 * weights_factor * tile.own_tiles))) *
          kSharedBytesOfCycle +
      static_cast<double>(patch.elements() * shape.element_bytes());
  if (!shuffled) shared += rows * static_cast<double>(16 * row_pitch * 8);
  const double memory =
      elements * static_cast<double>(shape.element_bytes() *
                                     (shape.group_channels() * shape.step[0] * shape.step[1] +
                                      std::min(shape.columns(), tile.tiles * 8)));
  const double stored_accesses =
      elements * static_cast<double>(std::min(shape.columns(), tile.tiles * 8) / stored);
  const auto tiles = static_cast<double>(shape.images * ceil_div(shape.grid[0], tile.h) *
                                         ceil_div(shape.grid[1], tile.w));
  clocks = tiles * static_cast<double>(across) *
           clocks_of_tile(rows * static_cast<double>(own * steps * product_factor(shape)) +
                              splitting(shape, rows * static_cast<double>(tile.own_groups * steps)),
                          shared, memory, patch_accesses(shape, patch) + stored_accesses, warps,
                          blocks_at_once, patches == 1);
}

std::vector<ConvDirectTile> conv_direct_tiles(const ConvDirectShape& shape,
                                              const DeviceProps& device) {
  const std::int64_t all_tiles = ceil_div(shape.columns(), 8);
  const std::int64_t steps = ConvDirectPatch(shape, 1, 1, 1).steps();
  std::vector<ConvDirectTile> found;
  for (const std::int64_t warps : {8, 4})
    for (const std::int64_t row_tiles : {2, 1, 4}) {
      ConvDirectTile tile;
      tile.row_tiles = row_tiles;
      tile.groups = groups_of_block(shape);
      tile.own_tiles = std::min<std::int64_t>(all_tiles, 4);
      if (all_tiles % 4 != 0 && all_tiles > 4)
        tile.own_tiles = all_tiles % 3 == 0 ? 3 : all_tiles % 2 == 0 ? 2 : 4;
      const std::int64_t rounded_tiles = round_up(all_tiles, tile.own_tiles);
      if (tile.groups > 1) {
        tile.tiles = rounded_tiles;
        while (tile.own_groups * 2 * tile.tiles <= 4 && tile.groups % (tile.own_groups * 2) == 0)
          tile.own_groups *= 2;
      } else {
        // The columns of a group over as few CTAs as possible.
        const std::int64_t most = std::min({kMaxWeightBytes / (steps * 256 * tile.own_tiles), warps,
                                            rounded_tiles / tile.own_tiles});
        tile.tiles = std::max<std::int64_t>(most, 1) * tile.own_tiles;
      }
      const std::int64_t across = tile.groups / tile.own_groups * (tile.tiles / tile.own_tiles);
      tile.warps = std::max<std::int64_t>(warps / across, 1);
      const std::int64_t sums = row_tiles * tile.own_groups * tile.own_tiles * 4;
      if (sums * product_factor(shape) > (shape.splits ? kMaxSplitSums : kMaxSumRegisters))
        continue;
      if (tile.warps * across > kMaxWarps) continue;
      for (const bool held : {true, false}) {
        tile.held = held;
        const std::int64_t registers =
            steps * tile.own_groups * tile.own_tiles * (shape.splits ? 4 : 2);
        if (held && (registers > kMaxHeldRegisters || registers + sums > kMaxHeldAndSums)) continue;
        std::vector<ConvDirectTile> areas;
        for (const auto& [h, w] : result_tiles(shape, row_tiles * tile.warps * 16)) {
          tile.h = h;
          tile.w = w;
          const ConvDirectBlock block(shape, tile);
          tile.clocks = block.clocks;
          if (block.shared_bytes <= device.shared_bytes) areas.push_back(tile);
        }
        keep_best(std::move(areas), 2, found);
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
  gradient_vector = packet_length({&shape.result}, static_cast<int>(unit));
  while ((shape.channels_last ? shape.group_results() : tile.w) % gradient_vector != 0)
    gradient_vector /= 2;
  const std::int64_t warps = tile.warps_k * tile.warps_m * (tile.groups / tile.own_groups);
  threads = warps * 32;
  patches = copies_aside(shape, shape.source, patch.spans ? patch.span : patch.vector) ||
                    copies_aside(shape, shape.result, gradient_vector)
                ? 2
                : 1;
  const std::int64_t places = round_up(tile.h * tile.w, unit * 2);
  shared_bytes = patches * (patch.elements() + places * gradient_pixel) * shape.element_bytes();
  parts = ceil_div(ceil_div(shape.columns(), 8), tile.tiles);
  row_parts = ceil_div(row_tiles, tile.own_rows * tile.warps_m);
  across = ceil_div(shape.group_count(), tile.groups) * parts * row_parts;
  sums = across * tile.groups * (tile.warps_m * tile.own_rows * 16) * (tile.tiles * 8);
  const std::int64_t registers =
      round_up(tile.own_groups * tile.own_rows * tile.tiles * 4 * product_factor(shape) +
                   tile.own_rows * 3 + tile.tiles * 3 + kOtherRegisters,
               8);
  blocks_at_once = resident_blocks(registers, warps, shared_bytes);
  const std::int64_t tiles =
      shape.images * ceil_div(shape.grid[0], tile.h) * ceil_div(shape.grid[1], tile.w);
  blocks =
      std::min(tiles, std::max<std::int64_t>(device.compute_units * blocks_at_once / across, 1));
  const double steps =
      static_cast<double>(places / (unit * 2) * warps / tile.warps_k * tile.own_groups);
  const double shared =
      steps *
          (static_cast<double>(tile.own_rows) * operand_clocks(shape, patch) +
           2.0 * static_cast<double>(tile.tiles)) *
          kSharedBytesOfCycle +
      static_cast<double>((patch.elements() + places * gradient_pixel) * shape.element_bytes());
  const double elements = static_cast<double>(tile.h * tile.w * tile.groups);
  const double memory =
      elements * static_cast<double>(
                     shape.element_bytes() *
                     (shape.group_channels() * shape.step[0] * shape.step[1] + tile.tiles * 8));
  const double accesses = patch_accesses(shape, patch) +
                          elements * static_cast<double>(tile.tiles * 8 / gradient_vector);
  clocks =
      static_cast<double>(tiles * across) *
          clocks_of_tile(
              steps * static_cast<double>(tile.own_rows * tile.tiles * product_factor(shape)) +
                  splitting(shape, steps * static_cast<double>(tile.own_rows + tile.tiles / 2)),
              shared, memory, accesses, warps, blocks_at_once, patches == 1) +
      static_cast<double>(pieces(tile) * sums) * 8.0 / kMemoryBytes;
}

std::vector<ConvDirectFilterTile> conv_direct_filter_tiles(const ConvDirectShape& shape,
                                                           const DeviceProps& device) {
  const std::int64_t all_tiles = ceil_div(shape.columns(), 8);
  const std::int64_t row_tiles = ceil_div(ConvDirectPatch(shape, 1, 1, 1).units * shape.unit(), 16);
  std::vector<ConvDirectFilterTile> found;
  for (const std::int64_t max_sums : {kMaxFilterSums, kMaxFilterSums / 2})
    for (const std::int64_t warps : {8, 4})
      for (const std::int64_t capacity : {128, 64, 256}) {
        ConvDirectFilterTile tile;
        tile.groups = groups_of_block(shape);
        tile.tiles = std::min<std::int64_t>(all_tiles, 8);
        if (shape.group_results() % 8 != 0) tile.groups = 1;
        if (shape.splits) tile.tiles = std::min<std::int64_t>(tile.tiles, 4);
        if (tile.tiles < all_tiles) tile.groups = 1;
        const std::int64_t own =
            std::max<std::int64_t>(max_sums / (tile.tiles * 4 * product_factor(shape)), 1);
        tile.warps_m = std::clamp<std::int64_t>(ceil_div(row_tiles, own), 1,
                                                std::max<std::int64_t>(kMaxWarps / tile.groups, 1));
        tile.own_rows = std::min(own, ceil_div(row_tiles, tile.warps_m));
        tile.warps_k = std::max<std::int64_t>(warps / (tile.warps_m * tile.groups), 1);
        std::vector<ConvDirectFilterTile> areas;
        for (const auto& [h, w] : result_tiles(shape, capacity)) {
          tile.h = h;
          tile.w = w;
          const ConvDirectFilterBlock block(shape, tile, device);
          tile.clocks = block.clocks;
          if (block.shared_bytes <= device.shared_bytes) areas.push_back(tile);
        }
        keep_best(std::move(areas), 2, found);
      }
  return best_first(std::move(found));
}

}  // namespace ashlar::cuda

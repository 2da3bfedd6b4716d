// Layouts of products with few rows whose weights the copy engine brings by rows, and what they
// should take: counts of instructions and bytes, per multiprocessor and clock.
#include <algorithm>
#include <cmath>

#include "base/ceil_div.hpp"
#include "cuda/engines/gemm_skinny_shape.hpp"

namespace ashlar::cuda {

namespace {

using Layout = SkinnyLayout;
using Shape = SkinnyShape;

constexpr std::int64_t kPacketBytes = 16, kStepBytes = 4 * kPacketBytes;
constexpr std::int64_t kReserved = 1 << 10;  // of shared memory, for each block
constexpr std::int64_t kMostStages = 8;
constexpr double kClock = 1.75e9;
constexpr double kWarpBytes = 32 * kPacketBytes;  // of a packet of all lanes

std::int64_t chunk_depth(const Shape& shape, const Layout& layout) {
  return layout.chunk * 8 / shape.bits();
}
std::int64_t groups_of_chunk(const Shape& shape, const Layout& layout) {
  return shape.scale_block > 0 ? chunk_depth(shape, layout) / shape.scale_block : 0;
}
std::int64_t scale_bytes(const Shape& shape) {
  return shape.scale_block > 0 ? bit_width(shape.scales().dtype) / 8 : 0;
}
// Steps of a warp in a chunk.
std::int64_t steps_of_chunk(const Layout& layout) {
  return layout.chunk / kStepBytes / layout.warps_k;
}
double as_double(std::int64_t count) { return static_cast<double>(count); }

// Units of 8 depths in a packet, and tiles of 8 rows of x.
double units(const Shape& shape) { return as_double(kPacketBytes * 8 / shape.bits()) / 8; }
double few_tiles(const Shape& shape) { return as_double(ceil_div(shape.few, 8)); }

std::int64_t registers_of(const Shape& shape, const Layout& layout) {
  const std::int64_t few = ceil_div(shape.few, 8);
  const std::int64_t sums = layout.tiles * few * 4 * (shape.scale_block > 0 ? 2 : 1);
  const std::int64_t offset = shape.scale_block > 0 && shape.bits() == 4 ? few * 4 : 0;
  return 64 + sums + offset + 2 * layout.tiles * 4 + few * 4;
}

// Of a warp, for a chunk: what is done to packets, the reading of x (whose pairs are put in the
// order of 4-bit weights), scales, products with the offset of weights; then the walk, and rows
// that are asked for.
double instructions(const Shape& shape, const Layout& layout) {
  const double few = few_tiles(shape), packets = as_double(2 * layout.tiles);
  const bool narrow = shape.bits() == 4, scaled = shape.scale_block > 0;
  const double x = units(shape) * few * (1 + (narrow ? 4 : 0) + (narrow && scaled ? 2 : 0));
  const double scales = scaled ? 2 * few * (narrow ? 2 : 1) + 3 : 0;
  const double step = packets * (instructions_of_packet(shape) + scales) + x + 10;
  const double asked = as_double(layout.rows(shape) + shape.few + groups_of_chunk(shape, layout)) /
                       as_double(layout.warps_n * layout.warps_k);
  return as_double(steps_of_chunk(layout)) * step + 60 + 7 * asked;
}
// Clocks of shared memory, for a chunk of a block: it takes or gives 128 bytes in one.
double shared_clocks(const Shape& shape, const Layout& layout) {
  const double packets = as_double(layout.rows(shape)) * as_double(layout.chunk) / kWarpBytes;
  const double x = units(shape) * few_tiles(shape) / as_double(2 * layout.tiles) *
                   (shape.bits() == 4 ? 2 : 1);  // lanes meet in banks
  return packets * (2 + x) * kWarpBytes / 128;
}

// That make pairs of 16 bits of a packet's numbers.
double conversion(const Shape& shape) {
  const DType dtype = shape.weights.dtype;
  if (bit_width(dtype) == 16) return 4;  // moves
  if (dtype == e4m3) return shape.type == f16 ? 8 : 34;
  if (dtype == e5m2) return 12;
  if (bit_width(dtype) == 8) return 28;
  return dtype == e2m1 ? 76 : shape.scale_block > 0 ? 32 : 46;
}

}  // namespace

double instructions_of_packet(const Shape& shape) {
  return conversion(shape) + 1 + units(shape) * few_tiles(shape);
}

std::int64_t SkinnyLayout::stage_bytes(const Shape& shape) const {
  const std::int64_t pitch = chunk % 128 == 64 ? chunk : chunk + 64;
  const std::int64_t x_pitch = shape.bits() < 16 ? chunk_depth(shape, *this) * 2 + 16 : pitch;
  return rows(shape) * pitch + shape.few * x_pitch +
         groups_of_chunk(shape, *this) * rows(shape) * scale_bytes(shape);
}

bool SkinnyLayout::choose_stages(const Shape& shape, const DeviceProps& device) {
  const std::int64_t room = std::min(device.l1_bytes / blocks - kReserved, device.shared_bytes);
  steps = 0;
  const std::int64_t fixed = shared_bytes(shape);
  steps = 1;
  const std::int64_t each = shared_bytes(shape) - fixed;
  choose_passes(shape, device);
  steps = std::min({(room - fixed) / each, kMostStages, passes * block_rounds(shape)});
  return steps >= std::min<std::int64_t>(3, passes * block_rounds(shape));
}

// Memory gives all its speed to blocks that have enough on the way. Else the limit is what the
// busiest multiprocessor does: instructions, words of shared memory, or rows that its copy engine
// brings. Before that comes the start, after each group of rows its end. Numbers are fitted to
// timings of an H200.
double SkinnyLayout::seconds_by_rows(const Shape& shape, const DeviceProps& device) const {
  constexpr double kEnough = 32 << 10;  // bytes on the way per multiprocessor
  constexpr double kOfMemory = 0.885;   // of the speed that is on its label
  constexpr double kMostIssued = 2.25, kIssuedByWarp = 0.245;  // instructions per clock
  constexpr double kCopyClocks = 4, kCopyBytesPerClock = 37;   // of a row
  constexpr double kChunkClocks = 130;                         // to wait, and to meet
  constexpr double kNorm = 8;
  constexpr double kStart = 6.5e-6, kCluster = 1.2e-6, kPass = 0.8e-6;
  const auto all = as_double(device.compute_units), count = as_double(grid(shape));
  const double of_one = std::ceil(count / all), at_once = std::min(of_one, as_double(blocks));
  const double weights = as_double(shape.many * shape.batches * shape.row_bytes());
  const double chunks = as_double(block_rounds(shape) * passes);
  const double on_the_way = std::min(count, all * at_once) / all *
                            as_double(std::max<std::int64_t>(steps - 1, 1) * rows(shape) * chunk);
  const double memory = weights / (device.bytes_per_second * kOfMemory *
                                   std::sqrt(std::min(1.0, on_the_way / kEnough)));
  const double warps = as_double(warps_n * warps_k);
  const double issue =
      instructions(shape, *this) * warps / std::min(kMostIssued, kIssuedByWarp * warps * at_once);
  const std::int64_t groups = groups_of_chunk(shape, *this);
  const double copies = as_double(rows(shape) + shape.few + groups) * kCopyClocks +
                        as_double(rows(shape) * chunk + shape.few * chunk_depth(shape, *this) * 2 +
                                  groups * rows(shape) * scale_bytes(shape)) /
                            kCopyBytesPerClock;
  const double to_seconds = of_one * chunks / kClock;
  // Nearly the largest; the others show a little.
  double sum = 0;
  for (const double part : {memory, (issue + kChunkClocks / at_once) * to_seconds,
                            shared_clocks(shape, *this) * to_seconds, copies * to_seconds})
    sum += std::pow(part * 1e6, kNorm);
  return std::pow(sum, 1 / kNorm) * 1e-6 + kStart + as_double(passes - 1) * kPass +
         (split > 1 ? as_double(passes) * kCluster : 0);
}

std::vector<SkinnyLayout> layouts_by_rows(const Shape& shape, const DeviceProps& device,
                                          std::size_t most) {
  if (!shape.lies_in_rows(device)) return {};
  FastestLayouts best;  // of those that differ in the number of warps alone
  const auto consider = [&](Layout layout) {
    const std::int64_t warps = layout.warps_n * layout.warps_k;
    if (warps < 4 || warps > 16 || layout.rows(shape) > 512) return;
    const std::int64_t registers = registers_of(shape, layout);
    if (registers > 248 ||
        registers * ceil_div(layout.threads() * layout.blocks, 128) * 128 > (64 << 10))
      return;
    if (layout.rounds(shape) <= (layout.split - 1) * layout.block_rounds(shape)) return;
    if (shape.scale_block > 0 && chunk_depth(shape, layout) % shape.scale_block != 0) return;
    if (layout.chunk > shape.row_bytes() && layout.chunk > kStepBytes * layout.warps_k) return;
    if (!layout.choose_stages(shape, device)) return;
    best.consider({layout.tiles, layout.split, layout.blocks, layout.chunk},
                  layout.seconds(shape, device), layout);
  };
  Layout layout;
  for (layout.tiles = 1; layout.tiles <= 4; layout.tiles *= 2)
    for (layout.warps_k = 1; layout.warps_k <= 16; layout.warps_k *= 2)
      for (layout.warps_n = 1; layout.warps_n * layout.warps_k <= 16; ++layout.warps_n)
        for (layout.split = 1; layout.split <= 2; ++layout.split)
          for (layout.blocks = 1; layout.blocks <= 4; ++layout.blocks)
            for (layout.chunk = std::max<std::int64_t>(256, kStepBytes * layout.warps_k);
                 layout.chunk <= std::min<std::int64_t>(2048, kStepBytes * layout.warps_k * 4);
                 layout.chunk *= 2)
              consider(layout);
  return best.first(most);
}

// Blocks are many and short: the limit is memory, or instructions while enough of them are there at
// once. Its numbers are cautious guesses, so that what was timed comes first; tuning finds it.
double SkinnyLayout::seconds_direct(const Shape& shape, const DeviceProps& device) const {
  constexpr double kEnough = 32 << 10;  // bytes on the way per multiprocessor
  constexpr double kOfMemory = 0.86;
  constexpr double kMostIssued = 1.7, kIssuedByWarp = 0.16;
  constexpr double kStart = 7e-6, kBlock = 0.7e-6;
  const auto all = as_double(device.compute_units), count = as_double(grid(shape));
  const double of_one = std::ceil(count / all), at_once = std::min(of_one, as_double(blocks));
  const double weights = as_double(shape.many * shape.batches * shape.row_bytes());
  const double packets = as_double(rows(shape) * shape.row_bytes()) / kWarpBytes;  // of a block
  const double warps = as_double(warps_n * warps_k);
  const double on_the_way =
      std::min(count, all * at_once) / all * warps * as_double(2 * batch * 2 * tiles) * kWarpBytes;
  const double memory =
      weights / (device.bytes_per_second * kOfMemory * std::min(1.0, on_the_way / kEnough));
  const double few = few_tiles(shape);
  const double x = units(shape) * few * (shape.bits() == 4 ? 6 : 2) / as_double(2 * tiles);
  const double scales = shape.scale_block > 0 ? 14 + 2 * few : 0;
  const double packet = instructions_of_packet(shape) + x + scales + 4;
  const double issue =
      of_one * packets * packet / std::min(kMostIssued, kIssuedByWarp * warps * at_once) / kClock;
  return std::max(memory, issue) + kStart + (std::ceil(of_one / at_once) - 1) * kBlock;
}

std::vector<SkinnyLayout> direct_layouts(const Shape& shape, const DeviceProps& device,
                                         std::size_t most) {
  if (!shape.lies_in_rows(device) || shape.few > 16) return {};
  std::vector<Layout> result;
  Layout layout;
  layout.steps = 1;
  for (layout.tiles = 1; layout.tiles <= 2; ++layout.tiles)
    for (layout.warps_k = 4; layout.warps_k <= 16; layout.warps_k *= 2)
      for (layout.warps_n = 1; layout.warps_n * layout.warps_k <= 16; ++layout.warps_n)
        for (layout.blocks = 1; layout.blocks <= 4; ++layout.blocks)
          for (layout.batch = 2; layout.batch <= 4; layout.batch *= 2) {
            const std::int64_t registers = registers_of(shape, layout) +
                                           4 * layout.batch * 2 * layout.tiles * 4 / 2 +
                                           (shape.scale_block > 0 ? layout.batch * 4 : 0);
            const std::int64_t warps = layout.warps_n * layout.warps_k * layout.blocks;
            if (warps > 32 || registers > 200 || registers * warps * 32 > (64 << 10)) continue;
            if (layout.batch * layout.tiles > 4) continue;
            result.push_back(layout);
          }
  std::stable_sort(result.begin(), result.end(), [&](const Layout& a, const Layout& b) {
    return a.seconds(shape, device) < b.seconds(shape, device);
  });
  if (result.size() > most) result.resize(most);
  return result;
}

}  // namespace ashlar::cuda

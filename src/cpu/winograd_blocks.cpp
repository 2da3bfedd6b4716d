#include "cpu/winograd_blocks.hpp"

#include <algorithm>

#include "cpu/kernels/panel_product.hpp"

namespace ashlar::cpu {

namespace {

double real(std::int64_t n) { return static_cast<double>(n); }

constexpr std::int64_t kFloat = sizeof(float);

// What else could be computed meanwhile, in flops: measured on AVX-512, where a core does 64 flops
// a cycle.
constexpr double kInputFlops = 1000;   // per tile and summed channel of F(4, 3)
constexpr double kOutputFlops = 500;   // per tile and channel of the result of F(4, 3)
constexpr double kFilterFlops = 700;   // per pair of channels of F(4, 3)
constexpr double kFlopsPerL3Byte = 6;  // moved between L2 and the last cache
constexpr double kProductShare = 0.9;  // of peak, reached by the panel product

Config configuration(const Region& region, const WinogradShape& shape, const WinogradBlocks& blocks,
                     const DeviceProps& device) {
  Config config;
  blocks.to_knobs(config);
  config.notes.winograd = static_cast<int>(shape.outputs);
  const double share = real(shape.points()) / 36, tiles = real(shape.tile_count());
  const double depth = real(shape.depth), results = real(shape.results);
  const double products = 2 * real(shape.points()) * tiles * depth *
                          real(round_up(shape.results, kPanelColumnMultiple<float>)) /
                          kProductShare;
  const double transforms = share * (tiles * (kInputFlops * depth + kOutputFlops * results) +
                                     kFilterFlops * depth * results);
  const double u_bytes = real(shape.points() * kFloat) * depth * results;
  const double v_bytes = real(shape.points() * kFloat) * tiles * (depth + results);
  const double block_count = real(divide_up(shape.tile_count(), blocks.tiles));
  // U is written once; it stays in L2 if there is room beside the block.
  double moved = u_bytes;
  if (blocks.shared)
    moved += 2 * v_bytes + u_bytes * block_count;
  else if (u_bytes > real(device.l2_bytes) / 2)
    moved += u_bytes * block_count;
  config.cost.bytes = region.bytes();
  config.cost.flops =
      real(shape.groups) * (products + transforms + kFlopsPerL3Byte * moved) +
      region.epilogue.flops_per_element() * real(element_count(region.epilogue.space));
  return config;
}

// Equal blocks of at most `most` tiles, as many as the threads can share evenly.
std::int64_t even_tiles(std::int64_t tiles, std::int64_t most, std::int64_t groups,
                        std::int64_t threads) {
  std::int64_t count = divide_up(tiles, std::max<std::int64_t>(most, 1));
  if (groups % threads != 0) count = round_up(count, threads);
  return std::max<std::int64_t>(divide_up(tiles, count), 1);
}

}  // namespace

void WinogradBlocks::to_knobs(Config& config) const {
  config.knobs = {{"outputs", outputs},
                  {"tiles", tiles},
                  {"panels", panels},
                  {"shared", shared},
                  {"threads", threads}};
}

WinogradBlocks WinogradBlocks::from_knobs(const Config& config) {
  return {.outputs = config.knob("outputs"),
          .tiles = config.knob("tiles"),
          .panels = config.knob("panels"),
          .shared = config.knob("shared") != 0,
          .threads = config.knob("threads")};
}

std::vector<Config> winograd_configs(const Region& region, const DeviceProps& device) {
  const ConvGeometry geometry(*region.anchor);
  const bool forward = region.anchor_as<ConvForward>() != nullptr;
  const std::int64_t threads = std::max(device.compute_units, 1);
  const std::int64_t panel = 2 * device.vector_bytes / kFloat;
  std::vector<Config> configs;
  for (const std::int64_t outputs : {4, 2}) {
    const WinogradShape shape(geometry, forward, outputs);
    const std::int64_t tile_bytes = shape.points() * kFloat * round_up(shape.depth, 16);
    const std::int64_t panel_bytes = shape.points() * kFloat * panel;
    // Own: the block and the sums of one or two panels take half of L2.
    WinogradBlocks own{.outputs = outputs, .threads = threads};
    own.panels = std::min<std::int64_t>(divide_up(shape.results, panel), 2);
    own.tiles = even_tiles(shape.tile_count(),
                           device.l2_bytes / 2 / (tile_bytes + own.panels * panel_bytes),
                           shape.groups, threads);
    configs.push_back(configuration(region, shape, own, device));
    // Shared: everything, or what takes a third of the last cache.
    WinogradBlocks together{.outputs = outputs, .shared = true, .threads = threads};
    together.panels = divide_up(shape.results, panel);
    together.tiles = even_tiles(shape.tile_count(),
                                device.l3_bytes / 3 / (tile_bytes + together.panels * panel_bytes),
                                threads, threads);
    configs.push_back(configuration(region, shape, together, device));
  }
  std::stable_sort(configs.begin(), configs.end(),
                   [](const Config& a, const Config& b) { return a.cost.flops < b.cost.flops; });
  return configs;
}

}  // namespace ashlar::cpu

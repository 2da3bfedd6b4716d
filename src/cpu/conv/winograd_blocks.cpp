// Support, blocking and cost model of Winograd convolution.
#include "cpu/conv/winograd_blocks.hpp"

#include <algorithm>

#include "cpu/kernels/igemm_micro_kernel.hpp"

namespace ashlar::cpu {

namespace {

double real(std::int64_t n) { return static_cast<double>(n); }

constexpr std::int64_t kFloat = sizeof(float);

// Transform costs in equivalent flops, measured on AVX-512 at 64 flops per core and cycle.
constexpr double kInputFlops = 1000;     // per tile and reduced channel of F(4, 3)
constexpr double kOutputFlops = 600;     // per tile and result channel of F(4, 3)
constexpr double kFilterFlops = 1500;    // per pair of channels of F(4, 3)
constexpr double kFlopsPerL3Byte = 4;    // L2-L3 traffic
constexpr double kGemmEfficiency = 0.9;  // fraction of peak of the GEMM micro-kernel

Config configuration(const Region& region, const WinogradShape& shape, const WinogradBlocks& blocks,
                     const DeviceProps& device) {
  Config config;
  blocks.to_knobs(config);
  config.notes.winograd = static_cast<int>(shape.outputs);
  const double share = real(shape.points()) / 36, tiles = real(shape.tile_count());
  const double k = real(shape.k), results = real(shape.results);
  const std::int64_t panel = panel_columns<float>(device.vector_bytes);
  const std::int64_t panels = divide_up(shape.results, panel);
  const std::int64_t block_count = divide_up(shape.tile_count(), blocks.tiles);
  // Few tiles per block: loads of U dominate.
  const double rows = real(blocks.tiles) / real(divide_up(blocks.tiles, 14));
  const double products = 2 * real(shape.points()) * tiles * k * real(panels * panel) /
                          (kGemmEfficiency * std::min(1.0, rows / 8));
  const double transforms = share * tiles * (kInputFlops * k + kOutputFlops * results);
  const double filter = share * kFilterFlops * k * results;
  const double point_bytes = real(shape.points() * kFloat);
  const double u_bytes = point_bytes * k * results, v_bytes = point_bytes * tiles * k;
  double flops = products + transforms;
  if (blocks.shared) {
    flops += filter * real(block_count) + kFlopsPerL3Byte * v_bytes * real(1 + panels);
    flops *= real(round_up(panels, blocks.threads)) / real(panels);
  } else {
    const bool stays = u_bytes < real(device.l2_bytes) / 2;
    flops += filter + kFlopsPerL3Byte * u_bytes * (stays ? 1.0 : real(2 + block_count));
  }
  // V, M and staging, and U or slices of it.
  const std::int64_t columns = round_up(shape.results, panel), line = 16;
  const std::int64_t v = shape.points() * (blocks.tiles * round_up(shape.k, line) + line);
  const std::int64_t m = shape.points() * (blocks.tiles * panel + line);
  const std::int64_t part = shape.points() * (blocks.k * panel + line);
  const std::int64_t all = shape.groups * shape.points() * (shape.k * columns + panels * line);
  const std::int64_t stage = stage_floats(shape.patch(), shape.outputs, kChannelChunk);
  config.scratch_bytes =
      kFloat * ((blocks.shared ? v + blocks.threads * part : blocks.threads * v + all) +
                blocks.threads * (m + stage) + 2 * shape.groups * round_up(shape.results, line));
  config.cost.bytes = region.bytes();
  config.cost.flops = real(shape.groups) * flops + region.epilogue.flops_per_element() *
                                                       real(element_count(region.epilogue.space));
  return config;
}

// Equal blocks of at most `most` tiles, as many as the threads divide evenly.
std::int64_t even_tiles(std::int64_t tiles, std::int64_t most, std::int64_t groups,
                        std::int64_t threads) {
  std::int64_t count = divide_up(tiles, std::max<std::int64_t>(most, 1));
  if (groups % threads != 0) count = round_up(count, threads);
  return std::max<std::int64_t>(divide_up(tiles, count), 1);
}

}  // namespace

Support winograd_support(const Region& region) {
  const int spatial = region.anchor->outputs[0].dims.rank() - 2;
  if (spatial != 2) return Support::no("{} spatial axes, 2 are supported", spatial);
  for (const View& view : region.anchor->inputs)
    if (view.ragged_offset != kNoTensor) return Support::no("a ragged operand");
  if (region.precision() != f32)
    return Support::no("compute precision {}, f32 is supported", to_string(region.precision()));
  const ConvGeometry geometry(*region.anchor);
  for (std::size_t axis = 1; axis < kMaxSpatial; ++axis) {
    if (geometry.window[axis] != 3)
      return Support::no("a window of {}, 3 is supported", geometry.window[axis]);
    if (geometry.stride[axis] != 1 || geometry.dilation[axis] != 1)
      return Support::no("stride {} and dilation {}, 1 is supported", geometry.stride[axis],
                         geometry.dilation[axis]);
  }
  constexpr std::int64_t kFewest = 16;
  if (geometry.channels < kFewest || geometry.filters < kFewest)
    return Support::no("{} channels and {} filters per group, at least {} of each",
                       geometry.channels, geometry.filters, kFewest);
  for (const View& view : region.anchor->inputs)
    if (view.present() && element_count(view.dims) == 0) return Support::no("an empty input");
  if (element_count(region.epilogue.space) == 0) return Support::no("an empty result");
  return Support::yes();
}

void WinogradBlocks::to_knobs(Config& config) const {
  config.knobs = {
      {"outputs", outputs}, {"tiles", tiles}, {"shared", shared}, {"k", k}, {"threads", threads}};
}

WinogradBlocks WinogradBlocks::from_knobs(const Config& config) {
  return {.outputs = config.knob("outputs"),
          .tiles = config.knob("tiles"),
          .shared = config.knob("shared") != 0,
          .k = config.knob("k"),
          .threads = config.knob("threads")};
}

std::vector<Config> winograd_configs(const Region& region, const DeviceProps& device) {
  const ConvGeometry geometry(*region.anchor);
  const bool forward = region.anchor_as<ConvForward>() != nullptr;
  const std::int64_t threads = std::max(device.compute_units, 1);
  const std::int64_t panel = panel_columns<float>(device.vector_bytes);
  std::vector<Config> configs;
  for (const std::int64_t outputs : {4, 2}) {
    const WinogradShape shape(geometry, forward, outputs);
    const std::int64_t tile_bytes = shape.points() * kFloat * round_up(shape.k, 16);
    const std::int64_t panel_bytes = shape.points() * kFloat * panel;
    const std::int64_t u_bytes = shape.points() * kFloat * shape.k * shape.results;
    // Own: the block of V, the accumulators of a panel and its pixels (source, residual, result)
    // fill three quarters of L2, or what U leaves. Whole register tiles.
    WinogradBlocks own{.outputs = outputs, .threads = threads};
    const std::int64_t room = u_bytes < device.l2_bytes / 2 ? device.l2_bytes * 9 / 10 - u_bytes
                                                            : device.l2_bytes * 3 / 4;
    const std::int64_t pixel_bytes = 3 * outputs * outputs * kFloat * panel;
    const std::int64_t most = room / (tile_bytes + panel_bytes + pixel_bytes);
    own.tiles =
        even_tiles(shape.tile_count(), most < kMaxTileRows ? most : most - most % kMaxTileRows,
                   shape.groups, threads);
    configs.push_back(configuration(region, shape, own, device));
    // Shared: the accumulators of a panel take half of L2, a slice of U a third; the block of V a
    // third of L3.
    WinogradBlocks together{.outputs = outputs, .shared = true, .threads = threads};
    together.k = std::clamp<std::int64_t>(device.l2_bytes / 3 / panel_bytes / 16 * 16, 16,
                                          round_up(std::min<std::int64_t>(shape.k, 256), 16));
    together.tiles =
        even_tiles(shape.tile_count(),
                   std::min(device.l2_bytes / 2 / panel_bytes, device.l3_bytes / 3 / tile_bytes),
                   threads, threads);
    configs.push_back(configuration(region, shape, together, device));
  }
  std::stable_sort(configs.begin(), configs.end(),
                   [](const Config& a, const Config& b) { return a.cost.flops < b.cost.flops; });
  return configs;
}

std::vector<Config> winograd_filter_configs(const Region& region, const DeviceProps& device) {
  const ConvGeometry geometry(*region.anchor);
  const std::int64_t threads = std::max(device.compute_units, 1);
  std::vector<Config> configs;
  for (const std::int64_t outputs : {4, 2}) {
    const std::int64_t points = (outputs + 2) * (outputs + 2);
    const std::int64_t tiles =
        geometry.images * divide_up(geometry.y[1], outputs) * divide_up(geometry.y[2], outputs);
    const std::int64_t columns = round_up(geometry.channels, kPanelColumnMultiple<float>);
    const std::int64_t tile_bytes = points * kFloat * (columns + geometry.filters);
    const double share = real(points) / 36, pairs = real(geometry.channels * geometry.filters);
    const double m_bytes = real(points * kFloat) * pairs;
    const double products =
        2 * real(points) * real(tiles) * real(geometry.filters * columns) / kGemmEfficiency;
    const double transforms =
        share * (real(tiles) * kInputFlops * real(geometry.channels + geometry.filters) +
                 kFilterFlops * pairs);
    for (const bool shared : {true, false}) {
      // Own: transformed x and dy take half of L2, the accumulators the other half. Shared: a third
      // of L3.
      if (!shared && m_bytes > real(device.l2_bytes) / 2) continue;
      WinogradBlocks blocks{.outputs = outputs, .shared = shared, .threads = threads};
      blocks.tiles =
          even_tiles(tiles, (shared ? device.l3_bytes / 3 : device.l2_bytes / 2) / tile_bytes,
                     shared ? threads : 1, threads);
      // Transformed tiles are written and read once, accumulators once per 128 tiles.
      const double moved =
          shared ? 2 * real(tiles) * real(tile_bytes) + 2 * m_bytes * (2 + real(tiles) / 128)
                 : 2 * m_bytes * real(threads);
      Config config;
      blocks.to_knobs(config);
      config.notes.winograd = static_cast<int>(outputs);
      const std::int64_t line = 16, copies = shared ? 1 : threads;
      const std::int64_t rows = columns + round_up(geometry.filters, 2 * line) + 2 * line;
      config.scratch_bytes =
          kFloat * (copies * points * (blocks.tiles * rows + geometry.filters * columns + line) +
                    threads * stage_floats(outputs + 2, outputs, kChannelChunk));
      config.cost.bytes = region.bytes();
      config.cost.flops =
          real(geometry.groups) * (products + transforms + kFlopsPerL3Byte * moved) +
          region.epilogue.flops_per_element() * real(element_count(region.epilogue.space));
      configs.push_back(std::move(config));
    }
  }
  std::stable_sort(configs.begin(), configs.end(),
                   [](const Config& a, const Config& b) { return a.cost.flops < b.cost.flops; });
  return configs;
}

}  // namespace ashlar::cpu

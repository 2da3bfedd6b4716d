#include "cuda/engines/tile_cost.hpp"

#include <algorithm>
#include <cmath>

namespace ashlar::cuda {

namespace {

// Share of the data-sheet bandwidth that a copy reaches: 4.2 of 4.8 TB/s on an H200.
constexpr double kMemoryShare = 0.87;
constexpr double kL2BytesPerCycle = 41;  // per SM, with all SMs loading

// f32 multiply-adds per SM and clock.
double vector_lanes(const DeviceProps& device) {
  return device.compute_capability == 75 || device.compute_capability == 80 ? 64 : 128;
}

// Split-K reduction through DSMEM: bytes per second that a CTA reads from the others, and the time
// of the cluster barriers. Estimates for an H200.
constexpr double kDsmemBytesPerSecond = 25e9, kClusterSyncSeconds = 1.5e-6;
// Stream-K CTAs do not read the same K-blocks at the same time, as those with whole tiles do: the
// share of the speed that remains where L2 holds the operands (0.9 to 0.98 on an H200). And the
// time from a CTA's last store of partials until another can load them.
constexpr double kStreamKShare = 0.95, kFlagSeconds = 1.5e-6;

// Seconds that an SM needs for `blocks` concurrent tiles.
struct Tile {
  double products, loads, stores, fixed;
  // The phases of a tile follow one another; those of other tiles on the same SM overlap, so that
  // `blocks` tiles take the longest phase each, and the others once.
  double of(double blocks) const {
    const double longest = std::max({products, loads, stores});
    const double rest = std::max(products, loads) + stores - longest;
    return blocks * longest + rest + fixed;
  }
};

}  // namespace

double tensor_rate(const DeviceProps& device, DType operands) {
  const int capability = device.compute_capability;
  const double f16_rate = device.flops_f16;
  switch (operands) {
    case DType::f16: return f16_rate;
    case DType::bf16: return capability >= 80 ? f16_rate : 0;
    case DType::f32: return capability >= 80 ? f16_rate / 2 : 0;
    case DType::e4m3:
    case DType::e5m2: return capability >= 89 ? 2 * f16_rate : 0;
    case DType::i8:
    case DType::u8: return 2 * f16_rate;
    // As fast as f32 on CUDA cores on the large chips, negligible on the others.
    case DType::f64: return capability == 80 || capability == 90 ? device.flops_f32 : 0;
    default: return 0;
  }
}

double l2_bytes_per_second(const DeviceProps& device) {
  return device.flops_f32 / (2 * vector_lanes(device)) * kL2BytesPerCycle;
}

int cluster_sms(const DeviceProps& device, int cluster) {
  // A cluster runs within one GPC, and the number of SMs per GPC differs from chip to chip. On an
  // H200 with 132 SMs, 112 CTAs in clusters of 4 or 8 ran at once and 128 did not: what GPCs of 14
  // to 18 SMs have room for.
  constexpr int kGroup = 16;
  int units = device.compute_units;
  if (cluster > 2 && units >= kGroup) units = units * (cluster == 4 ? 30 : 28) / 33;
  return units / cluster * cluster;
}

Cost tile_cost(const TileWork& work, const DeviceProps& device, DType precision) {
  const TileCalibration& known =
      tile_calibration(work.engine, work.operands, work.tile_m, work.tile_n, work.variant);
  const int cluster = std::max({work.cluster, work.splits, 1});
  const int most = std::max(work.blocks_per_sm, 1);
  // SMs that do not make up another cluster stay idle.
  const double units = std::max(cluster_sms(device, cluster), 1);
  const double of_unit = 1.0 / device.compute_units;
  const double rate = std::max(tensor_rate(device, work.operands), device.flops_f32);
  const Tile tile{.products = work.flops / (rate * of_unit * known.efficiency * work.efficiency),
                  .loads = work.load_bytes / (l2_bytes_per_second(device) * of_unit),
                  .stores = work.store_bytes / (device.bytes_per_second * kMemoryShare * of_unit),
                  .fixed = known.tile_seconds};

  double busy = 0;
  if (work.persistent) {
    // Every persistent CTA processes several tiles; only the last epilogue overlaps with nothing.
    const double waves = std::ceil(work.tiles / (units * most));
    busy = waves * most * std::max({tile.products, tile.loads, tile.stores}) + tile.stores +
           tile.fixed;
  } else {
    const double waves = std::floor(work.tiles / (units * most));
    const double rest = std::ceil((work.tiles - waves * units * most) / units);
    busy = waves * tile.of(most) + (rest > 0 ? tile.of(rest) : 0);
  }
  const double sum_bytes = 4.0 * work.tile_m * work.tile_n;
  if (work.streams) {
    const double waves = work.split_tiles / units;
    // The CTA that finishes a tile reads the partials of all others; most CTAs store some.
    const double moved = sum_bytes * (1 + std::ceil(1 / waves));
    const double longest =
        std::max({tile.products, tile.loads, work.persistent ? tile.stores : 0.0});
    busy += waves * longest / kStreamKShare +
            (work.persistent ? 0 : std::ceil(waves) * (tile.stores + tile.fixed)) +
            moved / (l2_bytes_per_second(device) * of_unit) + kFlagSeconds;
  } else if (work.split_tiles > 0) {
    busy += (std::max(tile.products, tile.loads) + tile.stores) / work.splits +
            kClusterSyncSeconds +
            sum_bytes * (work.splits - 1) / work.splits / kDsmemBytesPerSecond +
            (work.persistent ? 0 : tile.fixed);
  }
  const double memory = work.memory_bytes / (device.bytes_per_second * kMemoryShare);
  const double seconds = std::max(busy, memory) + (1 - known.hidden) * std::min(busy, memory) +
                         (work.launches - 1) * device.launch_seconds;

  const double peak = precision == f64 ? device.flops_f32 / 2 : device.flops_f32;
  Cost cost;
  cost.flops = std::max((work.tiles + work.split_tiles) * work.flops, 1.0);
  cost.bytes = work.memory_bytes;
  cost.flops_fraction = cost.flops / (peak * seconds);
  return cost;
}

void sort_by_cost(std::vector<Config>& configs, const DeviceProps& device, DType precision) {
  std::stable_sort(configs.begin(), configs.end(), [&](const Config& a, const Config& b) {
    return a.cost.seconds(device, precision) < b.cost.seconds(device, precision);
  });
}

}  // namespace ashlar::cuda

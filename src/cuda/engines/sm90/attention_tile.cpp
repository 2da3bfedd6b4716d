#include "cuda/engines/sm90/attention_tile.hpp"

#include <algorithm>

#include "base/ceil_div.hpp"
#include "cuda/engines/tile_cost.hpp"

namespace ashlar::cuda {

namespace {

constexpr std::int64_t kElementBytes = 2;

std::int64_t operand_bytes(const AttentionProblem& problem) {  // per row of K and V
  return kElementBytes * (padded_head_dim(problem.head_dim) + padded_head_dim(problem.value_dim));
}

// Keys of a block by the accumulators of O: S, P and O share 240 registers of a thread.
std::vector<int> keys_of_block(std::int64_t value_dim, bool is_masked) {
  if (value_dim > 192) return {80, 64};
  if (value_dim > 128) return {112, 96};
  // Wide blocks waste more of the scores at the edge of a mask.
  return is_masked ? std::vector<int>{128, 176} : std::vector<int>{176, 128};
}

}  // namespace

std::int64_t padded_head_dim(std::int64_t head_dim) {
  constexpr std::int64_t kColumns = 32;
  return ceil_div(head_dim, kColumns) * kColumns;
}

std::int64_t box_columns(std::int64_t padded) { return padded % 64 == 0 ? 64 : 32; }

std::int64_t shared_bytes(const AttentionProblem& problem, const AttentionTile90& tile) {
  constexpr std::int64_t kBarriers = 256, kAlignment = 1024;
  return tile.m * kElementBytes * padded_head_dim(problem.head_dim) +
         tile.stages * tile.n * operand_bytes(problem) + kBarriers + kAlignment;
}

std::vector<AttentionTile90> attention_tiles(const AttentionProblem& problem,
                                             const DeviceProps& device) {
  const std::int64_t value_dim = padded_head_dim(problem.value_dim);
  const bool is_masked = problem.has_bounds() || problem.has_lengths();
  std::vector<AttentionTile90> result;
  const auto add = [&](AttentionTile90 tile) {
    constexpr int kMaxStages = 4;
    tile.stages = kMaxStages;
    while (tile.stages > 0 && shared_bytes(problem, tile) > device.shared_bytes) --tile.stages;
    if (tile.stages < 2) return;
    const std::int64_t tiles = ceil_div(problem.queries, tile.m) * problem.batch * problem.heads;
    tile.dynamic = is_masked && tiles > device.compute_units;
    result.push_back(tile);
    if (!tile.dynamic || !tile.ping_pong) return;
    tile.dynamic = false;
    result.push_back(tile);
  };
  // Three consumer warpgroups have 160 registers per thread.
  if (value_dim <= 64) {
    add({.m = 192, .n = 128});
    add({.m = 192, .n = 128, .ping_pong = false});
  }
  for (const int n : keys_of_block(value_dim, is_masked)) {
    add({.m = 128, .n = n});
    add({.m = 128, .n = n, .ping_pong = false});
  }
  return result;
}

double attention_seconds(const AttentionProblem& problem, const AttentionTile90& tile, double bytes,
                         const DeviceProps& device) {
  // Estimates, not measured: the shares of the tensor cores' and of the bandwidth's peak that are
  // reached, and of the exponentials', which three warpgroups hide better; cycles that are lost
  // between tiles and between blocks of keys.
  constexpr double kShare = 0.72, kMemoryShare = 0.87, kTileCycles = 2000, kBlockCycles = 120;
  constexpr double kResetSeconds = 1e-6;
  const double exponential_share = tile.consumers() > 2 ? 0.72 : 0.64;
  constexpr double kFlopsPerCycle = 4096, kExponentialsPerCycle = 16, kSharedBytesPerCycle = 128;
  const double units = device.compute_units;
  const double clock = tensor_rate(device, problem.q.dtype) / units / kFlopsPerCycle;
  const auto m = static_cast<double>(tile.m), n = static_cast<double>(tile.n);
  const auto qk = static_cast<double>(padded_head_dim(problem.head_dim)),
             pv = static_cast<double>(padded_head_dim(problem.value_dim));
  // Cycles per block of keys: tensor cores, exponentials, shared memory read by wgmma (Q and K of
  // every warpgroup, V).
  const double groups = tile.consumers();
  const double tensor = 2 * m * n * (qk + pv) / kFlopsPerCycle;
  const double exponentials = m * n / kExponentialsPerCycle;
  const double shared = kElementBytes * (m * qk + groups * n * (qk + pv)) / kSharedBytesPerCycle;
  const double step =
      std::max({tensor / kShare, exponentials / exponential_share, shared / kShare}) + kBlockCycles;

  const auto tiles = static_cast<double>(ceil_div(problem.queries, tile.m)) *
                     static_cast<double>(problem.batch * problem.heads);
  const double blocks = problem.visited_blocks(tile.m, tile.n);
  const double of_tile = blocks / tiles * step + kTileCycles;
  // With masks the longest tiles come first and the shortest last.
  const double waves = tile.dynamic           ? tiles / units + 0.1
                       : problem.has_bounds() ? std::max(tiles / units, 1.0) + 0.5
                                              : std::ceil(tiles / units);
  const double compute = waves * of_tile / clock + (tile.dynamic ? kResetSeconds : 0);
  return std::max(compute, bytes / (device.bytes_per_second * kMemoryShare));
}

std::vector<std::pair<std::string, std::int64_t>> knobs_of(const AttentionTile90& tile) {
  return {{"m", tile.m},
          {"n", tile.n},
          {"stages", tile.stages},
          {"ping_pong", tile.ping_pong},
          {"dynamic", tile.dynamic}};
}

AttentionTile90 attention_tile_of(const Config& config) {
  const auto knob = [&](const char* name) { return static_cast<int>(config.knob(name)); };
  return {.m = knob("m"),
          .n = knob("n"),
          .stages = knob("stages"),
          .ping_pong = knob("ping_pong") != 0,
          .dynamic = knob("dynamic") != 0};
}

}  // namespace ashlar::cuda

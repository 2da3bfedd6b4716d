#include "cuda/engines/sm90/attention_backward_tile.hpp"

#include <algorithm>

#include "base/ceil_div.hpp"
#include "cuda/engines/tile_cost.hpp"

namespace ashlar::cuda {

namespace {

using BackwardTile = AttentionBackwardTile90;

constexpr std::int64_t kOperandBytes = 2, kSumBytes = 4;

std::int64_t row_tiles(const AttentionBackwardProblem& problem, const BackwardTile& tile) {
  return ceil_div(problem.queries, std::int64_t{tile.m}) * problem.batch * problem.heads;
}

}  // namespace

std::int64_t padded_head_dim(const AttentionBackwardProblem& problem) {
  return std::max(problem.head_dim, problem.value_dim) <= 64 ? 64 : 128;
}

std::int64_t shared_bytes(const AttentionBackwardProblem& problem, const BackwardTile& tile) {
  constexpr std::int64_t kBarriers = 256, kAlignment = 1024;
  const std::int64_t row_bytes = kOperandBytes * padded_head_dim(problem);
  return 2 * BackwardTile::n * row_bytes + tile.stages * 2 * tile.m * (row_bytes + kSumBytes) +
         2 * BackwardTile::n * tile.m * kOperandBytes + kBarriers + kAlignment;
}

std::vector<BackwardTile> attention_tiles(const AttentionBackwardProblem& problem,
                                          const DeviceProps& device) {
  std::vector<BackwardTile> result;
  for (const int stages : {2, 3}) {
    // S, dP, dK and dV have 192 registers of a thread.
    const BackwardTile tile{.m = padded_head_dim(problem) > 64 ? 64 : 128, .stages = stages};
    if (shared_bytes(problem, tile) <= device.shared_bytes) result.push_back(tile);
  }
  return result;
}

double attention_seconds(const AttentionBackwardProblem& problem, const BackwardTile& tile,
                         double bytes, const DeviceProps& device) {
  // Estimates, not measured: the shares of the tensor cores' and of the bandwidth's peak that are
  // reached; cycles that are lost per tile of keys and per block of rows; seconds per launch.
  constexpr double kShare = 0.72, kMemoryShare = 0.87, kTileCycles = 6000, kBlockCycles = 300,
                   kLaunchSeconds = 2e-6;
  constexpr double kFlopsPerCycle = 4096, kExponentialsPerCycle = 16, kSharedBytesPerCycle = 128;
  const double units = device.compute_units;
  const double clock = tensor_rate(device, problem.q.dtype) / units / kFlopsPerCycle;
  const auto m = static_cast<double>(tile.m), n = static_cast<double>(BackwardTile::n),
             d = static_cast<double>(padded_head_dim(problem));
  // Cycles per block: five products; shared memory read by wgmma, written by TMA and as dS.
  const double tensor = 10 * m * n * d / kFlopsPerCycle;
  const double exponentials = m * n / kExponentialsPerCycle;
  const double groups = 2;
  const double read = 2 * (n * d + groups * m * d) + 2 * groups * m * d +
                      (m > 64 ? m * n + groups * n * d : groups * m * n + n * d);
  const double shared = kOperandBytes * (read + 2 * m * d + m * n) / kSharedBytesPerCycle;
  const double step = std::max({tensor, exponentials, shared}) / kShare + kBlockCycles;
  const auto tiles = static_cast<double>(ceil_div(problem.keys, std::int64_t{BackwardTile::n})) *
                     static_cast<double>(problem.batch * problem.key_heads);
  const double of_tile =
      problem.visited_blocks(tile.m, BackwardTile::n) / tiles * step + kTileCycles;
  // With masks the longest tiles come first and the shortest last.
  const double waves =
      problem.has_bounds() ? std::max(tiles / units, 1.0) + 0.3 : std::ceil(tiles / units);
  const BackwardScratch scratch = scratch_of(problem, tile);
  // Cleared, and read by the last launch; the additions overlap with the products.
  const double moved = 2.0 * static_cast<double>(scratch.d_q);
  const double bandwidth = device.bytes_per_second * kMemoryShare;
  return std::max(waves * of_tile / clock, bytes / bandwidth) + moved / bandwidth +
         2 * kLaunchSeconds;
}

BackwardScratch scratch_of(const AttentionBackwardProblem& problem, const BackwardTile& tile) {
  const std::int64_t rows = row_tiles(problem, tile) * tile.m;
  return {.d_q = rows * padded_head_dim(problem) * kSumBytes, .row_values = rows * kSumBytes};
}

std::vector<std::pair<std::string, std::int64_t>> knobs_of(const BackwardTile& tile) {
  return {{"m", tile.m}, {"stages", tile.stages}};
}

BackwardTile attention_backward_tile_of(const Config& config) {
  const auto knob = [&](const char* name) { return static_cast<int>(config.knob(name)); };
  return {.m = knob("m"), .stages = knob("stages")};
}

}  // namespace ashlar::cuda

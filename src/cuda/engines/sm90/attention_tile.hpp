// Tile configurations of fused attention on Hopper (kernels/sm90/attention_forward.cuh).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cuda/engines/attention_problem.hpp"
#include "plan/engine.hpp"

namespace ashlar::cuda {

struct AttentionTile90 {
  int m = 128, n = 128;  // query rows and keys
  int stages = 2;        // of K and of V
  // Consumer warpgroups issue their wgmma in turn.
  bool ping_pong = true;
  // CTAs take tiles from a counter: where tiles differ in length and an SM has several.
  bool dynamic = false;

  int consumers() const { return m / 64; }
};

inline constexpr std::int64_t kMaxHeadDim90 = 256;

// Head dims in shared memory: multiples of 32, the rest is zero.
std::int64_t padded_head_dim(std::int64_t head_dim);
// Columns of a TMA box, whose rows are one swizzle period: 64, or 32 where that divides only.
std::int64_t box_columns(std::int64_t padded);

// Candidates that fit shared memory, the expected best one first.
std::vector<AttentionTile90> attention_tiles(const AttentionProblem& problem,
                                             const DeviceProps& device);
std::int64_t shared_bytes(const AttentionProblem& problem, const AttentionTile90& tile);
// Estimated seconds of the kernel.
double attention_seconds(const AttentionProblem& problem, const AttentionTile90& tile, double bytes,
                         const DeviceProps& device);

std::vector<std::pair<std::string, std::int64_t>> knobs_of(const AttentionTile90& tile);
AttentionTile90 attention_tile_of(const Config& config);

}  // namespace ashlar::cuda

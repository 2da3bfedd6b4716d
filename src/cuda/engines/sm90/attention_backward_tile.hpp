// Tile configurations of the backward pass of fused attention on Hopper
// (kernels/sm90/attention_backward.cuh).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cuda/engines/attention_problem.hpp"
#include "plan/engine.hpp"

namespace ashlar::cuda {

struct AttentionBackwardTile90 {
  int m = 64;      // query rows of a block
  int stages = 2;  // of Q and of dO

  static constexpr int n = 128;  // keys of a CTA
};

inline constexpr std::int64_t kMaxBackwardHeadDim90 = 128;

// Both head dims in shared memory: 64 or 128, the rest is zero.
std::int64_t padded_head_dim(const AttentionBackwardProblem& problem);

// Candidates that fit shared memory, the expected best one first.
std::vector<AttentionBackwardTile90> attention_tiles(const AttentionBackwardProblem& problem,
                                                     const DeviceProps& device);
std::int64_t shared_bytes(const AttentionBackwardProblem& problem,
                          const AttentionBackwardTile90& tile);
// Estimated seconds of the three launches.
double attention_seconds(const AttentionBackwardProblem& problem,
                         const AttentionBackwardTile90& tile, double bytes,
                         const DeviceProps& device);

// Bytes of the f32 sums of dQ, and of one number per row.
struct BackwardScratch {
  std::int64_t d_q, row_values;
};
BackwardScratch scratch_of(const AttentionBackwardProblem& problem,
                           const AttentionBackwardTile90& tile);

std::vector<std::pair<std::string, std::int64_t>> knobs_of(const AttentionBackwardTile90& tile);
AttentionBackwardTile90 attention_backward_tile_of(const Config& config);

}  // namespace ashlar::cuda

// Tail reductions: sums, minima and maxima of epilogue values, fused into the region of a GEMM.
#pragma once

#include "plan/lowered.hpp"
#include "plan/program_builder.hpp"
#include "plan/region.hpp"

namespace ashlar {

// Maximum per region; gen_stats counts as two.
inline constexpr std::size_t kMaxTailReductions = 4;

// Whether the node is an f32 reduction that epilogue steps and TailReduction::finish can express.
bool can_be_tail(const Node& node);
std::size_t tail_count(const Node& node);

// Whether the operation is a GEMM with engines that may support tail reductions.
bool may_have_tails(const Op& op);

// Turns the node into steps of the epilogue and entries of `reductions`.
void add_tail(const LoweredGraph& lowered, const Node& node, ProgramBuilder& epilogue,
              std::vector<TailReduction>& reductions);

}  // namespace ashlar

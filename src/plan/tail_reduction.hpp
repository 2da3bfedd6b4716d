// Tail reductions: sums, minima and maxima of epilogue values, fused into the region of a GEMM.
#pragma once

#include "graph/op_traits.hpp"
#include "plan/lowered.hpp"
#include "plan/program_builder.hpp"
#include "plan/region.hpp"

namespace ashlar {

// Maximum per region; gen_stats counts as two.
inline constexpr std::size_t kMaxTailReductions = 4;

// The node, if it computes in f32, as reductions that epilogue steps and TailReduction::finish can
// express; empty if it is none.
std::vector<TailPart> tail_parts(const Node& node);

// Turns the node into steps of the epilogue and entries of `reductions`.
void add_tail(const LoweredGraph& lowered, const Node& node, ProgramBuilder& epilogue,
              std::vector<TailReduction>& reductions);

}  // namespace ashlar

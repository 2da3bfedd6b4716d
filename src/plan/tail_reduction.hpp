// Reductions that end the region of a product: sums and maxima of what its epilogue computes.
#pragma once

#include "plan/lowered.hpp"
#include "plan/program_builder.hpp"
#include "plan/region.hpp"

namespace ashlar {

// Of a region; gen_stats is two.
inline constexpr std::size_t kMaxTailReductions = 4;

// Whether it is a reduction in f32 whose steps an epilogue and TailReduction::finish can express.
bool can_be_tail(const Node& node);
std::size_t tail_count(const Node& node);

// Products whose engines may know how to reduce what they compute.
bool may_have_tails(const Op& op);

// The node becomes steps of the epilogue and entries of `reductions`.
void add_tail(const LoweredGraph& lowered, const Node& node, ProgramBuilder& epilogue,
              std::vector<TailReduction>& reductions);

}  // namespace ashlar

// The order in which the regions of a plan run.
#pragma once

#include <utility>
#include <vector>

#include "plan/lowered.hpp"
#include "plan/region.hpp"

namespace ashlar {

// Orders `regions` so that each runs after those whose results it reads. Of the regions that could
// run next, one that frees more memory of intermediates than it needs comes first; otherwise the
// one with the smallest position. A step that consumes a large gradient then follows the one that
// computes it, and nothing is computed long before it is read. `positions`: by region. Of each of
// `constraints`, the first region runs before the second.
std::vector<Region> in_execution_order(const LoweredGraph& lowered, std::vector<Region> regions,
                                       const std::vector<NodeId>& positions,
                                       const std::vector<std::pair<int, int>>& constraints = {});

}  // namespace ashlar

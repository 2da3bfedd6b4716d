// Cutting a lowered graph into regions.
#pragma once

#include <string>
#include <vector>

#include "plan/lowered.hpp"
#include "plan/region.hpp"

namespace ashlar {

// Which fusions an anchor may have; by node. The planner narrows this when no fast engine takes a
// region.
struct FusionLimits {
  bool prologue = true;
  bool epilogue = true;
  // Whether BlockScaleDequantize may become steps of a prologue: programs then have Step::blocks.
  bool dequantize = false;
  // Whether this node, a reduction, may end the region of the product it reduces the result of.
  bool tail = false;
  // Why the planner narrowed this, for explain().
  std::string reason = {};
};

// Regions in execution order. Every node of the graph is in exactly one.
std::vector<Region> partition(const LoweredGraph& lowered, const std::vector<FusionLimits>& limits);

// A value that passes through memory although pointwise work makes or reads it, and why.
struct FusionBoundary {
  NodeId from, to;
  TensorId value;
  std::string reason;
};
// Of the regions that cut() makes; one for each two of them.
std::vector<FusionBoundary> fusion_boundaries(const LoweredGraph& lowered,
                                              const std::vector<FusionLimits>& limits);

}  // namespace ashlar

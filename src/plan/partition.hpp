// Partitioning a lowered graph into fusion regions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "plan/dependencies.hpp"
#include "plan/lowered.hpp"
#include "plan/region.hpp"

namespace ashlar {

// The fusions allowed for an anchor, by node. The planner narrows them if no specialised engine
// supports the fused region.
struct FusionLimits {
  bool prologue = true;
  bool epilogue = true;
  // Whether BlockScaleDequantize may be fused into a prologue, whose program then has Step::blocks.
  bool dequantize = false;
  // Whether this node, a reduction, may be fused behind the epilogue of the GEMM it reduces.
  bool tail = false;
  // Why the planner narrowed this, for explain().
  std::string reason = {};
};

// The regions in execution order. Every node of the graph is in exactly one region.
std::vector<Region> partition(const LoweredGraph& lowered, const std::vector<FusionLimits>& limits);
std::vector<Region> partition(const LoweredGraph& lowered, const Dependencies& dependencies,
                              const std::vector<FusionLimits>& limits);
// The regions of a few nodes, given in ascending order, as if all others were regions of their own:
// what other limits would give there, without partitioning the whole graph again. In no order.
std::vector<Region> partition_window(const LoweredGraph& lowered, const Dependencies& dependencies,
                                     const std::vector<FusionLimits>& limits,
                                     std::span<const NodeId> window);

// A value that passes through memory between two regions although its producer or reader is a
// pointwise operation, and the reason why it was not fused.
struct FusionBoundary {
  NodeId from, to;
  TensorId value;
  std::string reason;
};
// The boundaries between the regions that partition() returns, at most one per pair of regions.
std::vector<FusionBoundary> fusion_boundaries(const LoweredGraph& lowered,
                                              const std::vector<FusionLimits>& limits);

}  // namespace ashlar

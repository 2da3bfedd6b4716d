// The reasons why values between regions were not fused.
#include <algorithm>
#include <map>

#include "graph/op_traits.hpp"
#include "plan/partition_groups.hpp"

namespace ashlar {

namespace {

// Why `to`, which could be a step of a program, is not in the epilogue of the producer of `value`.
std::string why_not_epilogue(const PartitionGroups& groups, TensorId value, NodeId from,
                             NodeId to) {
  const int g = groups.group_of(from);
  const NodeId anchor = groups.group(g).anchor;
  if (anchor != kNoNode && !groups.limits(anchor).epilogue) return groups.limits(anchor).reason;
  if (!groups.limits(to).epilogue) return groups.limits(to).reason;
  if (groups.producer_of(value) == kNoNode) return "it is read through a view";
  if (!groups.is_value_of(g, value)) return "it is not the operation's first output";
  if (groups.view(value).ragged_offset != kNoTensor) return "it is ragged";
  if (const char* obstacle = groups.epilogue_obstacle(g, to)) return obstacle;
  return "its reader is in the epilogue of another kernel";
}

// Why `from`, which could be a step of a program, is not in a prologue of `to`.
std::string why_not_prologue(const PartitionGroups& groups, TensorId value, NodeId from,
                             NodeId to) {
  // Nodes in the epilogue of one kernel cannot be in the prologue of another.
  if (groups.group(groups.group_of(from)).anchor != kNoNode) return {};
  const Node& node = groups.node(to);
  const auto slot = static_cast<int>(std::find(node.inputs.begin(), node.inputs.end(), value) -
                                     node.inputs.begin());
  const OpTraits& traits = traits_of(node.op);
  if (!traits.fused_inputs.contains(slot))
    return "this input is read from memory without a prologue";
  if (!groups.limits(to).prologue) return groups.limits(to).reason;
  if (const char* obstacle = groups.prologue_obstacle(to, to, value, groups.tensor(value).dims, {},
                                                      traits.stores(node.op, slot)))
    return obstacle;
  return traits.rereads_inputs ? "it would be recomputed for every window" : "";
}

}  // namespace

std::vector<FusionBoundary> fusion_boundaries(const LoweredGraph& lowered,
                                              const std::vector<FusionLimits>& limits) {
  const Dependencies dependencies(lowered);
  const PartitionGroups groups = grow_groups(lowered, dependencies, limits);
  std::vector<FusionBoundary> found;
  std::set<std::pair<int, int>> told;
  for (std::size_t i = 0; i < lowered.graph.nodes().size(); ++i) {
    const auto to = static_cast<NodeId>(i);
    for (const TensorId value : groups.dependencies().reads(to)) {
      const NodeId from = groups.dependencies().writer(value);
      if (from == kNoNode || groups.group_of(from) == groups.group_of(to)) continue;
      std::string reason;
      if (groups.is_program_step(to))
        reason = why_not_epilogue(groups, value, from, to);
      else if (groups.is_program_step(from))
        reason = why_not_prologue(groups, value, from, to);
      if (reason.empty() || !told.insert({groups.group_of(from), groups.group_of(to)}).second)
        continue;
      found.push_back({from, to, value, std::move(reason)});
    }
  }
  return found;
}

}  // namespace ashlar

// Groups of nodes under construction that become regions, and the rules for joining a group.
#pragma once

#include <set>

#include "plan/dependencies.hpp"
#include "plan/partition.hpp"

namespace ashlar {

class PartitionGroups {
 public:
  // The nodes of one future region. Pointwise nodes of a group with an anchor are either in the
  // prologue of one input slot or in the epilogue.
  struct Group {
    NodeId anchor = kNoNode;
    std::set<NodeId> after;
    std::vector<std::pair<int, std::set<NodeId>>> before;  // input slot, its nodes
    Dims space;
    std::set<NodeId> tails = {};  // reductions of values of the epilogue
  };

  // `dependencies` and `limits` outlive the groups.
  PartitionGroups(const LoweredGraph& lowered, const Dependencies& dependencies,
                  const std::vector<FusionLimits>& limits);

  const Node& node(NodeId id) const { return nodes_[static_cast<std::size_t>(id)]; }
  const Tensor& tensor(TensorId id) const { return lowered_.graph.tensor(id); }
  const View& view(TensorId id) const { return lowered_.views[static_cast<std::size_t>(id)]; }
  const Dependencies& dependencies() const { return dependencies_; }
  const FusionLimits& limits(NodeId id) const { return limits_[static_cast<std::size_t>(id)]; }
  // kNoGroup: none yet; kOutside: not in the window that is partitioned.
  static constexpr int kNoGroup = -1, kOutside = -2;
  int group_of(NodeId id) const { return group_of_[static_cast<std::size_t>(id)]; }
  const Group& group(int g) const { return groups_[static_cast<std::size_t>(g)]; }
  // The node that computes tensor `id` itself; kNoNode if `id` is a view of other memory.
  NodeId producer_of(TensorId id) const;

  bool is_pointwise(NodeId id) const { return std::holds_alternative<Pointwise>(node(id).op); }
  // An rng node read only by pointwise nodes of the same shape becomes a step of their program.
  bool is_random_step(NodeId id) const;
  // Dropout may be fused into the epilogue of its producer; otherwise it is an anchor.
  bool is_dropout(NodeId id) const;
  // Dequantisation may be fused into the prologue of the GEMM that reads it; otherwise it is an
  // anchor.
  bool is_dequantization(NodeId id) const;
  bool is_program_step(NodeId id) const {
    return is_pointwise(id) || is_random_step(id) || is_dropout(id) || is_dequantization(id);
  }
  // A reduction of a GEMM result after its epilogue.
  bool is_tail(NodeId id) const;
  // `id` is a value the epilogue holds in a register.
  bool is_value_of(int g, TensorId id) const;

  // The node that the group grew from.
  static NodeId seed_of(const Group& group) {
    return group.anchor != kNoNode ? group.anchor : *group.after.begin();
  }
  // `id` is computed again for late readers: the group must not compute it early.
  bool runs_later(int g, NodeId id) const;

  // Why the rules forbid `id` in the epilogue of the group; null if they allow it.
  const char* epilogue_obstacle(int g, NodeId id) const;
  // The same for the producer of `input` in a prologue of `anchor` over `space`. `reader` is the
  // node that reads `input`, `nodes` are the nodes already in the prologue.
  const char* prologue_obstacle(NodeId anchor, NodeId reader, TensorId input, const Dims& space,
                                const std::set<NodeId>& nodes, bool may_be_output) const;

 protected:
  bool is_free(NodeId id) const;
  // Makes the node a member of the group; the caller adds it to the group's own sets.
  void assign(NodeId id, int g);
  template <class Visit>
  static void for_each_node(const Group& group, Visit&& visit) {
    if (group.anchor != kNoNode) visit(group.anchor);
    for (const auto& [slot, nodes] : group.before)
      for (NodeId id : nodes) visit(id);
    for (NodeId id : group.after) visit(id);
    for (NodeId id : group.tails) visit(id);
  }

  const LoweredGraph& lowered_;
  const std::vector<Node>& nodes_;
  const Dependencies& dependencies_;
  const std::vector<FusionLimits>& limits_;
  std::vector<int> group_of_;
  std::vector<Group> groups_;
  // First and last node of every group, and by position the number of groups that have nodes both
  // up to it and behind it.
  std::vector<std::pair<NodeId, NodeId>> spans_;
  std::vector<int> crossings_;

 private:
  bool comes_from_gemm(TensorId id) const;
  // Whether `from` depends on a result of group `g`.
  bool depends_on(NodeId from, int g) const;
  // Whether the program stays within its limits with `id`: a node adds at most one step, one store
  // and its new loads.
  bool has_room(const Group& group, NodeId id) const;

  // Marks of the current traversal, so that none has to clear an array of all nodes.
  mutable std::vector<int> visited_;
  mutable int traversal_ = 0;
  mutable std::vector<signed char> comes_from_gemm_;  // by tensor; -1: not known yet
};

// Assigns every node of the graph to a group.
PartitionGroups grow_groups(const LoweredGraph& lowered, const Dependencies& dependencies,
                            const std::vector<FusionLimits>& limits);

}  // namespace ashlar

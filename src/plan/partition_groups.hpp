// Nodes on their way to become regions, and the rules of what may join them.
#pragma once

#include <set>

#include "plan/dependencies.hpp"
#include "plan/partition.hpp"

namespace ashlar {

class PartitionGroups {
 public:
  // Nodes that will become one region. Pointwise nodes of an anchored group stand either before it
  // (prologue, for one input slot) or after it.
  struct Group {
    NodeId anchor = kNoNode;
    std::set<NodeId> after;
    std::vector<std::pair<int, std::set<NodeId>>> before;  // input slot, its nodes
    Dims space;
    std::set<NodeId> tails = {};  // reductions of values of the epilogue
  };

  PartitionGroups(const LoweredGraph& lowered, const std::vector<FusionLimits>& limits);

  const Node& node(NodeId id) const { return nodes_[static_cast<std::size_t>(id)]; }
  const Tensor& tensor(TensorId id) const { return lowered_.graph.tensor(id); }
  const View& view(TensorId id) const { return lowered_.views[static_cast<std::size_t>(id)]; }
  const Dependencies& dependencies() const { return dependencies_; }
  const FusionLimits& limits(NodeId id) const { return limits_[static_cast<std::size_t>(id)]; }
  int group_of(NodeId id) const { return group_of_[static_cast<std::size_t>(id)]; }  // -1: none yet
  const Group& group(int g) const { return groups_[static_cast<std::size_t>(g)]; }
  // The node that computes `id` as it is, not through a view of its memory.
  NodeId producer_of(TensorId id) const;

  bool is_pointwise(NodeId id) const { return std::holds_alternative<Pointwise>(node(id).op); }
  // Random numbers that only pointwise work of their own shape reads are a step of its program.
  bool is_random_step(NodeId id) const;
  // Dropout may be a few steps of what comes before it; where it is none, it is an anchor.
  bool is_dropout(NodeId id) const;
  // Dequantisation may be steps before the product that reads it; else it is an anchor.
  bool is_dequantization(NodeId id) const;
  bool is_program_step(NodeId id) const {
    return is_pointwise(id) || is_random_step(id) || is_dropout(id) || is_dequantization(id);
  }
  // A reduction of what became of a product.
  bool is_tail(NodeId id) const;
  // `id` is a value the epilogue holds in a register.
  bool is_value_of(int g, TensorId id) const;

  // Why `id` may not follow the nodes of the group, where nothing but the rules is in its way;
  // null: it may.
  const char* epilogue_obstacle(int g, NodeId id) const;
  // The same for what makes `input`, of the shape `space`, before `anchor`, which `reader` reads
  // for; `nodes` are there already.
  const char* prologue_obstacle(NodeId anchor, NodeId reader, TensorId input, const Dims& space,
                                const std::set<NodeId>& nodes, bool may_be_output) const;

 protected:
  bool is_free(NodeId id) const;
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
  Dependencies dependencies_;
  const std::vector<FusionLimits>& limits_;
  std::vector<int> group_of_;
  std::vector<Group> groups_;

 private:
  bool comes_from_gemm(TensorId id) const;
  // Whether `from` needs something that group `g` computes.
  bool depends_on(NodeId from, int g) const;
  // Whether the program still fits its limits with `id`: a node adds one step, one store and its
  // new loads at most.
  bool has_room(const Group& group, NodeId id) const;
};

// All nodes of the graph in groups.
PartitionGroups grow_groups(const LoweredGraph& lowered, const std::vector<FusionLimits>& limits);

}  // namespace ashlar

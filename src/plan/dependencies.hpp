// Data dependencies between nodes through memory: tensors may be views of one another.
#pragma once

#include <vector>

#include "graph/graph_data.hpp"
#include "plan/lowered.hpp"

namespace ashlar {

class Dependencies {
 public:
  explicit Dependencies(const LoweredGraph& lowered)
      : lowered_(lowered), writers_(lowered.views.size(), kNoNode), readers_(lowered.views.size()) {
    const auto& nodes = lowered.graph.nodes();
    for (std::size_t i = 0; i < nodes.size(); ++i)
      for (TensorId id : nodes[i].outputs)
        if (id != kNoTensor) writers_[root(id)] = static_cast<NodeId>(i);
    for (std::size_t i = 0; i < nodes.size(); ++i)
      for (TensorId id : reads(static_cast<NodeId>(i)))
        readers_[root(id)].push_back(static_cast<NodeId>(i));
  }

  // The node that writes the memory of `id`; kNoNode for inputs, scalars and constants.
  NodeId writer(TensorId id) const { return writers_[root(id)]; }
  // All tensors a node reads.
  std::vector<TensorId> reads(NodeId id) const {
    std::vector<TensorId> tensors;
    const Node& node = lowered_.graph.nodes()[static_cast<std::size_t>(id)];
    for (TensorId input : node.inputs)
      if (input != kNoTensor) tensors.push_back(input);
    return tensors;
  }
  // The nodes that read the memory of `id`.
  const std::vector<NodeId>& readers(TensorId id) const { return readers_[root(id)]; }
  std::size_t root(TensorId id) const {
    return static_cast<std::size_t>(lowered_.views[static_cast<std::size_t>(id)].tensor);
  }

 private:
  const LoweredGraph& lowered_;
  std::vector<NodeId> writers_;
  std::vector<std::vector<NodeId>> readers_;
};

}  // namespace ashlar

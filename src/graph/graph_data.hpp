// What a Graph holds. Values point here, so that moving a Graph keeps them valid.
#pragma once

#include <ashlar/graph.hpp>

namespace ashlar {

inline constexpr NodeId kNoNode = -1;

struct GraphData {
  std::string name;
  std::vector<Tensor> tensors;
  std::vector<Node> nodes;
  std::vector<NodeId> producers;  // by tensor; kNoNode for inputs, scalars and constants
};

// The planner's way into a graph it owns.
struct GraphAccess {
  static GraphData& data(Graph& graph) { return *graph.data_; }
  static const GraphData& data(const Graph& graph) { return *graph.data_; }
};

// The compute type of a node that was given none: f64 if an operand is, f32 if one is a smaller
// float, else the widest integer.
DType default_compute(const GraphData& graph, const Node& node);

}  // namespace ashlar

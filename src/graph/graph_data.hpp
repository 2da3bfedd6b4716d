// The contents of a Graph. Values point here, so moving a Graph does not invalidate them.
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

// Mutable access for the library: of the planner to a graph that it owns, and of gradients().
struct GraphAccess {
  static GraphData& data(Graph& graph) { return *graph.data_; }
  static const GraphData& data(const Graph& graph) { return *graph.data_; }
  static void require_own(const Graph& graph, Value value, std::string_view call) {
    graph.require_own(value, call);
  }
};

// The default compute type of a node: f64 if an operand is f64, f32 if one is a narrower float,
// else i64 or i32.
DType default_compute(const GraphData& graph, const Node& node);

}  // namespace ashlar

// BorrowedGraph: the graph of a Value, for the free functions that add operations to it.
#pragma once

#include "base/fail.hpp"
#include "graph/graph_data.hpp"

namespace ashlar {

// A Value refers to the contents of a graph (GraphData); this wraps them in a Graph for one call.
class BorrowedGraph {
 public:
  explicit BorrowedGraph(Value value) {
    if (!value)
      fail(ErrorCode::invalid_argument,
           "pointwise: first operand: got an empty value, expected a tensor of a graph");
    graph_.data_.reset(value.graph_);
  }
  ~BorrowedGraph() { static_cast<void>(graph_.data_.release()); }
  BorrowedGraph(const BorrowedGraph&) = delete;
  BorrowedGraph& operator=(const BorrowedGraph&) = delete;
  Graph* operator->() { return &graph_; }
  Graph& operator*() { return graph_; }

 private:
  Graph graph_;
};

}  // namespace ashlar

// Captures work into a CUDA graph on a private stream.
#pragma once

#include <functional>

#include "cuda/driver/driver_api.hpp"

namespace ashlar::cuda {

// Whether the captured graph may have programmatic (PDL) edges. Nodes that are copied into a
// caller's graph have plain edges there.
enum class GraphEdges { plain, programmatic };

// The graph of the work that `run` enqueues. The capture is relaxed: other threads, and `run`
// itself, may allocate in the meantime. The destructor destroys the graph.
class CapturedGraph {
 public:
  explicit CapturedGraph(const std::function<void(void* stream)>& run,
                         GraphEdges edges = GraphEdges::plain);
  ~CapturedGraph();
  CapturedGraph(const CapturedGraph&) = delete;
  CapturedGraph& operator=(const CapturedGraph&) = delete;
  GraphHandle handle() const { return graph_; }
  // Whether this thread is capturing a graph with plain edges on that stream.
  static bool has_plain_edges(void* stream);

 private:
  GraphHandle graph_ = nullptr;
};

}  // namespace ashlar::cuda

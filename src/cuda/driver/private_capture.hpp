// Work as a CUDA graph, captured on a stream of our own.
#pragma once

#include <functional>

#include "cuda/driver/driver_api.hpp"

namespace ashlar::cuda {

// Whether a launch may begin while the one before it ends. Nodes that are copied into a graph of
// somebody else's have plain edges there.
enum class GraphEdges { plain, programmatic };

// What `run` puts into the stream it is given. Other threads may do as they like meanwhile,
// allocating included, and so may `run`. The graph goes at the end of the scope.
class CapturedGraph {
 public:
  explicit CapturedGraph(const std::function<void(void* stream)>& run,
                         GraphEdges edges = GraphEdges::plain);
  ~CapturedGraph();
  CapturedGraph(const CapturedGraph&) = delete;
  CapturedGraph& operator=(const CapturedGraph&) = delete;
  GraphHandle handle() const { return graph_; }
  // Whether this thread captures such a graph, with plain edges, on that stream now.
  static bool has_plain_edges(void* stream);

 private:
  GraphHandle graph_ = nullptr;
};

}  // namespace ashlar::cuda

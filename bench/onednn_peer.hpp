// oneDNN doing what a graph of one operation asks, on the same inputs.
#pragma once

#include <ashlar/graph.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ashlar::bench {

class Peer {
 public:
  virtual ~Peer() = default;
  virtual void run() = 0;
  // Memory laid out as the graph's tensor says; null for a result oneDNN does not give.
  virtual const void* output(TensorId tensor) const = 0;
  virtual const std::string& description() const = 0;  // implementation and reorders
  virtual bool reference() const = 0;                  // some step runs oneDNN's plain loops
};

// oneDNN is offered the layouts of the graph, the same but for its own choice of filter layout, and
// its own choice of all layouts; reorders count. The fastest of the three is the peer. `pointers`
// stand in the order of Graph::bound_tensors(), inputs filled. Null when oneDNN has no way.
std::unique_ptr<Peer> fastest_peer(const Graph& graph, std::span<void* const> pointers);

std::string peer_version();

}  // namespace ashlar::bench

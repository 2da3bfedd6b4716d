// Another library doing what a graph asks, on the same inputs: oneDNN here, those for
// GPUs in peers.
#pragma once

#include <ashlar/graph.hpp>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ashlar::bench {

class Peer {
 public:
  virtual ~Peer() = default;
  // Before a run whose results are wanted: puts back what a run overwrites.
  virtual void start() = 0;
  virtual void run() = 0;
  // Brings the results of the last run into the layouts of the graph.
  virtual void finish() = 0;
  // Memory laid out as the graph's tensor says, on the device that runs it; null for a result that
  // it does not give, or that cannot be compared.
  virtual const void* output(TensorId tensor) const = 0;
  virtual const std::string& description() const = 0;  // implementation and reorders
  virtual std::size_t kernels() const { return 1; }    // calls that the graph took
};

struct PeerProblem {
  const Graph& graph;
  std::span<void* const> pointers;            // in the order of Graph::bound_tensors()
  const std::vector<std::string>& constants;  // inputs that may be prepared once
  bool tf32 = true;                           // whether f32 products may be rounded to tf32
};

// No peer: the reason, in the library's words.
struct PeerAnswer {
  std::unique_ptr<Peer> peer;
  std::string refusal;
};

enum class PeerLayouts {
  user,  // activations as the graph has them; every reorder counts but those of constants
  best,  // whatever oneDNN likes, as if its neighbours used the same; no reorder counts
};

// The fastest way oneDNN has; null when it has none (best: none with layouts of its own), or when
// it was not built in.
std::unique_ptr<Peer> fastest_peer(const PeerProblem& problem, PeerLayouts layouts);

// "oneDNN 2.6.3"; empty when it was not built in.
std::string peer_version();

}  // namespace ashlar::bench

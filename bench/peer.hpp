// Peers: other libraries that run the same graph on the same inputs. oneDNN is the peer on the CPU;
// those for GPUs are in peers/.
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
  // Call before a run whose results are read: restores inputs that runs overwrite.
  virtual void start() = 0;
  virtual void run() = 0;
  // Reorders the results of the last run into the graph's layouts.
  virtual void finish() = 0;
  // An output in the graph's layout, on the device of the run; null if the peer does not compute it
  // or it cannot be compared.
  virtual const void* output(TensorId tensor) const = 0;
  virtual const std::string& description() const = 0;  // implementation and reorders
  virtual std::size_t kernels() const { return 1; }    // library calls per run
};

struct PeerProblem {
  const Graph& graph;
  std::span<void* const> pointers;            // in the order of Graph::bound_tensors()
  const std::vector<std::string>& constants;  // inputs that may be repacked once, untimed
  bool tf32 = true;                           // whether f32 operands may be rounded to tf32
};

// A peer, or the library's reason why there is none.
struct PeerAnswer {
  std::unique_ptr<Peer> peer;
  std::string refusal;
};

enum class PeerLayouts {
  user,  // activations in the graph's layouts; reorders are timed, except those of constants
  best,  // oneDNN's preferred layouts, as inside a network that uses them; no reorder is timed
};

// oneDNN's fastest implementation; null if it has none (best: none with layouts of its own) or was
// not built in.
std::unique_ptr<Peer> fastest_peer(const PeerProblem& problem, PeerLayouts layouts);

// "oneDNN 2.6.3"; empty when it was not built in.
std::string peer_version();

}  // namespace ashlar::bench

// A subgraph as one library call, ready to run.
#pragma once

#include <ashlar/memory.hpp>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "operation_graph.hpp"

namespace ashlar::bench::cudnn {

// Device pointers of a graph's tensors.
class Bindings {
 public:
  // `pointers`: in the order of Graph::bound_tensors(); outputs get new memory.
  Bindings(const Graph& graph, std::span<void* const> pointers, const Device& device);
  // Also of an intermediate between two pieces, which is allocated on first use.
  void* at(TensorId tensor);
  const void* output(TensorId tensor) const;  // null if there is none

 private:
  void* allocate(TensorId tensor);
  const Graph& graph_;
  const Device device_;
  std::map<TensorId, void*> pointers_;
  std::map<TensorId, ashlar::Memory> owned_;
};

class Piece {
 public:
  virtual ~Piece() = default;
  virtual void run() = 0;  // on the default stream; throws Refused
  virtual std::string description() const = 0;
};

// The fastest of the considered pieces, each timed on the device.
class Fastest {
 public:
  explicit Fastest(const Device& device) : device_(device) {}
  // A piece that fails is skipped and its reason recorded.
  void consider(std::unique_ptr<Piece> piece);
  void refused(const std::string& reason);
  bool found() const { return best_ != nullptr; }
  int timed() const { return timed_; }  // pieces that ran
  std::unique_ptr<Piece> take() { return std::move(best_); }
  // Why nothing was found: the first refusal and, if different, the last.
  std::string reason() const;

 private:
  const Device device_;
  std::unique_ptr<Piece> best_;
  double seconds_ = 0;
  int timed_ = 0;
  std::string first_, last_;
};

struct SearchLimits {
  double seconds = 1;       // for building and timing the plans of one piece
  std::int64_t plans = 64;  // per heuristic mode
  bool tf32 = true;         // whether f32 operands may be rounded
};

// Considers plans of the backend API until time is up: those of heuristic mode A, the fallbacks,
// then all other engines with default knobs. The last group only for convolutions, which have many
// engines, and if nothing else runs.
void consider_backend(const Library& library, const Subgraph& subgraph, Bindings& bindings,
                      const SearchLimits& limits, Fastest& fastest);

// Considers calls of the legacy API that match the nodes.
void consider_legacy(const Library& library, const Subgraph& subgraph, Bindings& bindings,
                     Fastest& fastest);

}  // namespace ashlar::bench::cudnn

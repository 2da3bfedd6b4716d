// What the library does in one call, ready to run.
#pragma once

#include <ashlar/memory.hpp>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "operation_graph.hpp"

namespace ashlar::bench::cudnn {

// Where the tensors of a graph lie on the device.
class Bindings {
 public:
  // `pointers`: in the order of Graph::bound_tensors(); outputs get memory of their own.
  Bindings(const Graph& graph, std::span<void* const> pointers, const Device& device);
  // Of a result between two pieces too: it gets memory when first asked for.
  void* at(TensorId tensor);
  const void* output(TensorId tensor) const;  // null where there is none

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

// The fastest of what was considered, timed on the device one after the other.
class Fastest {
 public:
  explicit Fastest(const Device& device) : device_(device) {}
  // A piece that fails is left out; why is remembered.
  void consider(std::unique_ptr<Piece> piece);
  void refused(const std::string& reason);
  bool found() const { return best_ != nullptr; }
  int timed() const { return timed_; }  // pieces that ran
  std::unique_ptr<Piece> take() { return std::move(best_); }
  // Why nothing was found: the first refusal, and the last one where it says something else.
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
  std::int64_t plans = 64;  // of each list
  bool tf32 = true;         // whether f32 products may be rounded
};

// All that the library has, the most promising first, until time is up: what its heuristics propose
// in mode A, the fallbacks, and every engine that neither of them named with its own defaults.
// Those last only for convolutions, which have many, and where nothing else runs.
void consider_backend(const Library& library, const Stretch& stretch, Bindings& bindings,
                      const SearchLimits& limits, Fastest& fastest);

// Calls from before there were graphs, where there is one for these nodes.
void consider_legacy(const Library& library, const Stretch& stretch, Bindings& bindings,
                     Fastest& fastest);

}  // namespace ashlar::bench::cudnn

// The values that a plan keeps for late readers, and what it takes to compute them again.
#pragma once

#include <span>
#include <vector>

#include "plan/lifetimes.hpp"
#include "plan/lowered.hpp"

namespace ashlar {

// Ends the names of nodes and tensors that are computed again.
inline constexpr std::string_view kRecomputedSuffix = ".recomputed";

// Values that are recomputed together.
struct Recomputed {
  std::vector<TensorId> values;
  double bytes = 0, flops = 0;
};

// The forward part of a training step ends, and the backward part begins, at the step during which
// the plan keeps the most bytes that it neither reads nor writes. Values kept then are the
// candidates for recomputation. Nothing else is known about forward and backward, so that any graph
// with values that wait long for their readers profits.
class KeptValues {
 public:
  // `regions` in execution order. Both outlive this.
  KeptValues(const LoweredGraph& lowered, const std::vector<Region>& regions);

  // Single values that operations which are not compute-bound give again, from what is kept.
  // `keep`, by tensor: values that stay.
  std::vector<Recomputed> cheap(const std::vector<bool>& keep = {}) const;
  // Segments of the forward part, between checkpoints: few values that stay in memory for them. The
  // last segment stays as it is: the backward part needs it at once. `checkpoints` receives the
  // values that stay, by tensor.
  std::vector<Recomputed> segments(std::vector<bool>& checkpoints) const;

  // The graph with nodes that compute these values again for their late readers.
  LoweredGraph rewritten(std::span<const Recomputed> groups,
                         const std::vector<bool>& checkpoints) const;

 private:
  struct Kept {
    TensorId tensor;
    double bytes;
    int step;  // that writes it
  };
  // Steps after which the forward part is cut into segments.
  struct Cuts {
    std::vector<int> steps;
    std::vector<bool> checkpoints;  // by tensor: read behind a cut by the forward part
    double peak = 0;                // bytes of the checkpoints and of the largest segment
  };

  TensorId root(TensorId id) const { return lowered_.views[static_cast<std::size_t>(id)].tensor; }
  const Node& node(NodeId id) const { return lowered_.graph.nodes()[static_cast<std::size_t>(id)]; }
  NodeId producer(TensorId id) const;
  bool is_late(NodeId id) const { return step_of_[static_cast<std::size_t>(id)] > boundary_; }
  void find_boundary();
  // By tensor: bound memory, and intermediates that are kept anyway.
  std::vector<bool> all_that_stays(const std::vector<bool>& checkpoints) const;
  // By tensor: what has to be computed again for `values`, of which nothing stays.
  std::vector<bool> needed_for(std::span<const TensorId> values, std::vector<bool> stays) const;
  std::vector<NodeId> first_readers(const std::vector<bool>& needed) const;
  double flops_for(std::span<const TensorId> values, const std::vector<bool>& stays) const;
  Cuts cuts_for(double segment_bytes) const;
  static std::size_t segment_of(int step, const Cuts& cuts);

  const LoweredGraph& lowered_;
  Lifetimes lifetimes_;
  std::vector<int> step_of_;  // by node
  int boundary_ = -1;
  std::vector<Kept> kept_;  // in the order of their steps
  double kept_bytes_ = 0;
};

}  // namespace ashlar

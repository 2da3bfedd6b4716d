// Checks results against a peer or the double-precision oracle.
#pragma once

#include <ashlar/graph.hpp>
#include <ashlar/plan.hpp>
#include <span>
#include <string>

#include "memory.hpp"
#include "peer.hpp"

namespace ashlar::bench {

struct Verdict {
  bool ok = false;
  std::string text;  // the reference of the comparison and the worst error
};

// On the CPU. Outputs that agree with oneDNN's are correct. The oracle decides where they disagree,
// where oneDNN lacks an output, and on request. If the oracle would take minutes, the text names
// the outputs that were not checked.
Verdict check(const Graph& graph, const Memory& memory, const Peer* peer, bool oracle);

// Compares the outputs in `memory` (already on the host) with the oracle, whose bounds follow from
// the plan's `notes`.
Verdict ask_oracle(const Graph& graph, const Memory& memory, const PlanNotes& notes);

// Largest difference of two lists of elements in tolerances of the dtype: a fraction of |value| +
// RMS.
double worst_difference(DType dtype, std::span<const double> ours, std::span<const double> theirs);

}  // namespace ashlar::bench

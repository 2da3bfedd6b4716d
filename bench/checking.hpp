// Whether a result is right.
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
  std::string text;  // what the outputs were compared with, and how far off they were
};

// On the processor. oneDNN's outputs serve as the check where they agree. Where they do not, where
// some are missing, and on request the oracle decides, unless that would take minutes: what nobody
// checked is named.
Verdict check(const Graph& graph, const Memory& memory, const Peer* peer, bool oracle);

// The outputs in `memory`, which were fetched, against the oracle; `notes` are those of the plan.
Verdict ask_oracle(const Graph& graph, const Memory& memory, const PlanNotes& notes);

// The largest difference of two lists of elements, in units of what two correct results of this
// dtype may differ by: a share of the value plus the typical value.
double worst_difference(DType dtype, std::span<const double> ours, std::span<const double> theirs);

}  // namespace ashlar::bench

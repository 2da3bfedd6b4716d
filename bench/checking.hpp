// Whether a result is right.
#pragma once

#include <ashlar/graph.hpp>
#include <ashlar/plan.hpp>
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

// On a GPU, whose outputs were fetched. Both sides are compared with the oracle where that takes
// about a second (and on request), else, all elements of all outputs, with what our engines for the
// processor give; `notes` are those of the plan. Only a wrong output of ours is not ok.
Verdict check_device(const Graph& graph, const Problem& problem, const Memory& memory,
                     const Peer* peer, const PlanNotes& notes, bool oracle);

}  // namespace ashlar::bench

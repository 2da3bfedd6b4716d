// Whether a result is right.
#pragma once

#include <ashlar/graph.hpp>
#include <string>

#include "memory.hpp"
#include "peer.hpp"

namespace ashlar::bench {

struct Verdict {
  bool ok = false;
  std::string text;  // what the outputs were compared with, and how far off they were
};

// oneDNN's outputs serve as the check where they agree. Where they do not, where some are missing,
// and on request the oracle decides, unless that would take minutes: what nobody checked is named.
Verdict check(const Graph& graph, const Memory& memory, const Peer* peer, bool oracle);

}  // namespace ashlar::bench

// cuDNN as a peer of the benchmark.
#pragma once

#include <memory>
#include <string>

#include "bench/peer.hpp"
#include "library.hpp"
#include "piece.hpp"

namespace ashlar::bench::cudnn {

// The graph as few library calls, each the fastest plan that cuDNN has for its subgraph.
PeerAnswer fastest_peer(const Library& library, const PeerProblem& problem,
                        SearchLimits limits = {});

}  // namespace ashlar::bench::cudnn

// NVIDIA's library as a peer of the benchmark.
#pragma once

#include <memory>
#include <string>

#include "bench/peer.hpp"
#include "library.hpp"
#include "piece.hpp"

namespace ashlar::bench::cudnn {

// The library doing what a graph asks, each stretch of it in the fastest way it has, with as few
// calls as it takes the graph in.
PeerAnswer fastest_peer(const Library& library, const PeerProblem& problem,
                        SearchLimits limits = {});

}  // namespace ashlar::bench::cudnn

// NVIDIA's library as a peer of the benchmark.
#pragma once

#include <memory>
#include <string>

#include "bench/peer.hpp"
#include "library.hpp"
#include "piece.hpp"

namespace ashlar::bench::cudnn {

// The library doing what a graph asks, each stretch of it in the fastest way it has, with as few
// calls as it takes the graph in. No peer: the reason, in the library's words.
struct Answer {
  std::unique_ptr<Peer> peer;
  std::string refusal;
};
Answer fastest_peer(const Library& library, const PeerProblem& problem,
                    const SearchLimits& limits = {});

}  // namespace ashlar::bench::cudnn

// cuBLASLt as a peer of the benchmark, for graphs that are one product.
#pragma once

#include "bench/peer.hpp"
#include "library.hpp"

namespace ashlar::bench::cublaslt {

struct SearchLimits {
  double seconds = 1;   // for timing what its heuristics propose
  int algorithms = 64;  // asked for
};

// The fastest of all algorithms that the library proposes.
PeerAnswer fastest_peer(const Library& library, const PeerProblem& problem,
                        const SearchLimits& limits = {});

}  // namespace ashlar::bench::cublaslt

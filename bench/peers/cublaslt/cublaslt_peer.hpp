// cuBLASLt as a peer of the benchmark, for graphs that are one matmul with an epilogue.
#pragma once

#include "bench/peer.hpp"
#include "library.hpp"

namespace ashlar::bench::cublaslt {

struct SearchLimits {
  double seconds = 1;   // to time the algorithms
  int algorithms = 64;  // requested from the heuristics
};

// The fastest of the algorithms that the library's heuristics propose.
PeerAnswer fastest_peer(const Library& library, const PeerProblem& problem,
                        const SearchLimits& limits = {});

}  // namespace ashlar::bench::cublaslt

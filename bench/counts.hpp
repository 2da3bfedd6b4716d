// What a graph must do at least: arithmetic and bytes.
#pragma once

#include <ashlar/graph.hpp>

namespace ashlar::bench {

// Operations of convolutions, matmuls, attention and recurrent networks, counting 2 per
// multiply-add and, under a causal mask, only the scores that are seen; 0 when a graph has none of
// them.
double arithmetic(const Graph& graph);
// Whether that arithmetic is on 8-bit integers.
bool on_bytes(const Graph& graph);
// Bytes that must move at least once: all bound tensors, of a slice only what it takes.
double traffic(const Graph& graph);
// The larger of both, at four bytes per operation: how long a slow implementation takes.
double work(const Graph& graph);

}  // namespace ashlar::bench

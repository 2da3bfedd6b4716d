// Roofline model of a graph: its arithmetic and its compulsory memory traffic.
#pragma once

#include <ashlar/graph.hpp>

namespace ashlar::bench {

// Operations of convolutions, matmuls, attention and recurrent networks: 2 per multiply-add of the
// direct algorithm; of attention only the unmasked scores. 0 for a graph without any of them.
double arithmetic(const Graph& graph);
// Whether the first of these operations has 8-bit integer operands.
bool is_int8(const Graph& graph);
// Compulsory bytes: every bound tensor once, of a sliced tensor only the slice.
double traffic(const Graph& graph);
// max(arithmetic, traffic / 4): proportional to the time of a slow implementation.
double work(const Graph& graph);

}  // namespace ashlar::bench

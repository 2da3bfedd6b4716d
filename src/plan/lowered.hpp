// The planner's own copy of a graph, rewritten step by step until it can be cut into regions:
// simplify -> raise patterns -> fold views -> cut.
#pragma once

#include <ashlar/graph.hpp>
#include <string>
#include <vector>

#include "plan/view.hpp"

namespace ashlar {

struct LoweredGraph {
  Graph graph;
  std::vector<View> views;         // by tensor: where its elements really are
  std::vector<std::string> notes;  // what was rewritten, for explain()
};

// Drops nodes nothing needs and optional outputs nobody reads, and merges equal nodes.
void simplify(LoweredGraph& lowered);

// Turns softmax, layer norm, RMS norm and attention written as strings of small operations back
// into one operation.
void raise_patterns(LoweredGraph& lowered);
void raise_softmax(LoweredGraph& lowered);
void raise_norm(LoweredGraph& lowered);
void raise_attention(LoweredGraph& lowered);

// Turns transposes, slices, reshapes and widening casts into views where strides can express them;
// what has to be copied becomes an identity.
void fold_views(LoweredGraph& lowered);

LoweredGraph lower(const Graph& graph, bool fuse);

}  // namespace ashlar

// The planner's own copy of a graph, rewritten step by step until it can be cut into regions:
// expand compositions -> simplify -> raise patterns -> move reshapes -> fold views -> cut.
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

// Replaces operations that are compositions by the smaller ones they are made of (plan/expand.hpp).
void expand_compositions(LoweredGraph& lowered);

// Drops nodes nothing needs and optional outputs nobody reads, and merges equal nodes.
void simplify(LoweredGraph& lowered);

// Turns softmax, layer norm, RMS norm, attention and dequantisation of groups written as strings of
// small operations back into one operation, and convolutions that sum nothing into multiplications.
void raise_patterns(LoweredGraph& lowered);
void simplify_convolutions(LoweredGraph& lowered);
void raise_dequantization(LoweredGraph& lowered);
void raise_softmax(LoweredGraph& lowered);
void raise_norm(LoweredGraph& lowered);
void raise_attention(LoweredGraph& lowered);

// Pointwise work behind a reshape or transpose of a product's result goes before it, where it can
// end the product's kernel: view -> matmul -> view -> add is how linear layers are written.
void move_reshapes(LoweredGraph& lowered);

// Turns transposes, slices, reshapes and widening casts into views where strides can express them;
// what has to be copied becomes an identity.
void fold_views(LoweredGraph& lowered);

// `expand` false: compositions stay whole, for the reference to run them as one operation.
LoweredGraph lower(const Graph& graph, bool fuse, bool expand = true);

}  // namespace ashlar

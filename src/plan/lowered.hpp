// The planner's copy of a graph and the passes that rewrite it before it is partitioned:
// align ranks -> drop expansions -> expand composites -> simplify -> raise patterns -> move
// reshapes -> fold views -> partition.
#pragma once

#include <ashlar/graph.hpp>
#include <string>
#include <vector>

#include "plan/engine_query.hpp"
#include "plan/view.hpp"

namespace ashlar {

struct LoweredGraph {
  Graph graph;
  std::vector<View> views;         // by tensor: the memory of its elements
  std::vector<std::string> notes;  // the rewrites, for explain()
  // By tensor, empty where nothing is recomputed (plan/recompute.hpp): results that come after the
  // point of most kept memory, so that no region before it may compute them.
  std::vector<bool> late = {};
  // By tensor, possibly shorter: first results of operations whose region ends there
  // (plan/in_place.hpp).
  std::vector<bool> unfused = {};
};

// Gives the operands of pointwise operations the rank of their result.
void align_ranks(LoweredGraph& lowered);
// Lets pointwise operations broadcast the operands of explicit expansions (identity to larger
// dims).
void drop_expansions(LoweredGraph& lowered);
// Replaces composite operations by primitive ones (plan/expand.hpp).
void expand_compositions(LoweredGraph& lowered);
// Replaces attention that no specialised engine takes by matmul, softmax, matmul.
bool expand_attention(LoweredGraph& lowered, const EngineQuery& engines);

// Removes dead nodes and unread optional outputs, and merges equal nodes (common subexpressions).
void simplify(LoweredGraph& lowered);

// Pattern-matches softmax, layer norm, RMS norm, attention and group dequantisation written as
// sequences of primitive operations, and raises each to one operation. Also replaces convolutions
// without a reduction by multiplications. Attention that no specialised engine takes is not raised.
void raise_patterns(LoweredGraph& lowered, const EngineQuery& engines = {});
void simplify_convolutions(LoweredGraph& lowered);
void raise_dequantization(LoweredGraph& lowered);
void raise_softmax(LoweredGraph& lowered);
void raise_norm(LoweredGraph& lowered);
void raise_attention(LoweredGraph& lowered, const EngineQuery& engines = {});

// Moves pointwise operations behind a reshape or transpose of a GEMM result in front of it, so that
// they can be fused into the GEMM's epilogue. Frameworks write linear layers as
// view -> matmul -> view -> add.
void move_reshapes(LoweredGraph& lowered);

// Turns transposes, slices, reshapes, expansions and widening casts into views if strides can
// express them; otherwise they become an identity that copies.
void fold_views(LoweredGraph& lowered, const EngineQuery& engines = {});

// `expand` = false keeps composites, for the reference to run them as one operation. `engines`
// decide what is raised, expanded or left as it is.
LoweredGraph lower(const Graph& graph, bool fuse, bool expand = true,
                   const EngineQuery& engines = {});

}  // namespace ashlar

// Understanding what clients do with the product q k^T before the softmax: scale, soft cap, bias,
// masks, or any other pointwise work, which becomes a score program.
#pragma once

#include <array>

#include "plan/graph_editor.hpp"
#include "plan/mask_analysis.hpp"

namespace ashlar {

struct ScoreMatch {
  const Node* product = nullptr;  // the matmul
  TensorId bias = kNoTensor, scale = kNoTensor;
  std::optional<double> constant_scale, soft_cap;
  ScoreProgram modifier;
  std::array<TensorId, 4> modifier_inputs = {kNoTensor, kNoTensor, kNoTensor, kNoTensor};
  MaskBounds mask;
  std::vector<NodeId> nodes;  // that disappear
};

// `scores` is what the softmax reads, `readers` times. False when something on the way to the
// product is not understood or is needed elsewhere.
bool match_scores(const GraphEditor& editor, TensorId scores, int readers, ScoreMatch& match);

}  // namespace ashlar

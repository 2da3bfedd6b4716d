// Matches the pointwise operations between q k^T and the softmax: scale, soft cap, bias, masks;
// anything else becomes a score program.
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
  std::vector<NodeId> nodes;  // nodes to remove
};

// `scores` is the softmax's input, read `readers` times. Returns false if an operation between the
// matmul and the softmax does not match or its result is also read elsewhere.
bool match_scores(const GraphEditor& editor, TensorId scores, int readers, ScoreMatch& match);

}  // namespace ashlar

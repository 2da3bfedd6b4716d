// Matchers for small parts of a pattern, shared by the raising passes.
#pragma once

#include <cmath>
#include <optional>
#include <utility>

#include "plan/graph_editor.hpp"

namespace ashlar {

// A pointwise node with alpha1 = alpha2 = 1.
inline bool is_plain(const Node& node) {
  const auto& op = std::get<Pointwise>(node.op);
  return op.alpha1 == 1.0 && op.alpha2 == 1.0;
}

inline const Node* plain(const GraphEditor& editor, TensorId id, PointwiseMode mode) {
  const Node* node = editor.produced_by(id, mode);
  return node && is_plain(*node) ? node : nullptr;
}

// Whether a tensor may be removed together with its rounding. The rounding of fp8, integers and
// booleans is part of the semantics (docs/numerics.md).
inline bool may_vanish(const GraphEditor& editor, TensorId id) {
  const DType dtype = editor.tensor(id).dtype;
  return dtype == f64 || dtype == f32 || dtype == f16 || dtype == bf16;
}

// The input and axes of a matched reduction.
struct ReductionMatch {
  TensorId source = kNoTensor;
  Dims axes;
};

inline std::optional<ReductionMatch> match_reduction(const GraphEditor& editor, TensorId id,
                                                     ReductionMode mode) {
  const Node* node = editor.produced_by<Reduction>(id);
  if (!node || std::get<Reduction>(node->op).mode != mode) return std::nullopt;
  // A reduction with an index output is not matched.
  if (node->outputs.size() > Reduction::index && node->outputs[Reduction::index] != kNoTensor)
    return std::nullopt;
  return ReductionMatch{node->inputs[0], std::get<Reduction>(node->op).axes};
}

// The value of a constant of one element.
inline std::optional<double> constant_value(const GraphEditor& editor, TensorId id) {
  if (id == kNoTensor || editor.tensor(id).kind != TensorKind::constant) return std::nullopt;
  return editor.tensor(id).value;
}

// For a commutative node with an operand that satisfies `accept`: {that operand, the other one}.
template <class Accept>
std::optional<std::pair<TensorId, TensorId>> split_operands(const Node& node, Accept&& accept) {
  if (accept(node.inputs[0])) return std::pair(node.inputs[0], node.inputs[1]);
  if (accept(node.inputs[1])) return std::pair(node.inputs[1], node.inputs[0]);
  return std::nullopt;
}

}  // namespace ashlar

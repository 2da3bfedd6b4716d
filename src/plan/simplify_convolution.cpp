// Replaces convolutions without a reduction by multiplications.
#include <algorithm>

#include <fmt/format.h>

#include "plan/graph_editor.hpp"
#include "plan/lowered.hpp"

namespace ashlar {

namespace {

// Whether dx[n, c, p] = dy[n, 0, p] * w[0, c]: a convolution without a reduction.
bool is_multiplication(const GraphEditor& editor, const Node& node) {
  const auto* op = std::get_if<ConvBackwardData>(&node.op);
  if (op == nullptr || op->alpha != 1.0 || op->beta != 0.0) return false;
  if (node.inputs.size() > ConvBackwardData::z && node.inputs[ConvBackwardData::z] != kNoTensor)
    return false;
  if (node.compute != f32 && node.compute != f64) return false;
  const Dims& dy = editor.tensor(node.inputs[ConvBackwardData::dy]).dims;
  const Dims& w = editor.tensor(node.inputs[ConvBackwardData::w]).dims;
  const Dims& dx = editor.tensor(node.outputs[ConvBackwardData::dx]).dims;
  if (dy[1] != 1 || w[0] != 1 || w[1] != dx[1]) return false;
  // 1 x 1 filter, unit stride and dilation, no padding.
  const auto is_all = [](const Dims& values, std::int64_t wanted) {
    return std::all_of(values.begin(), values.end(), [&](std::int64_t v) { return v == wanted; });
  };
  for (int axis = 2; axis < w.rank(); ++axis)
    if (w[axis] != 1 || dy[axis] != dx[axis]) return false;
  return is_all(op->stride, 1) && is_all(op->padding, 0) &&
         (!op->post_padding || is_all(*op->post_padding, 0));
}

}  // namespace

void simplify_convolutions(LoweredGraph& lowered) {
  GraphEditor editor(lowered.graph);
  for (NodeId id = 0; id < editor.node_count(); ++id) {
    if (editor.removed(id) || !is_multiplication(editor, editor.node(id))) continue;
    const Node node = editor.node(id);
    editor.remove(id);
    editor.add({node.name,
                Pointwise{.mode = PointwiseMode::mul},
                {node.inputs[ConvBackwardData::dy], node.inputs[ConvBackwardData::w], kNoTensor},
                node.outputs,
                node.compute});
    lowered.notes.push_back(
        fmt::format("'{}' has one filter with one tap: now a multiplication", node.name));
  }
  editor.finish();
}

}  // namespace ashlar

// The pass that lets pointwise operations broadcast operands that a graph expands explicitly: later
// passes match the same patterns in both forms.
#include <fmt/format.h>

#include <utility>

#include "plan/graph_editor.hpp"
#include "plan/lowered.hpp"

namespace ashlar {

namespace {

// The operand of an identity that only expands it to `id`; kNoTensor if there is none.
TensorId before_expansion(const GraphEditor& editor, TensorId id) {
  const Node* node = editor.produced_by(id, PointwiseMode::identity);
  if (node == nullptr || std::get<Pointwise>(node->op).alpha1 != 1.0) return kNoTensor;
  const Tensor &x = editor.tensor(node->inputs[Pointwise::x]), &y = editor.tensor(id);
  const bool expands = x.dims != y.dims && x.dims.rank() == y.dims.rank() && x.dtype == y.dtype;
  return expands ? node->inputs[Pointwise::x] : kNoTensor;
}

// The extents that the operands of a node give its result, with `x` in place of `operand`.
Dims broadcast_dims(const GraphEditor& editor, const Node& node, int operand, TensorId x) {
  Dims result = editor.tensor(x).dims;
  for (int slot = 0; std::cmp_less(slot, node.inputs.size()); ++slot) {
    const TensorId other = node.inputs[static_cast<std::size_t>(slot)];
    if (slot == operand || other == kNoTensor) continue;
    const Dims& dims = editor.tensor(other).dims;
    if (dims.rank() != result.rank()) return {};
    for (int axis = 0; axis < dims.rank(); ++axis)
      if (result[axis] == 1) result[axis] = dims[axis];
  }
  return result;
}

}  // namespace

void drop_expansions(LoweredGraph& lowered) {
  GraphEditor editor(lowered.graph);
  int count = 0;
  for (NodeId id = 0; id < editor.node_count(); ++id) {
    const auto* op = std::get_if<Pointwise>(&editor.node(id).op);
    if (op == nullptr || op->mode == PointwiseMode::gen_index) continue;
    for (int slot = 0; std::cmp_less(slot, editor.node(id).inputs.size()); ++slot) {
      const Node& node = editor.node(id);
      const TensorId operand = node.inputs[static_cast<std::size_t>(slot)];
      const TensorId x = operand == kNoTensor ? kNoTensor : before_expansion(editor, operand);
      if (x == kNoTensor) continue;
      const bool expands_itself = op->mode == PointwiseMode::identity;
      if (!expands_itself &&
          broadcast_dims(editor, node, slot, x) != editor.tensor(node.outputs[0]).dims)
        continue;
      editor.set_input(id, slot, x);
      ++count;
    }
  }
  if (count == 0) return;
  editor.finish();
  lowered.notes.push_back(fmt::format("broadcast {} expanded operand(s)", count));
}

}  // namespace ashlar

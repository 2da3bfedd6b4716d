// The pass that ends broadcasting across ranks: later passes and engines see operands of equal
// rank.
#include <algorithm>

#include "plan/graph_editor.hpp"
#include "plan/lowered.hpp"

namespace ashlar {

namespace {

int result_rank(const GraphEditor& editor, const Node& node) {
  return editor.tensor(node.outputs[0]).dims.rank();
}

// Whether pointwise nodes with results of that rank are all that reads the tensor.
bool is_read_at_rank(const GraphEditor& editor, TensorId id, int rank) {
  return std::ranges::all_of(editor.consumers(id), [&](NodeId reader) {
    const Node& node = editor.node(reader);
    return std::holds_alternative<Pointwise>(node.op) && result_rank(editor, node) == rank;
  });
}

// The tensor with more leading axes of extent 1, or with fewer. A constant or scalar has one value
// and changes its dims; another tensor is reshaped, which becomes a view.
TensorId aligned(GraphEditor& editor, Graph& graph, TensorId id, int rank) {
  const Tensor from = editor.tensor(id);
  if (from.kind == TensorKind::constant)
    return editor.constant(from.name, from.value, from.dtype, rank);
  if (from.kind == TensorKind::scalar && is_read_at_rank(editor, id, rank)) {
    Tensor& scalar = GraphAccess::data(graph).tensors[static_cast<std::size_t>(id)];
    scalar.dims = Dims::filled(rank, 1);
    scalar.strides = row_major.strides_for(scalar.dims);
    return id;
  }
  Dims dims = Dims::filled(rank, 1);
  if (from.dims.rank() < rank) std::copy_backward(from.dims.begin(), from.dims.end(), dims.end());
  const TensorId to = editor.add_intermediate(from.name + ".aligned", dims, from.dtype);
  editor.add({.name = from.name + ".align", .op = Reshape{dims}, .inputs = {id}, .outputs = {to}});
  return to;
}

}  // namespace

void align_ranks(LoweredGraph& lowered) {
  GraphEditor editor(lowered.graph);
  int count = 0;
  for (NodeId id = 0, nodes = editor.node_count(); id < nodes; ++id) {
    if (!std::holds_alternative<Pointwise>(editor.node(id).op)) continue;
    const int rank = result_rank(editor, editor.node(id));
    const int slots = static_cast<int>(editor.node(id).inputs.size());
    for (int slot = 0; slot < slots; ++slot) {
      const TensorId operand = editor.node(id).inputs[static_cast<std::size_t>(slot)];
      if (operand == kNoTensor || editor.tensor(operand).dims.rank() == rank) continue;
      editor.set_input(id, slot, aligned(editor, lowered.graph, operand, rank));
      ++count;
    }
  }
  if (count == 0) return;
  editor.finish();
  lowered.notes.push_back(fmt::format("aligned the rank of {} operand(s)", count));
}

}  // namespace ashlar

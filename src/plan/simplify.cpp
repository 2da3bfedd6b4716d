// Removal of dead nodes and merging of equal nodes; the sequence of lowering passes.
#include <unordered_map>

#include <fmt/format.h>

#include "graph/op_traits.hpp"
#include "graph/visit_attributes.hpp"
#include "plan/graph_editor.hpp"
#include "plan/lowered.hpp"

namespace ashlar {

namespace {

int remove_dead_nodes(GraphEditor& editor) {
  int removed = 0;
  for (NodeId id = editor.node_count(); id-- > 0;) {
    Node& node = editor.node(id);
    const OpTraits& traits = traits_of(node.op);
    bool needed = false;
    for (TensorId output : node.outputs)
      needed = needed || (output != kNoTensor && editor.uses(output) > 0);
    if (!needed) {
      editor.remove(id);
      ++removed;
      continue;
    }
    for (std::size_t slot = 0; slot < node.outputs.size(); ++slot)
      if (traits.outputs[slot].need == Slot::Need::optional && node.outputs[slot] != kNoTensor &&
          editor.uses(node.outputs[slot]) == 0)
        node.outputs[slot] = kNoTensor;
  }
  return removed;
}

// gen_index depends on coordinates only. Its operand supplies the extents, which are already
// inferred; keeping it would add a false dependency on that operand's producer.
void detach_index_operands(GraphEditor& editor) {
  TensorId nothing = kNoTensor;
  for (NodeId id = 0; id < editor.node_count(); ++id) {
    const auto* op = std::get_if<Pointwise>(&editor.node(id).op);
    if (!op || op->mode != PointwiseMode::gen_index) continue;
    if (nothing == kNoTensor) nothing = editor.add_constant("no_operand", 0.0);
    editor.set_input(id, Pointwise::x, nothing);
  }
}

// Whether `a` and `b` compute the same results with the same dims, strides and dtypes.
bool are_equal(const GraphEditor& editor, const Node& a, const Node& b) {
  if (a.inputs != b.inputs || a.compute != b.compute || a.outputs.size() != b.outputs.size())
    return false;
  for (std::size_t slot = 0; slot < a.outputs.size(); ++slot) {
    if ((a.outputs[slot] == kNoTensor) != (b.outputs[slot] == kNoTensor)) return false;
    if (a.outputs[slot] == kNoTensor) continue;
    const Tensor& first = editor.tensor(a.outputs[slot]);
    const Tensor& second = editor.tensor(b.outputs[slot]);
    if (second.kind != TensorKind::intermediate) return false;
    if (first.dims != second.dims || first.dtype != second.dtype) return false;
  }
  return same_attributes(a.op, b.op);
}

int merge_equal_nodes(GraphEditor& editor) {
  int merged = 0;
  std::unordered_map<TensorId, std::vector<NodeId>> by_first_input;
  for (NodeId id = 0; id < editor.node_count(); ++id) {
    const Node& node = editor.node(id);
    const TensorId key = node.inputs.empty() ? kNoTensor : node.inputs[0];
    bool is_copy = false;
    for (NodeId other : by_first_input[key]) {
      if (!are_equal(editor, editor.node(other), node)) continue;
      for (std::size_t slot = 0; slot < node.outputs.size(); ++slot)
        if (node.outputs[slot] != kNoTensor)
          editor.replace_uses(node.outputs[slot], editor.node(other).outputs[slot]);
      editor.remove(id);
      ++merged;
      is_copy = true;
      break;
    }
    if (!is_copy) by_first_input[key].push_back(id);
  }
  return merged;
}

}  // namespace

void simplify(LoweredGraph& lowered) {
  GraphEditor editor(lowered.graph);
  detach_index_operands(editor);
  const int merged = merge_equal_nodes(editor);
  const int removed = remove_dead_nodes(editor);
  editor.finish();
  if (merged) lowered.notes.push_back(fmt::format("merged {} equal node(s)", merged));
  if (removed) lowered.notes.push_back(fmt::format("removed {} dead node(s)", removed));
}

LoweredGraph lower(const Graph& graph, bool fuse, bool expand, const EngineQuery& engines) {
  LoweredGraph lowered{graph.clone(), {}, {}};
  align_ranks(lowered);
  drop_expansions(lowered);
  if (expand) expand_compositions(lowered);
  simplify(lowered);
  if (fuse) {
    raise_patterns(lowered, engines);
    if (expand && expand_attention(lowered, engines)) simplify(lowered);
    move_reshapes(lowered);
    fold_views(lowered, engines);
  } else {
    for (std::size_t i = 0; i < lowered.graph.tensors().size(); ++i)
      lowered.views.push_back(view_of(lowered.graph, static_cast<TensorId>(i)));
  }
  return lowered;
}

}  // namespace ashlar

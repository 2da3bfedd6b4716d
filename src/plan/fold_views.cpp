// The pass that turns transposes, slices, reshapes, expansions and widening casts into views.
#include <utility>

#include "plan/graph_editor.hpp"
#include "plan/lowered.hpp"

namespace ashlar {

namespace {

// A transpose, slice, reshape or expansion (identity to larger dims) of `view` as a view; nullopt
// if strides cannot express it.
std::optional<View> moved_view(const Op& op, const View& view, const Dims& dims) {
  View result = view;
  result.dims = dims;
  if (const auto* transpose = std::get_if<Transpose>(&op)) {
    for (int axis = 0; axis < dims.rank(); ++axis)
      result.strides[axis] = view.strides[static_cast<int>(transpose->permutation[axis])];
    return result;
  }
  if (const auto* slice = std::get_if<Slice>(&op)) {
    if (element_count(dims) == 0) return std::nullopt;
    for (int axis = 0; axis < dims.rank(); ++axis) {
      result.offset += slice->start[axis] * view.strides[axis];
      result.strides[axis] = view.strides[axis] * slice->step[axis];
    }
    return result;
  }
  if (std::holds_alternative<Reshape>(op)) {
    const auto strides = reshaped_strides(view, dims);
    if (!strides) return std::nullopt;
    result.strides = *strides;
    return result;
  }
  if (std::holds_alternative<Pointwise>(op) && element_count(dims) > 0)
    return broadcast_to(view, dims);
  return std::nullopt;
}

// Whether every value of type `from` is representable in type `to`.
bool widens(DType from, DType to) {
  if (from == to) return true;
  switch (to) {
    case DType::f64: return from != DType::i64;
    case DType::f32: return bit_width(from) < 32;
    case DType::f16: return bit_width(from) <= 8 && from != DType::e8m0;
    case DType::bf16: return bit_width(from) <= 8;
    case DType::e4m3: return from == DType::e2m1;
    case DType::i64: return is_integer(from) || from == DType::boolean;
    case DType::i32: return (is_integer(from) && bit_width(from) <= 8) || from == DType::boolean;
    case DType::u32: return from == DType::u8 || from == DType::u4 || from == DType::boolean;
    case DType::i8: return from == DType::i4 || from == DType::u4 || from == DType::boolean;
    case DType::u8: return from == DType::u4 || from == DType::boolean;
    default: return false;
  }
}

// Whether the node is an identity that only renames, widens or expands.
bool is_renaming(const GraphEditor& editor, const Node& node) {
  const auto* op = std::get_if<Pointwise>(&node.op);
  if (!op || op->mode != PointwiseMode::identity || op->alpha1 != 1.0) return false;
  const Tensor& x = editor.tensor(node.inputs[0]);
  const Tensor& y = editor.tensor(node.outputs[0]);
  const bool is_number = x.kind == TensorKind::constant || x.kind == TensorKind::scalar;
  return widens(x.dtype, y.dtype) &&
         (x.dims == y.dims ? x.kind != TensorKind::constant : !is_number);
}

bool is_movement(const Node& node) {
  return std::holds_alternative<Transpose>(node.op) || std::holds_alternative<Reshape>(node.op);
}

// [heads -> transpose -> reshape] joins the heads of attention. The reshape is no view of row-major
// heads, so it would copy. Gives the producer's result the strides that make it a view, where an
// engine stores through them.
void store_joined(GraphEditor& editor, Graph& graph, const EngineQuery& engines) {
  for (NodeId id = 0; id < editor.node_count(); ++id) {
    if (!std::holds_alternative<Reshape>(editor.node(id).op)) continue;
    std::vector<NodeId> chain = {id};  // from the reshape back to the producer's result
    TensorId root = editor.node(id).inputs[0];
    for (const Node* before = editor.producer(root); before && is_movement(*before);
         before = editor.producer(root)) {
      chain.push_back(editor.producer_id(root));
      root = before->inputs[0];
    }
    const Node* producer = editor.producer(root);
    const Tensor& result = editor.tensor(root);
    // Elements that share a byte stay where they are: neighbours may have different writers.
    if (chain.size() < 2 || producer == nullptr || result.kind != TensorKind::intermediate ||
        result.ragged_offset != kNoTensor || bit_width(result.dtype) < 8 ||
        std::holds_alternative<Pointwise>(producer->op) || producer->outputs[0] != root)
      continue;
    std::optional<View> forward = view_of(graph, root);
    for (auto step = chain.rbegin(); step != chain.rend() && forward; ++step)
      forward = moved_view(editor.node(*step).op, *forward,
                           editor.tensor(editor.node(*step).outputs[0]).dims);
    if (forward) continue;
    const Dims& joined = editor.tensor(editor.node(id).outputs[0]).dims;
    std::optional<View> back = View{root, 0, result.dtype, joined, row_major.strides_for(joined)};
    for (const NodeId step : chain) {
      const Dims& source = editor.tensor(editor.node(step).inputs[0]).dims;
      const auto undo = back ? inverse_movement(editor.node(step).op, source) : std::nullopt;
      back = undo ? moved_view(*undo, *back, source) : std::nullopt;
    }
    if (!back) continue;
    Dims& strides = GraphAccess::data(graph).tensors[static_cast<std::size_t>(root)].strides;
    const Dims before = std::exchange(strides, back->strides);
    if (!engines.has_fast_engine(graph, *producer)) strides = before;
  }
}

}  // namespace

void fold_views(LoweredGraph& lowered, const EngineQuery& engines) {
  GraphEditor editor(lowered.graph);
  store_joined(editor, lowered.graph, engines);
  auto& views = lowered.views;
  for (std::size_t i = 0; i < lowered.graph.tensors().size(); ++i)
    views.push_back(view_of(lowered.graph, static_cast<TensorId>(i)));
  const auto view = [&](TensorId id) -> View& { return views[static_cast<std::size_t>(id)]; };

  // From the outputs backwards: an intermediate that is transposed or reshaped into `y` is written
  // directly to y's memory. Its other readers read it there.
  for (NodeId id = editor.node_count(); id-- > 0;) {
    const Node& node = editor.node(id);
    if (node.inputs.size() != 1 || node.outputs.size() != 1) continue;
    const TensorId x = node.inputs[0], y = node.outputs[0];
    const Tensor& source = editor.tensor(x);
    const Tensor& target = editor.tensor(y);
    if (source.kind != TensorKind::intermediate || view(x).tensor != x ||
        source.dtype != target.dtype)
      continue;
    // Useful only if y is an output or a view of one.
    if (target.kind != TensorKind::output && view(y).tensor == y) continue;
    const auto undo = inverse_movement(node.op, source.dims);
    const auto moved = undo ? moved_view(*undo, view(y), source.dims) : std::nullopt;
    // Writing through a broadcasting view would make elements collide; inverses never broadcast.
    if (!moved) continue;
    view(x) = *moved;
    editor.remove(id);
  }
  // From the inputs forwards: an intermediate that is a view of `x` needs no memory.
  for (NodeId id = 0; id < editor.node_count(); ++id) {
    if (editor.removed(id)) continue;
    const Node& node = editor.node(id);
    const bool renaming = is_renaming(editor, node);
    if (node.inputs.size() != 1 && !renaming) continue;
    const TensorId x = node.inputs[0], y = node.outputs[0];
    if (x == kNoTensor || editor.tensor(x).ragged_offset != kNoTensor ||
        editor.tensor(x).kind == TensorKind::constant)
      continue;
    const Tensor source = editor.tensor(x), target = editor.tensor(y);
    const bool has_no_memory = target.kind == TensorKind::intermediate && view(y).tensor == y;
    if (renaming && !has_no_memory) continue;
    if (renaming && source.dims == target.dims) {
      editor.replace_uses(y, x);
      editor.remove(id);
      continue;
    }
    const auto moved = moved_view(node.op, view(x), target.dims);
    if (!moved) continue;
    if (has_no_memory && source.dtype == target.dtype) {
      view(y) = *moved;
      editor.remove(id);
    } else if (renaming) {  // expands and widens: the readers widen
      const TensorId window = editor.add_intermediate(source.name + ".expanded", target.dims,
                                                      source.dtype, target.strides);
      views.push_back(*moved);
      editor.replace_uses(y, window);
      editor.remove(id);
    } else {
      // y needs memory or a conversion: an identity that reads the view.
      const TensorId window =
          editor.add_intermediate(source.name + ".view", target.dims, source.dtype, target.strides);
      views.push_back(*moved);
      editor.node(id).inputs = {window};
      editor.node(id).op = Pointwise{};
    }
  }
  editor.finish();
}

}  // namespace ashlar

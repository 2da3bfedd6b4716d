// The pass that moves pointwise operations in front of reshapes and transposes of GEMM results.
#include <set>

#include <fmt/format.h>

#include "graph/op_traits.hpp"
#include "graph/visit_attributes.hpp"
#include "plan/graph_editor.hpp"
#include "plan/lowered.hpp"

namespace ashlar {

namespace {

// The dims of an operand that broadcasts to `from` after `from` is reshaped to `to`. Axes of `from`
// and `to` form groups with equal element counts; the operand must span a whole group or be 1 along
// it. nullopt if it is 1 along a part of a group.
std::optional<Dims> regrouped(const Dims& operand, const Dims& from, const Dims& to) {
  Dims result = Dims::filled(to.rank(), 1);
  int old_axis = from.rank(), new_axis = to.rank();
  while (old_axis > 0 || new_axis > 0) {
    const int old_end = old_axis, new_end = new_axis;
    std::int64_t old_count = 1, new_count = 1;
    do {
      if (old_axis > 0 && old_count <= new_count)
        old_count *= from[--old_axis];
      else
        new_count *= to[--new_axis];
    } while (old_count != new_count);
    bool is_whole = true, is_one = true;
    for (int axis = old_axis; axis < old_end; ++axis) {
      is_whole = is_whole && operand[axis] == from[axis];
      is_one = is_one && operand[axis] == 1;
    }
    if (!is_whole && !is_one) return std::nullopt;
    for (int axis = new_axis; is_whole && axis < new_end; ++axis) result[axis] = to[axis];
  }
  return result;
}

// A reshape or transpose of `x` to `y`.
struct Movement {
  Op op;
  TensorId x, y;

  bool is_transpose() const { return std::holds_alternative<Transpose>(op); }
  // The dims of an operand of y's rank after y is replaced by x.
  std::optional<Dims> moved_back(const Dims& operand, const Dims& x_dims,
                                 const Dims& y_dims) const {
    if (!is_transpose()) return regrouped(operand, y_dims, x_dims);
    Dims result = operand;
    for (int axis = 0; axis < operand.rank(); ++axis)
      result[static_cast<int>(std::get<Transpose>(op).permutation[axis])] = operand[axis];
    return result;
  }
};

class ReshapeMover {
 public:
  explicit ReshapeMover(LoweredGraph& lowered) : lowered_(lowered), editor_(lowered.graph) {}

  void run() {
    // Nodes added by this loop are appended and visited as well.
    for (NodeId id = 0; id < editor_.node_count(); ++id) {
      if (editor_.removed(id)) continue;
      const Node& node = editor_.node(id);
      if (!comes_from_gemm(node)) continue;
      gemm_values_.insert(node.outputs[0]);
      if (converts(node)) {
        convert_first(id);
        continue;
      }
      const auto* op = std::get_if<Pointwise>(&node.op);
      if (op == nullptr || op->mode == PointwiseMode::gen_index) continue;
      for (const TensorId input : node.inputs)
        if (const auto movement = movement_to(input, node); movement && move(id, *movement)) break;
    }
    editor_.finish();
  }

 private:
  static bool is_movement(const Node& node) {
    return std::holds_alternative<Reshape>(node.op) || std::holds_alternative<Transpose>(node.op);
  }

  bool comes_from_gemm(const Node& node) const {
    if (excluded_.contains(node.outputs[0])) return false;
    if (traits_of(node.op).is_gemm_like) return true;
    if (!is_movement(node) && !std::holds_alternative<Pointwise>(node.op)) return false;
    for (const TensorId input : node.inputs)
      if (input != kNoTensor && gemm_values_.contains(input) &&
          (is_movement(node) || editor_.tensor(input).dims == editor_.tensor(node.outputs[0]).dims))
        return true;
    return false;
  }

  // A reshape or transpose that also converts the dtype.
  bool converts(const Node& node) const {
    return is_movement(node) &&
           editor_.tensor(node.inputs[0]).dtype != editor_.tensor(node.outputs[0]).dtype;
  }
  void convert_first(NodeId id) {
    const TensorId x = editor_.node(id).inputs[0];
    const DType compute = editor_.node(id).compute;
    const Tensor from = editor_.tensor(x);
    const DType to = editor_.tensor(editor_.node(id).outputs[0]).dtype;
    const TensorId converted = editor_.add_intermediate(from.name + ".converted", from.dims, to);
    gemm_values_.insert(converted);
    editor_.add(
        {from.name + ".converted", Pointwise{}, {x, kNoTensor, kNoTensor}, {converted}, compute});
    editor_.set_input(id, 0, converted);
  }

  // The reshape or transpose of a GEMM result that produces `input` of `node`, with the dims of the
  // node's result.
  std::optional<Movement> movement_to(TensorId input, const Node& node) const {
    if (input == kNoTensor || !gemm_values_.contains(input)) return std::nullopt;
    const Tensor& y = editor_.tensor(input);
    if (y.dims != editor_.tensor(node.outputs[0]).dims || element_count(y.dims) == 0)
      return std::nullopt;
    const Node* made = editor_.produced_by<Reshape>(input);
    if (made == nullptr) made = editor_.produced_by<Transpose>(input);
    if (made == nullptr) return std::nullopt;
    return Movement{made->op, made->inputs[0], input};
  }

  // Whether strides can express the tensor with the extents `dims`, so that nothing is copied.
  bool is_view(TensorId id, const Movement& movement, const Dims& dims) const {
    const Tensor& tensor = editor_.tensor(id);
    if (tensor.ragged_offset != kNoTensor) return false;
    return movement.is_transpose() || tensor.kind == TensorKind::constant ||
           reshaped_strides(view_of(lowered_.graph, id), dims).has_value();
  }

  // Makes `id` read the movement's x and moves its result instead.
  bool move(NodeId id, const Movement& movement) {
    const Node node = editor_.node(id);
    const TensorId result = node.outputs[0];
    const Dims from = editor_.tensor(movement.y).dims, to = editor_.tensor(movement.x).dims;
    if (!is_view(result, movement, to)) return false;
    std::vector<std::optional<Dims>> operands;
    for (const TensorId input : node.inputs) {
      operands.emplace_back();
      if (input == kNoTensor || input == movement.y) continue;
      operands.back() = movement.moved_back(editor_.tensor(input).dims, to, from);
      if (!operands.back() || !is_view(input, movement, *operands.back())) return false;
    }
    Node moved = node;
    for (std::size_t slot = 0; slot < node.inputs.size(); ++slot)
      if (node.inputs[slot] == movement.y)
        moved.inputs[slot] = movement.x;
      else if (operands[slot])
        moved.inputs[slot] = seen_as(node.inputs[slot], movement, *operands[slot]);
    const Tensor of_result = editor_.tensor(result);
    moved.outputs[0] = editor_.add_intermediate(of_result.name + ".before", to, of_result.dtype);
    const NodeId old = editor_.producer_id(movement.y);
    const std::string name = editor_.node(old).name;
    editor_.remove(id);
    for (const TensorId input : node.inputs) remove_unread(input);
    const TensorId before = moved.outputs[0];
    gemm_values_.insert(before);
    editor_.add(std::move(moved));
    editor_.add({name, movement.op, {before}, {result}, node.compute});
    if (editor_.uses(movement.y) == 0) editor_.remove(old);
    lowered_.notes.push_back(fmt::format("moved '{}' before '{}'", node.name, name));
    return true;
  }

  // Removes the producer of a value that nothing reads any more, and what only that one read.
  void remove_unread(TensorId id) {
    const NodeId made = id == kNoTensor ? kNoNode : editor_.producer_id(id);
    if (made == kNoNode || !std::holds_alternative<Pointwise>(editor_.node(made).op) ||
        editor_.uses(id) != 0)
      return;
    editor_.remove(made);
    const std::vector<TensorId> inputs = editor_.node(made).inputs;
    for (const TensorId input : inputs) remove_unread(input);
  }

  // Whether the inverse movement to `dims` undoes the movement `made`.
  bool undoes(const Movement& movement, const Node& made, const Dims& dims) const {
    if (made.op.index() != movement.op.index() || converts(made)) return false;
    return movement.is_transpose() ? same_attributes(made.op, movement.op)
                                   : editor_.tensor(made.inputs[0]).dims == dims;
  }

  // The producer of an operand if nothing else reads it and it could work on moved operands too:
  // it can then be fused with the GEMM as well.
  const Node* moved_along(TensorId id, const Movement& movement, const Dims& x_dims,
                          const Dims& y_dims) const {
    const Node* made = editor_.produced_by<Pointwise>(id);
    if (made == nullptr || std::get<Pointwise>(made->op).mode == PointwiseMode::gen_index ||
        editor_.uses(id) != 1)
      return nullptr;
    for (const TensorId input : made->inputs) {
      if (input == kNoTensor) continue;
      const auto moved = movement.moved_back(editor_.tensor(input).dims, x_dims, y_dims);
      if (!moved || !is_view(input, movement, *moved)) return nullptr;
    }
    return made;
  }

  TensorId seen_as(TensorId id, const Movement& movement, const Dims& dims) {
    const Tensor tensor = editor_.tensor(id);
    if (const Node* made = editor_.producer(id); made && undoes(movement, *made, dims))
      return made->inputs[0];
    const Dims to = editor_.tensor(movement.x).dims, from = editor_.tensor(movement.y).dims;
    if (const Node* made = moved_along(id, movement, to, from)) {
      Node moved = *made;
      for (TensorId& input : moved.inputs)
        if (input != kNoTensor)
          input =
              seen_as(input, movement, *movement.moved_back(editor_.tensor(input).dims, to, from));
      moved.outputs[0] = editor_.add_intermediate(tensor.name + ".before", dims, tensor.dtype);
      const TensorId result = moved.outputs[0];
      editor_.add(std::move(moved));
      return result;
    }
    if (tensor.kind == TensorKind::constant)
      return editor_.add_constant(tensor.name, tensor.value, tensor.dtype, dims.rank());
    const TensorId view = editor_.add_intermediate(tensor.name + ".view", dims, tensor.dtype);
    excluded_.insert(view);
    editor_.add({tensor.name + ".view", *inverse_movement(movement.op, dims), {id}, {view}, f32});
    return view;
  }

  LoweredGraph& lowered_;
  GraphEditor editor_;
  std::set<TensorId> gemm_values_;  // values derived pointwise from GEMM results, reshaped or not
  std::set<TensorId> excluded_;  // views added here for an operand: moving them would not terminate
};

}  // namespace

void move_reshapes(LoweredGraph& lowered) { ReshapeMover(lowered).run(); }

}  // namespace ashlar

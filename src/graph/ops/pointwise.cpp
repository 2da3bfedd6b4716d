// Inference and validation of pointwise operations.
#include "graph/enum_names.hpp"
#include "graph/ops/infer.hpp"
#include "graph/pointwise_traits.hpp"

namespace ashlar {

void infer_pointwise(NodeContext& node) {
  auto& op = node.op<Pointwise>();
  const int operands = operand_count(op.mode);
  for (int slot = 0; slot < 3; ++slot) {
    const Slot& row = node.schema().inputs[static_cast<std::size_t>(slot)];
    if (slot >= operands && node.has_input(slot))
      node.reject(fmt::format("input {}", row.name), fmt::format("'{}'", node.input(slot).name),
                  "nothing: {} takes {} operand(s)", enum_name(op.mode), operands);
    if (slot < operands && !node.has_input(slot))
      node.reject(fmt::format("input {}", row.name), "nothing", "a tensor: {} takes {} operands",
                  enum_name(op.mode), operands);
  }

  const int rank = node.input(0).dims.rank();
  Dims y = node.input(0).dims;
  for (int slot = 1; slot < operands; ++slot) {
    const Dims& dims = node.input(slot).dims;
    if (dims.rank() != rank)
      node.reject(fmt::format("rank of {}", node.input_name(slot)), dims.rank(),
                  "{}, that of the first operand", rank);
    for (int axis = 0; axis < rank; ++axis) {
      if (y[axis] != dims[axis] && y[axis] != 1 && dims[axis] != 1)
        node.reject(fmt::format("axis {} of {}", axis, node.input_name(slot)), dims[axis],
                    "{} or 1", y[axis]);
      if (y[axis] == 1) y[axis] = dims[axis];
    }
  }
  if (op.mode == PointwiseMode::gen_index) node.normalise_axis("axis", op.axis, rank);
  if (op.relu_lower_clip > op.relu_upper_clip)
    node.reject("relu_lower_clip", op.relu_lower_clip, "at most relu_upper_clip = {}",
                op.relu_upper_clip);
  if (op.softplus_beta == 0.0)
    node.reject("softplus_beta", op.softplus_beta, "a value other than 0");

  // dtype and layout follow the first operand with more than one element; comparisons yield
  // booleans.
  const auto is_single = [&](int slot) { return element_count(node.input(slot).dims) == 1; };
  const int leader = operands > 1 && is_single(Pointwise::x) && !is_single(Pointwise::b)
                         ? Pointwise::b
                         : Pointwise::x;
  const bool is_boolean = gives_boolean(op.mode);
  node.infer_dims(Pointwise::y, y);
  node.infer_dtype(Pointwise::y, is_boolean                            ? boolean
                                 : op.mode == PointwiseMode::gen_index ? i32
                                                                       : node.input(leader).dtype);
  int layout = leader;
  for (int slot = operands - 1; slot >= 0; --slot)
    if (node.input(slot).dims == y) layout = slot;
  node.infer_strides_like(Pointwise::y, node.input(layout));
}

}  // namespace ashlar

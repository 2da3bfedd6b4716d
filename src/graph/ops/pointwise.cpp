// Definition of pointwise operations.
#include <algorithm>
#include <array>

#include "graph/enum_names.hpp"
#include "graph/ops/define.hpp"
#include "graph/ops/pointwise_gradient.hpp"
#include "graph/pointwise_traits.hpp"

namespace ashlar {

namespace {

// Bitwise modes compute in the dtype of x, whose width and sign define the result.
void check_bitwise(NodeContext& node, const Pointwise& op) {
  const DType dtype = node.input(Pointwise::x).dtype;
  for (int slot = 0; slot < operand_count(op.mode); ++slot) {
    const bool bool_has_meaning = !is_shift(op.mode) && node.input(slot).dtype == boolean;
    if (!bool_has_meaning) node.require_integer(slot);
    if (!is_shift(op.mode) && node.input(slot).dtype != dtype)
      node.reject(fmt::format("dtype of {}", node.input_name(slot)), node.input(slot).dtype,
                  "{}, that of x: cast first", to_string(dtype));
  }
  const auto no_factor = [&](const char* name, double factor) {
    if (factor != 1.0) node.reject(name, factor, "1: {} takes no factors", enum_name(op.mode));
  };
  no_factor("alpha1", op.alpha1);
  no_factor("alpha2", op.alpha2);
  node.node().compute = dtype;
}

// The result of identity and gen_index may be larger than x: any dims to which x broadcasts. A
// scalar or constant broadcasts to all of them.
bool expands_to(const Dims& from, bool is_number, const Dims& to) {
  if (is_number) return !to.empty();
  if (from.rank() > to.rank()) return false;
  const int missing = to.rank() - from.rank();
  for (int axis = 0; axis < from.rank(); ++axis)
    if (from[axis] != to[missing + axis] && from[axis] != 1) return false;
  return true;
}

void infer_pointwise(NodeContext& node) {
  auto& op = node.op<Pointwise>();
  const int operands = operand_count(op.mode);
  for (int slot = 0; slot < 3; ++slot) {
    const Slot& row = node.traits().inputs[static_cast<std::size_t>(slot)];
    if (slot >= operands && node.has_input(slot))
      node.reject(fmt::format("input {}", row.name), fmt::format("'{}'", node.input(slot).name),
                  "nothing: {} takes {} operand(s)", enum_name(op.mode), operands);
    if (slot < operands && !node.has_input(slot))
      node.reject(fmt::format("input {}", row.name), "nothing", "a tensor: {} takes {} operands",
                  enum_name(op.mode), operands);
  }

  // As in NumPy: the last axes are aligned, missing leading axes count as 1. A scalar or constant
  // has no axes of its own: its rank counts only where all operands are such.
  const auto is_number = [&](int slot) {
    const TensorKind kind = node.input(slot).kind;
    return kind == TensorKind::scalar || kind == TensorKind::constant;
  };
  int rank = 0, number_rank = 0;
  for (int slot = 0; slot < operands; ++slot) {
    int& most = is_number(slot) ? number_rank : rank;
    most = std::max(most, node.input(slot).dims.rank());
  }
  if (rank == 0) rank = number_rank;
  Dims y = Dims::filled(rank, 1);
  for (int slot = 0; slot < operands; ++slot) {
    if (is_number(slot)) continue;
    const Dims& dims = node.input(slot).dims;
    for (int axis = 0; axis < dims.rank(); ++axis) {
      std::int64_t& extent = y[rank - dims.rank() + axis];
      if (extent != dims[axis] && extent != 1 && dims[axis] != 1)
        node.reject(fmt::format("axis {} of {}", axis, node.input_name(slot)), dims[axis],
                    "{} or 1", extent);
      if (extent == 1) extent = dims[axis];
    }
  }
  const bool may_expand = op.mode == PointwiseMode::identity || op.mode == PointwiseMode::gen_index;
  if (may_expand && !node.output(Pointwise::y).dims.empty()) {
    const Dims& wanted = node.output(Pointwise::y).dims;
    if (!expands_to(y, is_number(Pointwise::x), wanted))
      node.reject(fmt::format("dims of y '{}'", node.output(Pointwise::y).name), wanted,
                  "{}, or dims to which it broadcasts", to_string(y));
    y = wanted;
  }
  if (op.mode == PointwiseMode::gen_index) node.normalise_axis("axis", op.axis, y.rank());
  if (is_bitwise(op.mode)) check_bitwise(node, op);
  if (op.relu_lower_clip > op.relu_upper_clip)
    node.reject("relu_lower_clip", op.relu_lower_clip, "at most relu_upper_clip = {}",
                op.relu_upper_clip);
  if (op.softplus_beta == 0.0)
    node.reject("softplus_beta", op.softplus_beta, "a value other than 0");

  // dtype and layout follow the first operand with more than one element; comparisons yield
  // booleans.
  const auto is_single = [&](int slot) { return element_count(node.input(slot).dims) == 1; };
  const int leader =
      operands > 1 && !is_bitwise(op.mode) && is_single(Pointwise::x) && !is_single(Pointwise::b)
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

// All values are defined. These use all bits of narrow types, with a few shift counts out of range;
// or give results that are not NaN.
Contents pointwise_contents(const NodeShapes& node, int slot) {
  const PointwiseMode mode = node.op<Pointwise>().mode;
  if (is_shift(mode) && slot == Pointwise::b) return whole_numbers(0, 7, 3, 60);
  if (is_bitwise(mode) && node.input_dtype(slot) != boolean)
    return whole_numbers(-128, 127, 1 << 20, 1 << 20);
  const auto positive = [&](int operand) {
    return slot == operand ? Contents{.low = 0.25, .high = 2.0} : Contents{};
  };
  switch (mode) {
    case PointwiseMode::sqrt:
    case PointwiseMode::rsqrt:
    case PointwiseMode::log:
    case PointwiseMode::reciprocal:
    case PointwiseMode::pow: return positive(Pointwise::x);
    case PointwiseMode::div:
    case PointwiseMode::mod: return positive(Pointwise::b);
    default: return {};
  }
}

bool is_conversion(const Op& op) {
  const auto& pointwise = std::get<Pointwise>(op);
  return pointwise.mode == PointwiseMode::identity && pointwise.alpha1 == 1.0;
}

std::vector<Value> sample_pointwise(Graph& g, DType t) {
  const Value x = g.input("x", {4, 16}, t);
  const bool logical = t == boolean;
  return {g.pointwise(logical ? PointwiseMode::logical_not : PointwiseMode::abs, std::array{x})};
}

}  // namespace

template <>
OpTraits define_traits<Pointwise>() {
  return {.name = "pointwise",
          .doc_page = "pointwise",
          .infer = infer_pointwise,
          .gradient = pointwise_gradient,
          .sample = sample_pointwise,
          .contents = pointwise_contents,
          .supports_e8m0 = is_conversion};
}

}  // namespace ashlar

// Definition of reductions.
#include "base/checked.hpp"
#include "graph/enum_names.hpp"
#include "graph/ops/define.hpp"

namespace ashlar {

namespace {

// Called once the dims of y are known: the index dtype must hold every position within the reduced
// axes.
void infer_index(NodeContext& node, const Reduction& op, const Dims& y) {
  if (!node.has_output(Reduction::index)) return;
  const bool picks = op.mode == ReductionMode::min || op.mode == ReductionMode::max ||
                     op.mode == ReductionMode::amax;
  if (!picks)
    node.reject("output index", "a tensor", "none: {} picks no element, only min, max and amax do",
                enum_name(op.mode));
  const Tensor& x = node.input(Reduction::x);
  node.infer_dims(Reduction::index, y);
  node.infer_dtype(Reduction::index, i32);
  node.infer_strides_like(Reduction::index, x);
  const DType dtype = node.output(Reduction::index).dtype;
  if (dtype != i32 && dtype != i64) node.reject("dtype of index", dtype, "i32 or i64");
  std::int64_t reduced = 1;
  for (std::int64_t axis : op.axes) reduced = checked_mul(reduced, x.dims[static_cast<int>(axis)]);
  if (dtype == i32 && reduced > std::int64_t{1} << 31)
    node.reject("dtype of index", dtype, "i64 for a reduction of {} elements", reduced);
}

// Booleans: any and all as max and min, their number as add, their share as avg. Infers the dtype
// of y.
void infer_reduction_of_booleans(NodeContext& node, Reduction& op) {
  const bool counts = op.mode == ReductionMode::add || op.mode == ReductionMode::avg;
  // Over nothing, amax is false and max would be -inf.
  if (op.mode == ReductionMode::max) op.mode = ReductionMode::amax;
  if (!counts && op.mode != ReductionMode::min && op.mode != ReductionMode::amax)
    node.reject("mode", enum_name(op.mode), "min, max, amax, add or avg for bool x");
  node.infer_dtype(Reduction::y, !counts ? boolean : op.mode == ReductionMode::add ? i32 : f32);
  const DType dtype = node.output(Reduction::y).dtype;
  if (counts && dtype == boolean)
    node.reject("dtype of y", dtype, "a numeric type: {} of booleans counts", enum_name(op.mode));
  // f32 counts to 2^24 only.
  if (op.mode == ReductionMode::add && !is_floating(dtype))
    node.node().compute = dtype == i64 || dtype == u32 ? i64 : i32;
}

void infer_reduction(NodeContext& node) {
  auto& op = node.op<Reduction>();
  const Tensor& x = node.input(Reduction::x);
  if (x.dtype == boolean) infer_reduction_of_booleans(node, op);
  const int rank = x.dims.rank();

  Dims y = node.output(Reduction::y).dims;
  if (y.empty() || !op.axes.empty()) {
    y = op.axes.empty() ? Dims::filled(rank, 1) : x.dims;
    std::array<bool, kMaxRank> seen{};
    for (std::int64_t& axis : op.axes) {
      node.normalise_axis("axes", axis, rank);
      if (std::exchange(seen[static_cast<std::size_t>(axis)], true))
        node.reject("axes", op.axes, "each axis once");
      y[static_cast<int>(axis)] = 1;
    }
  }
  if (y.rank() != rank) node.reject("rank of y", y.rank(), "{}, that of x", rank);
  op.axes = {};
  for (int axis = 0; axis < rank; ++axis) {
    if (y[axis] != x.dims[axis] && y[axis] != 1)
      node.reject(fmt::format("axis {} of y", axis), y[axis], "1 (reduced) or {} (kept)",
                  x.dims[axis]);
    if (y[axis] != x.dims[axis]) op.axes.push_back(axis);
  }
  node.infer_dims(Reduction::y, y);
  node.infer_dtype(Reduction::y, x.dtype);
  node.infer_strides_like(Reduction::y, x);
  infer_index(node, op, y);
}

std::vector<TailPart> reduction_tails(const Node& node) {
  const ReductionMode mode = std::get<Reduction>(node.op).mode;
  if (has_output(node, Reduction::index) || mode == ReductionMode::mul ||
      mode == ReductionMode::mul_no_zeros)
    return {};
  std::optional<PointwiseMode> f;
  if (mode == ReductionMode::amax || mode == ReductionMode::norm1) f = PointwiseMode::abs;
  if (mode == ReductionMode::norm2) f = PointwiseMode::mul;
  return {{Reduction::y, mode, f}};
}

std::vector<Value> sample_reduction(Graph& g, DType t) {
  return {g.reduce(g.input("x", {4, 16}, t), ReductionMode::add, {1})};
}

// The gradient of the terms that equal the result, in equal parts.
void picked_gradient(GradientContext& c, ReductionMode mode) {
  const Value x = c.input(Reduction::x);
  const Dims axes = c.op<Reduction>().axes;
  Value y = c.output(Reduction::y);
  if (y.dtype() != x.dtype() && !axes.empty()) y = c.graph().reduce(x, mode, axes);  // not rounded
  const Value compared = mode == ReductionMode::amax ? c.pointwise(PointwiseMode::abs, {x}) : x;
  const Value is_picked = c.pointwise(PointwiseMode::cmp_eq, {compared, y});
  const int rank = x.dims().rank();
  Value part = c.dy();
  if (!axes.empty()) {
    const Value one = c.expand(c.constant(1.0, rank), x);
    const Value count = c.graph().reduce(c.select_or_zero(is_picked, one), ReductionMode::add, axes,
                                         {.dtype = c.wide()});
    part = c.pointwise(PointwiseMode::div, {part, count});
  }
  const Value dx = c.select_or_zero(is_picked, part);
  c.add(Reduction::x, mode == ReductionMode::amax ? c.multiply_by_sign(dx, x) : dx);
}

void reduction_gradient(GradientContext& c) {
  const Value x = c.input(Reduction::x), y = c.output(Reduction::y), dy = c.dy();
  const int rank = x.dims().rank();
  const auto divide_or_zero = [&](Value dividend, Value divisor) {
    const Value is_zero = c.pointwise(PointwiseMode::cmp_eq, {divisor, c.constant(0.0, rank)});
    return c.pointwise(
        PointwiseMode::binary_select,
        {c.constant(0.0, rank), c.pointwise(PointwiseMode::div, {dividend, divisor}), is_zero});
  };
  const ReductionMode mode = c.op<Reduction>().mode;
  switch (mode) {
    case ReductionMode::add: return c.add(Reduction::x, c.expand(dy, x));
    case ReductionMode::avg: {
      const double terms = count_of(x.dims()) / std::max(count_of(y.dims()), 1.0);
      return c.add(Reduction::x, c.expand(c.scale(dy, 1.0 / terms), x));
    }
    case ReductionMode::min:
    case ReductionMode::max:
    case ReductionMode::amax: return picked_gradient(c, mode);
    case ReductionMode::norm1: return c.add(Reduction::x, c.multiply_by_sign(c.expand(dy, x), x));
    case ReductionMode::norm2: return c.add(Reduction::x, c.multiply(divide_or_zero(dy, y), x));
    case ReductionMode::mul:
      return c.add(Reduction::x, c.pointwise(PointwiseMode::div, {c.multiply(dy, y), x}));
    case ReductionMode::mul_no_zeros:
      return c.add(Reduction::x, divide_or_zero(c.multiply(dy, y), x));
  }
}

}  // namespace

template <>
OpTraits define_traits<Reduction>() {
  return {.name = "reduction",
          .doc_page = "reduction",
          .infer = infer_reduction,
          .gradient = reduction_gradient,
          .sample = sample_reduction,
          .fused_inputs = {Reduction::x},
          .tails = reduction_tails};
}

}  // namespace ashlar

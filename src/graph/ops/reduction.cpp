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

void infer_reduction(NodeContext& node) {
  auto& op = node.op<Reduction>();
  node.require_arithmetic(Reduction::x);
  const Tensor& x = node.input(Reduction::x);
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

}  // namespace

template <>
OpTraits define_traits<Reduction>() {
  return {.name = "reduction",
          .doc_page = "reduction",
          .infer = infer_reduction,
          .sample = sample_reduction,
          .fused_inputs = {Reduction::x},
          .tails = reduction_tails};
}

}  // namespace ashlar

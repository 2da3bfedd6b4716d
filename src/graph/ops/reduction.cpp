#include "graph/enum_names.hpp"
#include "graph/ops/infer.hpp"

namespace ashlar {

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
}

}  // namespace ashlar

// Definition of tensor_transform.
#include "base/checked.hpp"
#include "graph/ops/define.hpp"

namespace ashlar {

namespace {

// Like NodeContext::normalise_per_axis, over all axes.
void normalise_padding(NodeContext& node, std::string_view name, Dims& values, int rank) {
  if (values.empty()) values = Dims::filled(rank, 0);
  if (values.rank() != rank) node.reject(name, values, "{} values, one per axis", rank);
  for (std::int64_t value : values)
    if (value < 0) node.reject(name, values, "values of at least 0");
}

// Blocks of spatial elements become channels.
Dims folded(NodeContext& node, const TensorTransform& op, Dims dims) {
  for (int axis = 0; axis < op.fold.rank(); ++axis) {
    if (dims[axis + 2] % op.fold[axis] != 0)
      node.reject(fmt::format("padded extent of spatial axis {}", axis), dims[axis + 2],
                  "a multiple of its fold {}", op.fold[axis]);
    dims[axis + 2] /= op.fold[axis];
    dims[1] = checked_mul(dims[1], op.fold[axis]);
  }
  return dims;
}

Dims unfolded(NodeContext& node, const TensorTransform& op, Dims dims) {
  if (op.fold.empty()) return dims;
  const std::int64_t blocks = element_count(op.fold);
  if (dims[1] % blocks != 0)
    node.reject("channels of x", dims[1], "a multiple of {}, the elements of a block", blocks);
  dims[1] /= blocks;
  for (int axis = 0; axis < op.fold.rank(); ++axis)
    dims[axis + 2] = checked_mul(dims[axis + 2], op.fold[axis]);
  return dims;
}

void infer_tensor_transform(NodeContext& node) {
  auto& op = node.op<TensorTransform>();
  node.require_arithmetic(TensorTransform::x);
  const Tensor& x = node.input(TensorTransform::x);
  const int rank = x.dims.rank(), spatial = std::max(rank - 2, 0);
  normalise_padding(node, "pad_before", op.pad_before, rank);
  normalise_padding(node, "pad_after", op.pad_after, rank);
  if (!op.fold.empty() || spatial > 0) node.normalise_per_axis("fold", op.fold, spatial, 1, 1);

  Dims y = op.unfold ? unfolded(node, op, x.dims) : x.dims;
  for (int axis = 0; axis < rank; ++axis) {
    const std::int64_t padding = checked_add(op.pad_before[axis], op.pad_after[axis]);
    if (op.unfold && padding > y[axis])
      node.reject(fmt::format("padding of axis {}", axis), padding,
                  "at most {}, the extent to crop", y[axis]);
    y[axis] = op.unfold ? y[axis] - padding : checked_add(y[axis], padding);
  }
  if (!op.unfold) y = folded(node, op, y);
  node.infer_dims(TensorTransform::y, y);
  node.infer_dtype(TensorTransform::y, x.dtype);
  node.infer_strides_like(TensorTransform::y, x);
  if (op.beta != 0.0 && !node.has_input(TensorTransform::z))
    node.reject("beta", op.beta, "0, or an input z to blend with");
  node.require_dims(TensorTransform::z, y);
  node.require_arithmetic(TensorTransform::z);
}

std::vector<Value> sample_tensor_transform(Graph& g, DType t) {
  using Op = TensorTransform;
  return g.apply(Op{.fold = {2, 2}}, {{Op::x, g.input("x", {1, 4, 6, 6}, t)}}, {Op::y}).all();
}

// Folding and unfolding with the same padding are transposes of each other.
void tensor_transform_gradient(GradientContext& c) {
  TensorTransform op = c.op<TensorTransform>();
  if (c.wants(TensorTransform::z)) c.add(TensorTransform::z, c.scale(c.dy(), op.beta));
  op.unfold = !op.unfold;
  op.beta = 0.0;
  c.add(TensorTransform::x, c.graph().apply(op, {{TensorTransform::x, c.dy()}}));
}

}  // namespace

template <>
OpTraits define_traits<TensorTransform>() {
  return {.name = "tensor_transform",
          .doc_page = "tensor_transform",
          .infer = infer_tensor_transform,
          .gradient = tensor_transform_gradient,
          .sample = sample_tensor_transform,
          .fused_inputs = {TensorTransform::x}};
}

}  // namespace ashlar

// Definition of reshape, transpose, slice and concat.
#include <array>

#include "base/checked.hpp"
#include "graph/ops/define.hpp"

namespace ashlar {

namespace {

void infer_reshape(NodeContext& node) {
  auto& op = node.op<Reshape>();
  const Tensor& x = node.input(Reshape::x);
  const std::int64_t count = element_count(x.dims);
  if (op.dims.empty()) op.dims = node.output(Reshape::y).dims;
  if (op.dims.empty()) node.reject("dims", "none", "the extents of y");
  int open = -1;
  std::int64_t rest = 1;
  for (int axis = 0; axis < op.dims.rank(); ++axis) {
    if (op.dims[axis] < -1 || (op.dims[axis] == -1 && open >= 0))
      node.reject("dims", op.dims, "extents of at least 0, with at most one -1");
    if (op.dims[axis] == -1)
      open = axis;
    else
      rest = checked_mul(rest, op.dims[axis]);
  }
  if (open >= 0) {
    if (rest == 0 || count % rest != 0)
      node.reject("dims", op.dims, "extents whose product divides {}", count);
    op.dims[open] = count / rest;
  }
  if (element_count(op.dims) != count)
    node.reject("dims", op.dims, "{} elements, as many as {}", count, to_string(x.dims));
  node.infer_dims(Reshape::y, op.dims);
  node.infer_dtype(Reshape::y, x.dtype);
  node.infer_strides_like(Reshape::y, Tensor{});
}

void infer_transpose(NodeContext& node) {
  const auto& op = node.op<Transpose>();
  const Tensor& x = node.input(Transpose::x);
  const int rank = x.dims.rank();
  if (op.permutation.rank() != rank) node.reject("permutation", op.permutation, "{} axes", rank);
  std::array<bool, kMaxRank> seen{};
  Dims y;
  for (std::int64_t axis : op.permutation) {
    if (axis < 0 || axis >= rank || seen[static_cast<std::size_t>(axis)])
      node.reject("permutation", op.permutation, "each of 0 to {} once", rank - 1);
    seen[static_cast<std::size_t>(axis)] = true;
    y.push_back(x.dims[static_cast<int>(axis)]);
  }
  node.infer_dims(Transpose::y, y);
  node.infer_dtype(Transpose::y, x.dtype);
  node.infer_strides_like(Transpose::y, Tensor{});
}

void infer_slice(NodeContext& node) {
  auto& op = node.op<Slice>();
  const Tensor& x = node.input(Slice::x);
  const int rank = x.dims.rank();
  if (op.start.rank() != rank) node.reject("start", op.start, "{} values, one per axis", rank);
  if (op.limit.rank() != rank) node.reject("limit", op.limit, "{} values, one per axis", rank);
  if (op.step.empty()) op.step = Dims::filled(rank, 1);
  if (op.step.rank() != rank) node.reject("step", op.step, "{} values, one per axis", rank);
  Dims y;
  for (int axis = 0; axis < rank; ++axis) {
    if (op.step[axis] < 1) node.reject("step", op.step, "values of at least 1");
    if (op.start[axis] < 0 || op.start[axis] > op.limit[axis] || op.limit[axis] > x.dims[axis])
      node.reject(fmt::format("range of axis {}", axis),
                  fmt::format("[{}, {})", op.start[axis], op.limit[axis]), "a part of [0, {})",
                  x.dims[axis]);
    const std::int64_t length = op.limit[axis] - op.start[axis];
    y.push_back(length / op.step[axis] + (length % op.step[axis] != 0));
  }
  node.infer_dims(Slice::y, y);
  node.infer_dtype(Slice::y, x.dtype);
  node.infer_strides_like(Slice::y, x);
}

void infer_concat(NodeContext& node) {
  auto& op = node.op<Concat>();
  const Tensor& first = node.input(0);
  node.normalise_axis("axis", op.axis, first.dims.rank());
  const int axis = static_cast<int>(op.axis);
  Dims y = first.dims;
  for (int slot = 1; slot < node.input_count(); ++slot) {
    const Tensor& tensor = node.input(slot);
    Dims expected = first.dims;
    if (tensor.dims.rank() == expected.rank()) expected[axis] = tensor.dims[axis];
    if (tensor.dims != expected)
      node.reject(fmt::format("dims of {}", node.input_name(slot)), tensor.dims,
                  "those of '{}', {}, except on axis {}", first.name, to_string(first.dims), axis);
    if (tensor.dtype != first.dtype)
      node.reject(fmt::format("dtype of {}", node.input_name(slot)), tensor.dtype, "{}",
                  to_string(first.dtype));
    y[axis] = checked_add(y[axis], tensor.dims[axis]);
  }
  node.infer_dims(Concat::y, y);
  node.infer_dtype(Concat::y, first.dtype);
  node.infer_strides_like(Concat::y, first);
}

std::vector<Value> sample_reshape(Graph& g, DType t) {
  return {g.reshape(g.input("x", {4, 16}, t), {16, 4})};
}
std::vector<Value> sample_transpose(Graph& g, DType t) {
  return {g.transpose(g.input("x", {4, 16}, t), {1, 0})};
}
std::vector<Value> sample_slice(Graph& g, DType t) {
  return {g.slice(g.input("x", {4, 16}, t), {0, 0}, {4, 8})};
}
std::vector<Value> sample_concat(Graph& g, DType t) {
  return {g.concat(std::array{g.input("a", {4, 16}, t), g.input("b", {4, 16}, t)}, 0)};
}

void reshape_gradient(GradientContext& c) {
  c.add(Reshape::x, c.graph().reshape(c.dy(), c.input(Reshape::x).dims()));
}

void transpose_gradient(GradientContext& c) {
  const Dims permutation = c.op<Transpose>().permutation;
  Dims inverse = permutation;
  for (int axis = 0; axis < permutation.rank(); ++axis)
    inverse[static_cast<int>(permutation[axis])] = axis;
  c.add(Transpose::x, c.graph().transpose(c.dy(), inverse));
}

// dy between zeros.
void slice_gradient(GradientContext& c) {
  const Slice op = c.op<Slice>();
  const Dims x = c.input(Slice::x).dims();
  Value dx = c.dy();
  for (int axis = 0; axis < x.rank(); ++axis) {
    // Elements that are `step` apart: as a new axis with zeros behind each of them, whose last
    // ones may reach past the end of x and are cropped.
    if (op.step[axis] > 1 && x.rank() < kMaxRank) {
      Dims apart = dx.dims(), after = Dims::filled(x.rank() + 1, 0), wide;
      for (int a = 0; a < apart.rank(); ++a) {
        wide.push_back(apart[a]);
        if (a == axis) wide.push_back(1);
      }
      after[axis + 1] = op.step[axis] - 1;
      apart[axis] *= op.step[axis];
      dx = c.graph().apply(Pad{.after = after}, {{Pad::x, c.graph().reshape(dx, wide)}});
      dx = c.graph().reshape(dx, apart);
    } else if (op.step[axis] > 1) {
      c.refuse("steps on tensors of rank 8");
    }
  }
  Dims before = op.start, after;
  for (int axis = 0; axis < x.rank(); ++axis)
    after.push_back(x[axis] - op.start[axis] - dx.dims()[axis]);
  c.add(Slice::x, c.graph().apply(Pad{.before = before, .after = after}, {{Pad::x, dx}}));
}

void concat_gradient(GradientContext& c) {
  const int axis = static_cast<int>(c.op<Concat>().axis);
  std::int64_t begin = 0;
  for (int slot = 0; slot < c.input_count(); ++slot) {
    const Dims dims = c.input(slot).dims();
    Dims start = Dims::filled(dims.rank(), 0), limit = dims;
    start[axis] = begin;
    limit[axis] = begin += dims[axis];
    if (c.wants(slot)) c.add(slot, c.graph().slice(c.dy(), start, limit));
  }
}

}  // namespace

template <>
OpTraits define_traits<Reshape>() {
  return {.name = "reshape",
          .doc_page = "data_movement",
          .infer = infer_reshape,
          .gradient = reshape_gradient,
          .sample = sample_reshape,
          .supports_e8m0 = in_every_form,
          .moves_elements = true};
}

template <>
OpTraits define_traits<Transpose>() {
  return {.name = "transpose",
          .doc_page = "data_movement",
          .infer = infer_transpose,
          .gradient = transpose_gradient,
          .sample = sample_transpose,
          .supports_e8m0 = in_every_form,
          .moves_elements = true};
}

template <>
OpTraits define_traits<Slice>() {
  return {.name = "slice",
          .doc_page = "data_movement",
          .infer = infer_slice,
          .gradient = slice_gradient,
          .sample = sample_slice,
          .supports_e8m0 = in_every_form,
          .moves_elements = true};
}

template <>
OpTraits define_traits<Concat>() {
  return {.name = "concat",
          .doc_page = "data_movement",
          .infer = infer_concat,
          .gradient = concat_gradient,
          .sample = sample_concat,
          .supports_e8m0 = in_every_form,
          .moves_elements = true};
}

}  // namespace ashlar

// Definition of top_k.
#include "graph/ops/define.hpp"

namespace ashlar {

namespace {

void infer_top_k(NodeContext& node) {
  auto& op = node.op<TopK>();
  node.require_arithmetic(TopK::x);
  const Tensor& x = node.input(TopK::x);
  node.normalise_axis("axis", op.axis, x.dims.rank());
  const auto axis = static_cast<int>(op.axis);
  const std::int64_t extent = x.dims[axis];
  if (op.k < 0 || op.k > extent)
    node.reject("k", op.k, "0 (the whole axis) to {}, the extent of axis {}", extent, axis);
  if (op.k == 0) op.k = extent;
  Dims dims = x.dims;
  dims[axis] = op.k;
  node.infer_dims(TopK::values, dims);
  node.infer_dtype(TopK::values, x.dtype);
  node.infer_strides_like(TopK::values, x);
  if (!node.has_output(TopK::index)) return;
  node.infer_dims(TopK::index, dims);
  node.infer_dtype(TopK::index, i32);
  node.infer_strides_like(TopK::index, x);
  const DType dtype = node.output(TopK::index).dtype;
  if (dtype != i32 && dtype != i64) node.reject("dtype of index", dtype, "i32 or i64");
  if (dtype == i32 && extent > std::int64_t{1} << 31)
    node.reject("dtype of index", dtype, "i64 for an axis of {} elements", extent);
}

// dy at the positions of the elements, 0 elsewhere.
void top_k_gradient(GradientContext& c) {
  const Scatter op{.axis = c.op<TopK>().axis, .mode = IndexMode::elements};
  c.add(TopK::x,
        c.graph().apply(
            op, {{Scatter::source, c.dy()}, {Scatter::index, c.require_output(TopK::index)}}, {},
            c.spec(TopK::x)));
}

std::vector<Value> sample_top_k(Graph& g, DType t) {
  return g.apply(TopK{.k = 5}, {{TopK::x, g.input("x", {4, 64}, t)}}, {TopK::values, TopK::index})
      .all();
}

}  // namespace

template <>
OpTraits define_traits<TopK>() {
  return {.name = "top_k",
          .doc_page = "top_k",
          .infer = infer_top_k,
          .gradient = top_k_gradient,
          .sample = sample_top_k,
          .fused_inputs = {TopK::x}};
}

}  // namespace ashlar

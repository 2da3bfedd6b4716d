// Definition of im2col.
#include "base/checked.hpp"
#include "graph/ops/define.hpp"

namespace ashlar {

namespace {

void infer_im2col(NodeContext& node) {
  auto& op = node.op<Im2Col>();
  node.require_rank(Im2Col::x, 3, 5);
  const Tensor& x = node.input(Im2Col::x);
  const int spatial = x.dims.rank() - 2;
  if (op.window.rank() != spatial)
    node.reject("window", op.window, "{} values, one per spatial axis", spatial);
  node.normalise_per_axis("window", op.window, spatial, 1, 1);
  node.normalise_per_axis("padding", op.padding, spatial, 0, 0);
  if (!op.post_padding) op.post_padding = op.padding;
  node.normalise_per_axis("post_padding", *op.post_padding, spatial, 0, 0);
  node.normalise_per_axis("stride", op.stride, spatial, 1, 1);
  node.normalise_per_axis("dilation", op.dilation, spatial, 1, 1);

  std::int64_t windows = 1;
  for (int axis = 0; axis < spatial; ++axis) {
    const std::int64_t extent = x.dims[axis + 2];
    const std::int64_t padded =
        checked_add(checked_add(extent, op.padding[axis]), (*op.post_padding)[axis]);
    const std::int64_t reach = checked_add(checked_mul(op.window[axis] - 1, op.dilation[axis]), 1);
    // An empty axis without room for the window gives an empty result, as in a convolution.
    if (padded < reach && extent > 0)
      node.reject(fmt::format("window of spatial axis {}", axis), reach,
                  "at most the padded extent {}", padded);
    windows = checked_mul(windows, padded < reach ? 0 : (padded - reach) / op.stride[axis] + 1);
  }
  node.infer_dims(Im2Col::y,
                  {x.dims[0], checked_mul(x.dims[1], element_count(op.window)), windows});
  node.infer_dtype(Im2Col::y, x.dtype);
  node.infer_strides_like(Im2Col::y, Tensor{});
}

std::vector<Value> sample_im2col(Graph& g, DType t) {
  return g
      .apply(Im2Col{.window = {3, 3}}, {{Im2Col::x, g.input("x", {1, 4, 6, 6}, t)}}, {Im2Col::y})
      .all();
}

}  // namespace

template <>
OpTraits define_traits<Im2Col>() {
  return {.name = "im2col",
          .doc_page = "im2col",
          .infer = infer_im2col,
          .sample = sample_im2col,
          .fused_inputs = {Im2Col::x},
          .rereads_inputs = true,
          .moves_elements = true};
}

}  // namespace ashlar

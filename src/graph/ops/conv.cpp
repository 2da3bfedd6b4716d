// Definition of convolutions.
#include "base/checked.hpp"
#include "graph/ops/define.hpp"

namespace ashlar {

namespace {

// Normalises the attributes for `spatial` axes. Padding may not be negative, strides and dilation
// are positive.
void normalise(NodeContext& node, ConvAttributes& conv, int spatial) {
  node.normalise_per_axis("padding", conv.padding, spatial, 0, 0);
  if (!conv.post_padding) conv.post_padding = conv.padding;
  node.normalise_per_axis("post_padding", *conv.post_padding, spatial, 0, 0);
  node.normalise_per_axis("stride", conv.stride, spatial, 1, 1);
  node.normalise_per_axis("dilation", conv.dilation, spatial, 1, 1);
}

std::int64_t dilated(std::int64_t filter, std::int64_t dilation) {
  return filter == 0 ? 0 : checked_add(checked_mul(filter - 1, dilation), 1);
}

// [N, K, P...] for x [N, C, ...] and w [K, C/groups, ...].
Dims output_dims(NodeContext& node, const ConvAttributes& conv, const Dims& x, const Dims& w) {
  const int spatial = x.rank() - 2;
  Dims y = {x[0], w[0]};
  for (int axis = 0; axis < spatial; ++axis) {
    const std::int64_t padded =
        checked_add(checked_add(x[axis + 2], conv.padding[axis]), (*conv.post_padding)[axis]);
    const std::int64_t reach = dilated(w[axis + 2], conv.dilation[axis]);
    if (w[axis + 2] < 1) node.reject("filter extents", w, "at least 1 on every spatial axis");
    // An empty input axis without room for the filter gives an empty result, not an error.
    if (padded < reach && x[axis + 2] > 0)
      node.reject(fmt::format("filter on spatial axis {}", axis), reach,
                  "at most the padded input extent {}", padded);
    y.push_back(padded < reach ? 0 : (padded - reach) / conv.stride[axis] + 1);
  }
  return y;
}

// Groups are implied by the channel counts.
void check_channels(NodeContext& node, const Dims& x, const Dims& w) {
  if (w[1] < 1 || x[1] < 1 || x[1] % w[1] != 0)
    node.reject("channels", fmt::format("x with {} and w with {} per group", x[1], w[1]),
                "x's channels a positive multiple of w's second extent");
  const std::int64_t groups = x[1] / w[1];
  if (w[0] % groups != 0)
    node.reject("output channels", w[0], "a multiple of the {} groups that the channels imply",
                groups);
}

void check_ranks(NodeContext& node, int a, int b) {
  node.require_rank(a, 3, 5);
  if (node.input(b).dims.rank() != node.input(a).dims.rank())
    node.reject(fmt::format("rank of {}", node.input_name(b)), node.input(b).dims.rank(),
                "{}, that of {}", node.input(a).dims.rank(), node.input_name(a));
  node.require_arithmetic(a);
  node.require_arithmetic(b);
}

void check_blend(NodeContext& node, const ConvAttributes& conv, int z, const Dims& result) {
  if (conv.beta != 0.0 && !node.has_input(z))
    node.reject("beta", conv.beta, "0, or an input z to blend with");
  node.require_dims(z, result);
  node.require_arithmetic(z);
}

void require_given_dims(NodeContext& node, const char* name) {
  if (node.output(0).dims.empty())
    node.reject(fmt::format("dims of {}", name), "none",
                "explicit dims: they do not follow from the inputs");
}

void infer_conv_forward(NodeContext& node) {
  auto& conv = node.op<ConvForward>();
  check_ranks(node, ConvForward::x, ConvForward::w);
  const Tensor& x = node.input(ConvForward::x);
  const Dims& w = node.input(ConvForward::w).dims;
  normalise(node, conv, x.dims.rank() - 2);
  check_channels(node, x.dims, w);
  const Dims y = output_dims(node, conv, x.dims, w);
  node.infer_dims(ConvForward::y, y);
  node.infer_dtype(ConvForward::y, x.dtype);
  node.infer_strides_like(ConvForward::y, x);
  check_blend(node, conv, ConvForward::z, y);
}

void infer_conv_backward_data(NodeContext& node) {
  auto& conv = node.op<ConvBackwardData>();
  check_ranks(node, ConvBackwardData::dy, ConvBackwardData::w);
  const Tensor& dy = node.input(ConvBackwardData::dy);
  const Dims& w = node.input(ConvBackwardData::w).dims;
  normalise(node, conv, dy.dims.rank() - 2);
  require_given_dims(node, "dx");
  const Dims dx = node.output(ConvBackwardData::dx).dims;
  if (dx.rank() != dy.dims.rank())
    node.reject("rank of dx", dx.rank(), "{}, that of dy", dy.dims.rank());
  check_channels(node, dx, w);
  const Dims y = output_dims(node, conv, dx, w);
  node.require_dims(ConvBackwardData::dy, y);
  node.infer_dtype(ConvBackwardData::dx, dy.dtype);
  node.infer_strides_like(ConvBackwardData::dx, dy);
  check_blend(node, conv, ConvBackwardData::z, dx);
}

void infer_conv_backward_filter(NodeContext& node) {
  auto& conv = node.op<ConvBackwardFilter>();
  check_ranks(node, ConvBackwardFilter::x, ConvBackwardFilter::dy);
  const Tensor& x = node.input(ConvBackwardFilter::x);
  normalise(node, conv, x.dims.rank() - 2);
  require_given_dims(node, "dw");
  const Dims dw = node.output(ConvBackwardFilter::dw).dims;
  if (dw.rank() != x.dims.rank())
    node.reject("rank of dw", dw.rank(), "{}, that of x", x.dims.rank());
  check_channels(node, x.dims, dw);
  const Dims y = output_dims(node, conv, x.dims, dw);
  node.require_dims(ConvBackwardFilter::dy, y);
  node.infer_dtype(ConvBackwardFilter::dw, x.dtype);
  node.infer_strides_like(ConvBackwardFilter::dw, x);
  check_blend(node, conv, ConvBackwardFilter::z, dw);
}

// For every element of y (or dy), as many multiply-adds as a filter has taps of all its channels.
double conv_flops(const Dims& y, const Dims& w) {
  double taps = 1;
  for (int axis = 1; axis < w.rank(); ++axis) taps *= static_cast<double>(w[axis]);
  return 2 * count_of(y) * taps;
}
double conv_forward_flops(const NodeShapes& node) {
  return conv_flops(node.output(ConvForward::y), node.input(ConvForward::w));
}
double conv_backward_data_flops(const NodeShapes& node) {
  return conv_flops(node.input(ConvBackwardData::dy), node.input(ConvBackwardData::w));
}
double conv_backward_filter_flops(const NodeShapes& node) {
  return conv_flops(node.input(ConvBackwardFilter::dy), node.output(ConvBackwardFilter::dw));
}

std::vector<Value> sample_conv_forward(Graph& g, DType t) {
  return {g.conv(g.input("x", {1, 4, 6, 6}, t), g.input("w", {4, 4, 3, 3}, t))};
}
std::vector<Value> sample_conv_backward_data(Graph& g, DType t) {
  return {g.conv_backward_data(g.input("dy", {1, 4, 4, 4}, t), g.input("w", {4, 4, 3, 3}, t), {},
                               {.dims = {1, 4, 6, 6}})};
}
std::vector<Value> sample_conv_backward_filter(Graph& g, DType t) {
  return {g.conv_backward_filter(g.input("x", {1, 4, 6, 6}, t), g.input("dy", {1, 4, 4, 4}, t), {},
                                 {.dims = {4, 4, 3, 3}})};
}

// alpha applies to both operands, beta to z alone.
void conv_forward_gradient(GradientContext& c) {
  using Self = ConvForward;
  ConvAttributes op = c.op<Self>();
  const double beta = std::exchange(op.beta, 0.0);
  const Value x = c.input(Self::x), w = c.input(Self::w), dy = c.dy();
  if (c.wants(Self::x)) c.add(Self::x, c.graph().conv_backward_data(dy, w, op, c.spec(Self::x)));
  if (c.wants(Self::w)) c.add(Self::w, c.graph().conv_backward_filter(x, dy, op, c.spec(Self::w)));
  if (c.wants(Self::z)) c.add(Self::z, c.scale(dy, beta));
}

void conv_backward_data_gradient(GradientContext& c) {
  using Self = ConvBackwardData;
  ConvAttributes op = c.op<Self>();
  const double beta = std::exchange(op.beta, 0.0);
  const Value dy = c.input(Self::dy), w = c.input(Self::w), gradient = c.dy();
  if (c.wants(Self::dy)) c.add(Self::dy, c.graph().conv(gradient, w, op, c.spec(Self::dy)));
  if (c.wants(Self::w))
    c.add(Self::w, c.graph().conv_backward_filter(gradient, dy, op, c.spec(Self::w)));
  if (c.wants(Self::z)) c.add(Self::z, c.scale(gradient, beta));
}

void conv_backward_filter_gradient(GradientContext& c) {
  using Self = ConvBackwardFilter;
  ConvAttributes op = c.op<Self>();
  const double beta = std::exchange(op.beta, 0.0);
  const Value x = c.input(Self::x), dy = c.input(Self::dy), gradient = c.dy();
  if (c.wants(Self::x))
    c.add(Self::x, c.graph().conv_backward_data(dy, gradient, op, c.spec(Self::x)));
  if (c.wants(Self::dy)) c.add(Self::dy, c.graph().conv(x, gradient, op, c.spec(Self::dy)));
  if (c.wants(Self::z)) c.add(Self::z, c.scale(gradient, beta));
}

}  // namespace

template <>
OpTraits define_traits<ConvForward>() {
  return {.name = "conv_forward",
          .doc_page = "convolution",
          .infer = infer_conv_forward,
          .gradient = conv_forward_gradient,
          .sample = sample_conv_forward,
          .flops = conv_forward_flops,
          .is_compute_bound = true,
          .arithmetic_inputs = {ConvForward::x, ConvForward::w},
          .fused_inputs = {ConvForward::x, ConvForward::w},
          .rereads_inputs = true,
          .is_gemm_like = true,
          .has_tails = true};
}

template <>
OpTraits define_traits<ConvBackwardData>() {
  return {.name = "conv_backward_data",
          .doc_page = "convolution",
          .infer = infer_conv_backward_data,
          .gradient = conv_backward_data_gradient,
          .sample = sample_conv_backward_data,
          .flops = conv_backward_data_flops,
          .is_compute_bound = true,
          .arithmetic_inputs = {ConvBackwardData::dy, ConvBackwardData::w},
          .fused_inputs = {ConvBackwardData::dy, ConvBackwardData::w},
          .rereads_inputs = true,
          .is_gemm_like = true,
          .has_tails = true};
}

template <>
OpTraits define_traits<ConvBackwardFilter>() {
  return {.name = "conv_backward_filter",
          .doc_page = "convolution",
          .infer = infer_conv_backward_filter,
          .gradient = conv_backward_filter_gradient,
          .sample = sample_conv_backward_filter,
          .flops = conv_backward_filter_flops,
          .is_compute_bound = true,
          .arithmetic_inputs = {ConvBackwardFilter::x, ConvBackwardFilter::dy},
          .fused_inputs = {ConvBackwardFilter::x, ConvBackwardFilter::dy},
          .rereads_inputs = true,
          .is_gemm_like = true};
}

}  // namespace ashlar

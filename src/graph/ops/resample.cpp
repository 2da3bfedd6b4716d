// Definition of pooling and interpolation.
#include <cmath>

#include "base/checked.hpp"
#include "base/element.hpp"
#include "graph/enum_names.hpp"
#include "graph/ops/define.hpp"

namespace ashlar {

namespace {

bool is_pooling(ResampleMode mode) { return mode >= ResampleMode::avgpool_include_padding; }

// Normalises the attributes for `x` and returns the dims of y.
Dims resampled_dims(NodeContext& node, ResampleAttributes& op, const Dims& x) {
  const int spatial = x.rank() - 2;
  Dims y = {x[0], x[1]};
  if (!is_pooling(op.mode)) {
    if (op.size.rank() != spatial)
      node.reject("size", op.size, "{} output extents for {}", spatial, enum_name(op.mode));
    for (int axis = 0; axis < spatial; ++axis) {
      if (op.size[axis] < 0) node.reject("size", op.size, "extents of at least 0");
      if (op.size[axis] > 0 && x[axis + 2] == 0)
        node.reject(fmt::format("spatial axis {} of x", axis), 0,
                    "at least 1 element to interpolate from");
      y.push_back(op.size[axis]);
    }
    return y;
  }
  if (op.window.rank() != spatial)
    node.reject("window", op.window, "{} values, one per spatial axis", spatial);
  node.normalise_per_axis("window", op.window, spatial, 1, 1);
  if (op.stride.empty()) op.stride = op.window;
  node.normalise_per_axis("stride", op.stride, spatial, 1, 1);
  node.normalise_per_axis("padding", op.padding, spatial, 0, 0);
  if (!op.post_padding) op.post_padding = op.padding;
  node.normalise_per_axis("post_padding", *op.post_padding, spatial, 0, 0);
  for (int axis = 0; axis < spatial; ++axis) {
    const std::int64_t before = op.padding[axis], after = (*op.post_padding)[axis];
    // A window that lies entirely in padding has no maximum or mean.
    if (before >= op.window[axis] || after >= op.window[axis])
      node.reject(fmt::format("padding of spatial axis {}", axis), std::max(before, after),
                  "less than the window {}", op.window[axis]);
    const std::int64_t padded = checked_add(checked_add(x[axis + 2], before), after);
    if (padded < op.window[axis] && x[axis + 2] > 0)
      node.reject(fmt::format("window of spatial axis {}", axis), op.window[axis],
                  "at most the padded extent {}", padded);
    y.push_back(x[axis + 2] == 0 ? 0 : (padded - op.window[axis]) / op.stride[axis] + 1);
  }
  return y;
}

void infer_resample_forward(NodeContext& node) {
  auto& op = node.op<ResampleForward>();
  node.require_rank(ResampleForward::x, 3, 5);
  node.require_arithmetic(ResampleForward::x);
  const Tensor& x = node.input(ResampleForward::x);
  const Dims y = resampled_dims(node, op, x.dims);
  node.infer_dims(ResampleForward::y, y);
  node.infer_dtype(ResampleForward::y, x.dtype);
  node.infer_strides_like(ResampleForward::y, x);
  if (!node.has_output(ResampleForward::index)) return;
  if (op.mode != ResampleMode::maxpool)
    node.reject("output index", "a tensor", "none: only maxpool has an index");
  node.infer_dims(ResampleForward::index, y);
  node.infer_dtype(ResampleForward::index, i32);
  node.infer_strides_like(ResampleForward::index, x);
  const DType dtype = node.output(ResampleForward::index).dtype;
  if (!is_integer(dtype)) node.reject("dtype of index", dtype, "an integer type");
  const std::int64_t last = element_count(op.window) - 1;
  if (static_cast<double>(last) > largest_value(dtype))
    node.reject("dtype of index", dtype, "one that holds {}, the last position of the window",
                last);
}

void infer_resample_backward(NodeContext& node) {
  auto& op = node.op<ResampleBackward>();
  node.require_rank(ResampleBackward::dy, 3, 5);
  node.require_arithmetic(ResampleBackward::dy);
  const Tensor& dy = node.input(ResampleBackward::dy);
  if (node.output(ResampleBackward::dx).dims.empty() && node.has_input(ResampleBackward::x))
    node.output(ResampleBackward::dx).dims = node.input(ResampleBackward::x).dims;
  const Dims dx = node.output(ResampleBackward::dx).dims;
  if (dx.empty())
    node.reject("dims of dx", "none", "explicit dims, or an input x to take them from");
  if (dx.rank() != dy.dims.rank())
    node.reject("rank of dx", dx.rank(), "{}, that of dy", dy.dims.rank());
  if (!is_pooling(op.mode) && op.size.empty())
    for (int axis = 2; axis < dy.dims.rank(); ++axis) op.size.push_back(dy.dims[axis]);
  const Dims y = resampled_dims(node, op, dx);
  node.require_dims(ResampleBackward::dy, y);
  node.require_dims(ResampleBackward::x, dx);
  node.require_dims(ResampleBackward::index, y);
  node.require_integer(ResampleBackward::index);
  if (op.mode == ResampleMode::maxpool && !node.has_input(ResampleBackward::x) &&
      !node.has_input(ResampleBackward::index))
    node.reject("input index", "nothing", "index or x: maxpool's gradient goes to the maximum");
  node.infer_dtype(ResampleBackward::dx, dy.dtype);
  node.infer_strides_like(ResampleBackward::dx, dy);
}

// Row-major positions inside each pooling window that are not in the padding.
Contents resample_backward_contents(const NodeShapes& node, int slot) {
  if (slot != ResampleBackward::index) return {};
  const auto element = [op = ResampleAttributes(node.op<ResampleBackward>()),
                        windows = node.input(slot), dx = node.output(ResampleBackward::dx)](
                           std::int64_t position, double random) {
    std::int64_t result = 0, place = 1;
    for (int axis = op.window.rank() - 1; axis >= 0; --axis) {
      const std::int64_t first = position % windows[axis + 2] * op.stride[axis] - op.padding[axis];
      position /= windows[axis + 2];
      const std::int64_t low = std::max<std::int64_t>(0, -first);
      const std::int64_t end = std::min(op.window[axis], dx[axis + 2] - first);
      // Takes one digit from the random number and leaves the rest of it for the next axis.
      const std::int64_t count = std::max<std::int64_t>(end - low, 1);
      random *= static_cast<double>(count);
      result += place * (low + std::min(static_cast<std::int64_t>(random), count - 1));
      random -= std::floor(random);
      place *= op.window[axis];
    }
    return static_cast<double>(result);
  };
  return {.kind = Contents::Kind::by_element, .below = 0, .above = 0, .element = element};
}

std::vector<Value> sample_resample_forward(Graph& g, DType t) {
  return {g.resample(g.input("x", {1, 4, 6, 6}, t), {.window = {2, 2}})};
}
std::vector<Value> sample_resample_backward(Graph& g, DType t) {
  return {g.resample_backward(g.input("dy", {1, 4, 3, 3}, t), {.window = {2, 2}},
                              {.dims = {1, 4, 6, 6}}, {}, g.input("index", {1, 4, 3, 3}, i32))};
}

void resample_forward_gradient(GradientContext& c) {
  using Self = ResampleForward;
  const ResampleAttributes op = c.op<Self>();
  Value x, index;
  if (op.mode == ResampleMode::maxpool) {
    index = c.output(Self::index);
    if (!index) x = c.input(Self::x);
  }
  c.add(Self::x, c.graph().resample_backward(c.dy(), op, c.spec(Self::x), x, index));
}

}  // namespace

template <>
OpTraits define_traits<ResampleForward>() {
  return {.name = "resample_forward",
          .doc_page = "resample",
          .infer = infer_resample_forward,
          .gradient = resample_forward_gradient,
          .sample = sample_resample_forward,
          .fused_inputs = {ResampleForward::x},
          .rereads_inputs = true};
}

template <>
OpTraits define_traits<ResampleBackward>() {
  return {.name = "resample_backward",
          .doc_page = "resample",
          .infer = infer_resample_backward,
          .sample = sample_resample_backward,
          .contents = resample_backward_contents,
          .fused_inputs = {ResampleBackward::dy}};
}

}  // namespace ashlar

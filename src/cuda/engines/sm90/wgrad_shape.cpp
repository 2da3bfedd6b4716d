#include "cuda/engines/sm90/wgrad_shape.hpp"

#include <algorithm>

#include "base/ceil_div.hpp"
#include "cuda/engines/blended_epilogue.hpp"
#include "cuda/engines/channel_axes.hpp"
#include "cuda/engines/spatial_axes.hpp"

namespace ashlar::cuda {

namespace {

using Shape = WgradShape;
using Axes = Shape::Axes;

constexpr std::int64_t kFewestChannels =
    16;                                 // of a box of 64: with fewer, most products are padding
constexpr std::int64_t kMaxStride = 8;  // of a tensor map

bool is_pointwise(const Shape& shape) {
  return shape.taps() == 1 && shape.stride == Axes{1, 1, 1} && shape.padding == Axes{0, 0, 0} &&
         shape.from == shape.to;
}

// Whether all pixels of all images are one row with a uniform stride.
bool is_row(std::int64_t images, std::int64_t image, const Axes& extents, const Axes& strides) {
  std::int64_t expected = strides[2] * extents[2];
  if (extents[1] > 1 && strides[1] != expected) return false;
  expected *= extents[1];
  if (extents[0] > 1 && strides[0] != expected) return false;
  expected *= extents[0];
  return images == 1 || image == expected;
}

// Pointwise convolutions: all pixels become one row without ends. f32 is loaded 8 rows at a time.
void join_pixels(Shape& shape) {
  if (!is_pointwise(shape) || !is_row(shape.images, shape.x_image, shape.from, shape.x_strides) ||
      !is_row(shape.images, shape.dy_image, shape.to, shape.dy_strides))
    return;
  const std::int64_t pixels = shape.images * shape.to[0] * shape.to[1] * shape.to[2];
  constexpr std::int64_t kRow = 16;
  const bool has_rows = shape.is_f32() && pixels % kRow == 0;
  shape.from = shape.to = {1, has_rows ? pixels / kRow : 1, has_rows ? kRow : pixels};
  shape.x_strides[1] = shape.x_strides[2] * kRow;
  shape.dy_strides[1] = shape.dy_strides[2] * kRow;
  shape.images = 1;
}

// An operand that TMA can load, repacked if necessary.
Support take(const PointwiseProgram& program, RepackedOperand& operand) {
  if (!program.is_plain_load())
    return Support::no("an operation is fused into x or dy, which TMA loads");
  const View& view = program.steps[0].view;
  const int rank = view.dims.rank();
  if (rank < 3 || rank > 5) return Support::no("1 to 3 spatial axes are supported");
  for (const std::int64_t stride : view.strides)
    if (stride < 0) return Support::no("an operand has a negative stride");
  operand = take_pixels(program, view.dtype);
  return Support::yes();
}

}  // namespace

int WgradShape::rank() const {
  const auto is_there = [&](std::size_t axis) {
    return from[axis] > 1 || to[axis] > 1 || window[axis] > 1 || padding[axis] != 0;
  };
  return is_there(0) ? 5 : is_there(1) ? 4 : 3;
}

Support describe(const Region& region, WgradShape& shape) {
  const auto* op = region.anchor_as<ConvBackwardFilter>();
  if (op == nullptr) return Support::other_operation("not a backward-filter convolution");
  if (touches_unsupported(region))
    return Support::no("a tensor is ragged or complex, or a program generates random numbers");
  if (reads_coordinates(region.epilogue)) return Support::no("a fused operation reads coordinates");
  if (Support support = take(input_program(region, ConvBackwardFilter::x), shape.x); !support)
    return support;
  if (Support support = take(input_program(region, ConvBackwardFilter::dy), shape.dy); !support)
    return support;
  const View &x = shape.x.view, &dy = shape.dy.view;
  const DType dtype = x.dtype;
  if (dtype != dy.dtype || (dtype != bf16 && dtype != f16 && dtype != f32))
    return Support::no("x and dy must both be bf16, f16 or f32");
  if (region.precision() != f32) return Support::no("compute type must be f32");
  const int rank = x.dims.rank();
  const Dims& dw = region.epilogue.space;
  for (const Dims& dims : {x.dims, dy.dims, dw})
    if (element_count(dims) == 0) return Support::no("no elements");

  shape.images = x.dims[0];
  shape.channels = dw[1];
  shape.groups = x.dims[1] / shape.channels;
  shape.filters = dw[0] / shape.groups;
  if (shape.channels < kFewestChannels || shape.filters < kFewestChannels)
    return Support::no("{} channels and {} filters per group, at least {} required", shape.channels,
                       shape.filters, kFewestChannels);
  const std::int64_t bytes = bit_width(dtype) / 8;
  if (shape.groups > 1 && (shape.channels * bytes % 16 != 0 || shape.filters * bytes % 16 != 0))
    return Support::no("groups of channels are not aligned to 16 bytes");
  shape.all_channels = x.dims[1];
  shape.all_filters = dw[0];
  shape.side = static_cast<int>(std::clamp<std::int64_t>(
      kBoxChannels / std::max(shape.channels, shape.filters), 1, shape.groups));
  shape.groups = ceil_div(shape.groups, shape.side);
  shape.channels *= shape.side;
  shape.filters *= shape.side;
  shape.from = spatial_of(x.dims, 1);
  shape.to = spatial_of(dy.dims, 1);
  shape.window = spatial_of(dw, 1);
  shape.stride = per_axis(op->stride, 1);
  shape.dilation = per_axis(op->dilation, 1);
  shape.padding = per_axis(op->padding, 0);
  shape.x_image = x.strides[0];
  shape.dy_image = dy.strides[0];
  shape.x_strides = spatial_of(x.strides, 0);
  shape.dy_strides = spatial_of(dy.strides, 0);
  shape.flips = op->mode == ConvMode::convolution;
  if (shape.stride[1] > kMaxStride || shape.stride[2] > kMaxStride)
    return Support::no("stride exceeds {}", kMaxStride);
  std::vector<int> order = {0};
  for (int axis = 2; axis < rank; ++axis) order.push_back(axis);
  order.push_back(1);
  shape.epilogue = reordered(blended_epilogue(region), order);
  join_pixels(shape);
  const WgradTile smallest;
  const WgradTiling tiling(shape, smallest);
  for (const TensorMapForm& map : {tiling.map_x(shape, smallest), tiling.map_dy(shape, smallest)})
    if (const char* reason = refusal(map))
      return Support::no("TMA cannot load an operand: {}", reason);
  return Support::yes();
}

}  // namespace ashlar::cuda

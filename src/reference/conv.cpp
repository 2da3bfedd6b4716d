// Convolution. x [N, C, i...], w [K, C/groups, r...], y [N, K, o...]; tap r of output o reads x at
//   i = o * stride - padding + r * dilation                          (outside x: zero)
// and multiplies it with w[r], or with w[R - 1 - r] in mode `convolution`.
#include "reference/evaluate.hpp"

namespace ashlar::reference {

namespace {

constexpr int kFirstSpatialAxis = 2;

Box spatial_box(const Dims& dims) {
  Box box;
  for (int axis = kFirstSpatialAxis; axis < dims.rank(); ++axis) {
    box.begin.push_back(0);
    box.end.push_back(dims[axis]);
  }
  return box;
}

Index index_of(std::int64_t first, std::int64_t second, const Index& spatial) {
  Index index{first, second};
  for (std::int64_t coordinate : spatial) index.push_back(coordinate);
  return index;
}

Index spatial_part(const Index& index) {
  Index spatial;
  for (int axis = kFirstSpatialAxis; axis < index.rank(); ++axis) spatial.push_back(index[axis]);
  return spatial;
}

// Where tap `tap` of output `out` reads x. False: in the padding.
bool source_of(const ConvAttributes& op, const Dims& x_dims, const Index& out, const Index& tap, Index& in) {
  in = out;
  for (int axis = 0; axis < out.rank(); ++axis) {
    in[axis] = out[axis] * per_axis(op.stride, axis, 1) - per_axis(op.padding, axis, 0) +
               tap[axis] * per_axis(op.dilation, axis, 1);
    if (in[axis] < 0 || in[axis] >= x_dims[axis + kFirstSpatialAxis]) return false;
  }
  return true;
}

// The output whose tap `tap` reads x at `in`. False: there is none.
bool output_of(const ConvAttributes& op, const Dims& y_dims, const Index& in, const Index& tap, Index& out) {
  out = in;
  for (int axis = 0; axis < in.rank(); ++axis) {
    const std::int64_t stride = per_axis(op.stride, axis, 1);
    const std::int64_t scaled =
        in[axis] + per_axis(op.padding, axis, 0) - tap[axis] * per_axis(op.dilation, axis, 1);
    if (scaled < 0 || scaled % stride != 0 || scaled / stride >= y_dims[axis + kFirstSpatialAxis]) return false;
    out[axis] = scaled / stride;
  }
  return true;
}

// Where the weight of a tap is stored.
Index stored_tap(const ConvAttributes& op, const Dims& w_dims, Index tap) {
  if (op.mode == ConvMode::convolution)
    for (int axis = 0; axis < tap.rank(); ++axis) tap[axis] = w_dims[axis + kFirstSpatialAxis] - 1 - tap[axis];
  return tap;
}

// result = alpha * sum + beta * z
template <class Operands, class Scalar>
void blend(const ConvAttributes& op, const Operands& operands, int z, const Index& index, Scalar sum) {
  Scalar result = op.alpha == 1.0 ? sum : Scalar(op.alpha) * sum;
  if (operands.has_input(z) && op.beta != 0.0) {
    const Scalar addend = operands.input(z).load(index);
    result = result + (op.beta == 1.0 ? addend : Scalar(op.beta) * addend);
  }
  operands.output(0).store(index, result);
}

}  // namespace

template <class Operands>
void evaluate(const ConvForward& op, const Operands& operands) {
  using Scalar = typename Operands::Scalar;
  const auto x = operands.input(ConvForward::x);
  const auto w = operands.input(ConvForward::w);
  const auto y = operands.output(ConvForward::y);
  const std::int64_t group_channels = w.dims()[1];
  const std::int64_t groups = group_channels == 0 ? 1 : x.dims()[1] / group_channels;
  const std::int64_t group_filters = w.dims()[0] / std::max<std::int64_t>(groups, 1);
  const Box taps = spatial_box(w.dims());

  for_each(y.dims(), [&](const Index& index) {
    const std::int64_t n = index[0], k = index[1];
    const std::int64_t first_channel = k / group_filters * group_channels;
    const Index out = spatial_part(index);
    Accumulator<Scalar> sum;
    for (std::int64_t c = 0; c < group_channels; ++c)
      for_each_in(taps, [&](const Index& tap) {
        Index in;
        if (!source_of(op, x.dims(), out, tap, in)) return;
        sum.add(x.load(index_of(n, first_channel + c, in)) * w.load(index_of(k, c, stored_tap(op, w.dims(), tap))));
      });
    blend(op, operands, ConvForward::z, index, sum.total());
  });
}

// dx[i] = sum over the outputs o and taps r that read x[i] of dy[o] * w[r]
template <class Operands>
void evaluate(const ConvBackwardData& op, const Operands& operands) {
  using Scalar = typename Operands::Scalar;
  const auto dy = operands.input(ConvBackwardData::dy);
  const auto w = operands.input(ConvBackwardData::w);
  const auto dx = operands.output(ConvBackwardData::dx);
  const std::int64_t group_channels = w.dims()[1];
  const std::int64_t groups = group_channels == 0 ? 1 : dx.dims()[1] / group_channels;
  const std::int64_t group_filters = w.dims()[0] / std::max<std::int64_t>(groups, 1);
  const Box taps = spatial_box(w.dims());

  for_each(dx.dims(), [&](const Index& index) {
    const std::int64_t n = index[0], c = index[1] % group_channels;
    const std::int64_t first_filter = index[1] / group_channels * group_filters;
    const Index in = spatial_part(index);
    Accumulator<Scalar> sum;
    for (std::int64_t k = first_filter; k < first_filter + group_filters; ++k)
      for_each_in(taps, [&](const Index& tap) {
        Index out;
        if (!output_of(op, dy.dims(), in, tap, out)) return;
        sum.add(dy.load(index_of(n, k, out)) * w.load(index_of(k, c, stored_tap(op, w.dims(), tap))));
      });
    blend(op, operands, ConvBackwardData::z, index, sum.total());
  });
}

// dw[r] = sum over the images and outputs o of x[what tap r of o reads] * dy[o]
template <class Operands>
void evaluate(const ConvBackwardFilter& op, const Operands& operands) {
  using Scalar = typename Operands::Scalar;
  const auto x = operands.input(ConvBackwardFilter::x);
  const auto dy = operands.input(ConvBackwardFilter::dy);
  const auto dw = operands.output(ConvBackwardFilter::dw);
  const std::int64_t group_channels = dw.dims()[1];
  const std::int64_t groups = group_channels == 0 ? 1 : x.dims()[1] / group_channels;
  const std::int64_t group_filters = dw.dims()[0] / std::max<std::int64_t>(groups, 1);
  const Box outputs = spatial_box(dy.dims());

  for_each(dw.dims(), [&](const Index& index) {
    const std::int64_t k = index[0];
    const std::int64_t channel = k / group_filters * group_channels + index[1];
    // Flipping is its own inverse: it also turns a stored position into the tap it belongs to.
    const Index tap = stored_tap(op, dw.dims(), spatial_part(index));
    Accumulator<Scalar> sum;
    for (std::int64_t n = 0; n < x.dims()[0]; ++n)
      for_each_in(outputs, [&](const Index& out) {
        Index in;
        if (!source_of(op, x.dims(), out, tap, in)) return;
        sum.add(x.load(index_of(n, channel, in)) * dy.load(index_of(n, k, out)));
      });
    blend(op, operands, ConvBackwardFilter::z, index, sum.total());
  });
}

ASHLAR_REFERENCE_INSTANTIATE(ConvForward);
ASHLAR_REFERENCE_INSTANTIATE(ConvBackwardData);
ASHLAR_REFERENCE_INSTANTIATE(ConvBackwardFilter);

}  // namespace ashlar::reference

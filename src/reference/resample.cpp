// Pooling and interpolation. The backward pass gathers: every element of dx sums the contributions
// of the outputs that read it.
#include "reference/resample.hpp"

namespace ashlar::reference {

namespace {

// The divisor of an average: the whole window, or its part inside x.
std::int64_t average_count(const ResampleAttributes& op, const Dims& x_dims, const Index& out) {
  std::int64_t count = 0;
  for_each_in(Box::all(op.window), [&](const Index& k) {
    if (op.mode == ResampleMode::avgpool_include_padding ||
        !window_source(op, x_dims, out, k).padding)
      ++count;
  });
  return count;
}

template <class Operands, class View>
typename View::Scalar pooled_average(const ResampleForward& op, const Operands& operands,
                                     const View& x, const Index& out) {
  using Scalar = typename View::Scalar;
  Accumulator<Scalar> sum;
  for_each_in(Box::all(op.window), [&](const Index& k) {
    const Source source = window_source(op, x.dims(), out, k);
    if (!source.padding) sum.add(x.load(source.index));
  });
  return quotient(operands.compute(), sum.total(), Scalar(real(average_count(op, x.dims(), out))));
}

// The inputs that may have weight for `out`, with one more on either side because the source
// position is rounded.
Box interpolation_inputs(const ResampleAttributes& op, const Dims& x_dims, const Dims& y_dims,
                         const Index& out) {
  Box box{out, out};
  for (int axis = 0; axis < out.rank(); ++axis) {
    std::int64_t first = out[axis], last = out[axis];
    if (axis >= kSpatial && op.mode == ResampleMode::nearest)
      first = last = nearest_source(out[axis], y_dims[axis], x_dims[axis]);
    if (axis >= kSpatial && op.mode == ResampleMode::bilinear) {
      const auto below = static_cast<std::int64_t>(
          linear_source<double>(op, out[axis], y_dims[axis], x_dims[axis]));
      first = below - 1;
      last = below + 2;
    }
    box.begin[axis] = std::max<std::int64_t>(first, 0);
    box.end[axis] = std::min(last + 1, x_dims[axis]);
  }
  return box;
}

}  // namespace

template <class Operands>
void evaluate(const ResampleForward& op, const Operands& operands) {
  using Scalar = typename Operands::Scalar;
  const auto x = operands.input(ResampleForward::x);
  const auto y = operands.output(ResampleForward::y);
  for_each(y.dims(), [&](const Index& out) {
    if (op.mode == ResampleMode::maxpool) {
      const auto largest = window_maximum(op, x, out);
      y.store(out, largest.value);
      if (operands.has_output(ResampleForward::index))
        operands.output(ResampleForward::index)
            .store(out, unknown_unless(largest.certain, Scalar(real(largest.position))));
    } else if (is_pooling(op.mode)) {
      y.store(out, pooled_average(op, operands, x, out));
    } else {
      Accumulator<Scalar> sum;
      for_each_in(interpolation_inputs(op, x.dims(), y.dims(), out), [&](const Index& in) {
        sum.add(
            weighted(interpolation_weight<Scalar>(op, y.dims(), out, x.dims(), in), x.load(in)));
      });
      y.store(out, sum.total());
    }
  });
}

namespace {

// The outputs that may read element `i` along an axis: a conservative range.
void outputs_of(const ResampleAttributes& op, int axis, std::int64_t i, std::int64_t in_extent,
                std::int64_t out_extent, std::int64_t& begin, std::int64_t& end) {
  if (is_pooling(op.mode)) {
    const std::int64_t stride = per_axis(op.stride, axis, op.window[axis]);
    const std::int64_t padded = i + per_axis(op.padding, axis, 0);
    begin = std::max<std::int64_t>(padded - op.window[axis] + 1, 0) / stride;
    end = padded / stride + 1;
  } else {
    // Output o is near input o / ratio; an input contributes up to one input spacing to either
    // side.
    const double ratio = op.align_corners && in_extent > 1 && op.mode == ResampleMode::bilinear
                             ? real(out_extent - 1) / real(in_extent - 1)
                             : real(out_extent) / real(in_extent);
    begin = static_cast<std::int64_t>(std::floor((real(i) - 1.5) * ratio)) - 2;
    end = static_cast<std::int64_t>(std::ceil((real(i) + 2.5) * ratio)) + 3;
  }
  // Border elements also receive everything beyond the border.
  if (i == 0) begin = 0;
  if (i == in_extent - 1) end = out_extent;
  begin = std::max<std::int64_t>(begin, 0);
  end = std::min(end, out_extent);
}

// 1 if element `in` of x is the maximum of the window of `out`.
template <class Operands>
typename Operands::Scalar is_maximum_of(const ResampleBackward& op, const Operands& operands,
                                        const Dims& x_dims, const Index& out, const Index& in) {
  using Scalar = typename Operands::Scalar;
  std::int64_t position;
  bool certain = true;
  if (operands.has_input(ResampleBackward::index)) {
    const Scalar given = operands.input(ResampleBackward::index).load(out);
    position = static_cast<std::int64_t>(nominal(given));
    certain = !may_overtake(given, given);
  } else {
    const auto largest = window_maximum(op, operands.input(ResampleBackward::x), out);
    position = largest.position;
    certain = largest.certain;
  }
  bool here = false, in_window = false;
  for_each_in(Box::all(op.window), [&](const Index& k) {
    const Source source = window_source(op, x_dims, out, k);
    if (source.padding || !(source.index == in)) return;
    in_window = true;
    here = here || flatten(op.window, k) == position;
  });
  const Scalar result(here ? 1.0 : 0.0);
  return certain || !in_window ? result : either_way(result);
}

template <class Operands>
typename Operands::Scalar gradient_share(const ResampleBackward& op, const Operands& operands,
                                         const typename Operands::View& dy, const Dims& x_dims,
                                         const Index& out, const Index& in) {
  using Scalar = typename Operands::Scalar;
  if (op.mode == ResampleMode::maxpool)
    return select(is_maximum_of(op, operands, x_dims, out, in), dy.load(out), Scalar(0.0));
  if (!is_pooling(op.mode))
    return weighted(interpolation_weight<Scalar>(op, dy.dims(), out, x_dims, in), dy.load(out));
  for (int axis = kSpatial; axis < in.rank(); ++axis) {
    const std::int64_t first = window_source(op, axis - kSpatial, out[axis], 0);
    if (in[axis] < first || in[axis] >= first + op.window[axis - kSpatial]) return Scalar(0.0);
  }
  return quotient(operands.compute(), dy.load(out), Scalar(real(average_count(op, x_dims, out))));
}

}  // namespace

template <class Operands>
void evaluate(const ResampleBackward& op, const Operands& operands) {
  using Scalar = typename Operands::Scalar;
  const auto dx = operands.output(ResampleBackward::dx);
  const auto dy = operands.input(ResampleBackward::dy);
  for_each(dx.dims(), [&](const Index& in) {
    Box outputs{in, in};
    for (int axis = 0; axis < in.rank(); ++axis) outputs.end[axis] = in[axis] + 1;
    for (int axis = kSpatial; axis < in.rank(); ++axis)
      outputs_of(op, axis - kSpatial, in[axis], dx.dims()[axis], dy.dims()[axis],
                 outputs.begin[axis], outputs.end[axis]);
    Accumulator<Scalar> sum;
    for_each_in(outputs, [&](const Index& out) {
      sum.add(gradient_share(op, operands, dy, dx.dims(), out, in));
    });
    dx.store(in, sum.total());
  });
}

ASHLAR_REFERENCE(ResampleForward);
ASHLAR_REFERENCE(ResampleBackward);

}  // namespace ashlar::reference

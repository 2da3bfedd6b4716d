// Source positions of resampling, per axis; shared by forward and backward.
#pragma once

#include "reference/evaluate.hpp"
#include "reference/uncertainty.hpp"

namespace ashlar::reference {

inline constexpr int kSpatial = 2;  // axis of the first spatial extent

inline bool is_pooling(ResampleMode mode) { return mode >= ResampleMode::avgpool_include_padding; }

// Coordinates of `index` with its spatial part replaced.
inline Index with_spatial(Index index, const Index& spatial) {
  for (int axis = 0; axis < spatial.rank(); ++axis) index[axis + kSpatial] = spatial[axis];
  return index;
}

// --- pooling: window position k of output o reads i = o * stride - padding + k.
inline std::int64_t window_source(const ResampleAttributes& op, int axis, std::int64_t out,
                                  std::int64_t k) {
  return out * per_axis(op.stride, axis, op.window[axis]) - per_axis(op.padding, axis, 0) + k;
}

// The source of one window position: an element of x, or padding.
struct Source {
  Index index;  // in x; meaningless in padding
  bool padding = false;
};
inline Source window_source(const ResampleAttributes& op, const Dims& x_dims, const Index& out,
                            const Index& k) {
  Source source{out, false};
  for (int axis = 0; axis < k.rank(); ++axis) {
    const std::int64_t extent = x_dims[axis + kSpatial];
    std::int64_t i = window_source(op, axis, out[axis + kSpatial], k[axis]);
    const bool outside = i < 0 || i >= extent;
    if (outside && op.mode == ResampleMode::maxpool && op.padding_mode == PaddingMode::edge)
      i = std::clamp<std::int64_t>(i, 0, extent - 1);
    else if (outside)
      source.padding = true;
    source.index[axis + kSpatial] = i;
  }
  return source;
}

// The maximum of a window and its row-major position: the first of equals, or the first NaN.
// `certain` is false if another position could win within the errors.
template <class Scalar>
struct WindowMaximum {
  Scalar value = Scalar(-kInfinity);
  std::int64_t position = -1;
  bool certain = true;
};
template <class View>
WindowMaximum<typename View::Scalar> window_maximum(const ResampleAttributes& op, const View& x,
                                                    const Index& out) {
  using Scalar = typename View::Scalar;
  // Calls body(position, value) for every window position. Padding with -inf is skipped: it never
  // wins.
  const auto for_each_visible = [&](const auto& body) {
    for_each_in(Box::all(op.window), [&](const Index& k) {
      const Source source = window_source(op, x.dims(), out, k);
      if (source.padding && op.padding_mode != PaddingMode::zero) return;
      body(flatten(op.window, k), source.padding ? Scalar(0.0) : x.load(source.index));
    });
  };
  WindowMaximum<Scalar> best;
  for_each_visible([&](std::int64_t position, Scalar seen) {
    const double candidate = nominal(seen), leader = nominal(best.value);
    const bool wins =
        best.position < 0 || candidate > leader || (std::isnan(candidate) && !std::isnan(leader));
    if (!wins) return;
    best.value = seen;
    best.position = position;
  });
  const Scalar leader = best.value;
  for_each_visible([&](std::int64_t position, Scalar seen) {
    best.value = maximum(best.value, seen);
    if (position != best.position && may_overtake(seen, leader)) best.certain = false;
  });
  return best;
}

// --- interpolation
// Nearest: output o reads input floor(o * in / out).
inline std::int64_t nearest_source(std::int64_t out, std::int64_t out_extent,
                                   std::int64_t in_extent) {
  return std::min(out * in_extent / out_extent, in_extent - 1);
}

// Linear: the input coordinate of output o, clamped to the input. Pixel centres are at half
// integers; with align_corners the first and last pixels of input and output coincide.
template <class Scalar>
Scalar linear_source(const ResampleAttributes& op, std::int64_t out, std::int64_t out_extent,
                     std::int64_t in_extent) {
  const Scalar last(real(in_extent - 1));
  if (op.align_corners)
    return out_extent == 1 ? Scalar(0.0)
                           : Scalar(real(out)) * (last / Scalar(real(out_extent - 1)));
  const Scalar ratio = Scalar(real(in_extent)) / Scalar(real(out_extent));
  const Scalar source = (Scalar(real(out)) + Scalar(0.5)) * ratio - Scalar(0.5);
  return minimum(maximum(source, Scalar(0.0)), last);
}

// The linear weight of input `in` for a point at coordinate `source`: 1 at `in`, 0 at its
// neighbours.
template <class Scalar>
Scalar linear_weight(Scalar source, std::int64_t in) {
  return maximum(Scalar(0.0), Scalar(1.0) - absolute(source - Scalar(real(in))));
}

// The weight of input `in` for output `out` along one axis, for nearest and linear.
template <class Scalar>
Scalar axis_weight(const ResampleAttributes& op, std::int64_t out, std::int64_t out_extent,
                   std::int64_t in, std::int64_t in_extent) {
  if (op.mode == ResampleMode::nearest)
    return Scalar(nearest_source(out, out_extent, in_extent) == in ? 1.0 : 0.0);
  return linear_weight(linear_source<Scalar>(op, out, out_extent, in_extent), in);
}

// The product of that over the spatial axes; `out` and `in` are indices of y and x.
template <class Scalar>
Scalar interpolation_weight(const ResampleAttributes& op, const Dims& y_dims, const Index& out,
                            const Dims& x_dims, const Index& in) {
  Scalar weight(1.0);
  for (int axis = kSpatial; axis < in.rank(); ++axis)
    weight = weight * axis_weight<Scalar>(op, out[axis], y_dims[axis], in[axis], x_dims[axis]);
  return weight;
}

// weight * x, where inputs of weight 0 are not read, so a neighbouring NaN does not spread. An
// implementation may read them, if rounding gives them weight or if it multiplies by zero.
inline double weighted(double weight, double x) { return weight == 0.0 ? 0.0 : weight * x; }
template <Arithmetic A>
Approx<A> weighted(Approx<A> weight, Approx<A> x) {
  const bool may_have_no_weight = std::fabs(weight.value) <= weight.error;
  if (may_have_no_weight && !std::isfinite(x.value))
    return Approx<A>::with_error(weighted(weight.value, x.value), kInfinity);
  if (weight.value != 0.0) return weight * x;
  return Approx<A>::with_error(0.0, amplified(std::fabs(x.value) + x.error, weight.error));
}

}  // namespace ashlar::reference

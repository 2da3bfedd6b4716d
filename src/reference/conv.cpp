// Convolution. x [N, C, i...], w [K, C/groups, r...], y [N, K, o...]. Tap r of output o reads x at
//   i = o * stride - padding + r * dilation                          (outside x: zero)
// and multiplies it with w[r], or with w[R - 1 - r] in mode `convolution`.
#include <optional>

#include "reference/evaluate.hpp"
#include "reference/mma_rounding.hpp"
#include "reference/winograd.hpp"

namespace ashlar::reference {

namespace {

constexpr int kFirstSpatial = 2;  // axis of the first spatial extent

// The tap of the weight stored at coordinate `at` along an axis.
std::int64_t tap_of(const ConvAttributes& op, const Dims& w_dims, const Index& at, int axis) {
  return op.mode == ConvMode::convolution ? w_dims[axis] - 1 - at[axis] : at[axis];
}

// Sets the spatial part of `in` to the input position that the weight at `at` multiplies for output
// `out`. Returns false if it is in padding.
bool find_input(const ConvAttributes& op, const Dims& x_dims, const Dims& w_dims, const Index& out,
                const Index& at, Index& in) {
  for (int axis = kFirstSpatial; axis < x_dims.rank(); ++axis) {
    in[axis] = out[axis] * per_axis(op.stride, axis - kFirstSpatial, 1) -
               per_axis(op.padding, axis - kFirstSpatial, 0) +
               tap_of(op, w_dims, at, axis) * per_axis(op.dilation, axis - kFirstSpatial, 1);
    if (in[axis] < 0 || in[axis] >= x_dims[axis]) return false;
  }
  return true;
}

// Sets the spatial part of `out` to the output for which the weight at `at` multiplies x at `in`.
// Returns false if there is none.
bool find_output(const ConvAttributes& op, const Dims& y_dims, const Dims& w_dims, const Index& in,
                 const Index& at, Index& out) {
  for (int axis = kFirstSpatial; axis < y_dims.rank(); ++axis) {
    const std::int64_t stride = per_axis(op.stride, axis - kFirstSpatial, 1);
    const std::int64_t scaled =
        in[axis] + per_axis(op.padding, axis - kFirstSpatial, 0) -
        tap_of(op, w_dims, at, axis) * per_axis(op.dilation, axis - kFirstSpatial, 1);
    if (scaled < 0 || scaled % stride != 0 || scaled / stride >= y_dims[axis]) return false;
    out[axis] = scaled / stride;
  }
  return true;
}

// All spatial coordinates, the first two fixed.
Box spatial_box(const Dims& dims, std::int64_t first, std::int64_t second) {
  Box box = Box::all(dims);
  box.begin[0] = first;
  box.begin[1] = second;
  box.end[0] = first + 1;
  box.end[1] = second + 1;
  return box;
}

struct Groups {
  std::int64_t channels;  // of x in one group
  std::int64_t filters;   // of w in one group
};
Groups groups_of(const Dims& x_dims, const Dims& w_dims) {
  const std::int64_t count = w_dims[1] == 0 ? 1 : std::max<std::int64_t>(x_dims[1] / w_dims[1], 1);
  return {w_dims[1], w_dims[0] / count};
}

// Whether the convolution can be computed with Winograd tiles.
bool fits_winograd(const ConvAttributes& op, const Dims& w_dims) {
  if (w_dims.rank() != 4) return false;
  for (int axis = 0; axis < 2; ++axis)
    if (w_dims[kFirstSpatial + axis] != 3 || per_axis(op.stride, axis, 1) != 1 ||
        per_axis(op.dilation, axis, 1) != 1)
      return false;
  return true;
}

// Error bounds of an implementation that may use Winograd tiles.
template <class Operands>
class WinogradBounds {
  using Scalar = typename Operands::Scalar;

 public:
  // `source` is x or dy, `result` y or dx.
  WinogradBounds(const ConvAttributes& op, const Operands& operands, int source, int weights,
                 bool forward) {
    if constexpr (std::is_same_v<Scalar, Approx<Arithmetic::f32>>) {
      const auto from = operands.input(source);
      const auto w = operands.input(weights);
      result_ = operands.output(0).dims();
      const int tile = operands.notes().winograd;
      if (tile == 0 || !fits_winograd(op, w.dims()) || element_count(result_) == 0) return;
      const Groups groups = groups_of(forward ? from.dims() : result_, w.dims());
      const std::int64_t pad[] = {per_axis(op.padding, 0, 0), per_axis(op.padding, 1, 0)};
      const WinogradProblem sums{
          .images = result_[0],
          .groups = w.dims()[0] / groups.filters,
          .channels = forward ? groups.channels : groups.filters,
          .results = forward ? groups.filters : groups.channels,
          .source = {from.dims()[2], from.dims()[3]},
          .result = {result_[2], result_[3]},
          .shift = {forward ? -pad[0] : pad[0] - 2, forward ? -pad[1] : pad[1] - 2}};
      const bool reversed = forward == (op.mode == ConvMode::convolution);
      const auto magnitude = [&](std::int64_t n, std::int64_t c, std::int64_t i, std::int64_t j) {
        return std::fabs(from.load({n, c, i, j}).value);
      };
      const auto weight = [&](std::int64_t group, std::int64_t k, std::int64_t c, std::int64_t i,
                              std::int64_t j) {
        const std::int64_t filter = group * groups.filters + (forward ? k : c);
        return std::fabs(
            w.load({filter, forward ? c : k, reversed ? 2 - i : i, reversed ? 2 - j : j}).value);
      };
      growth_.resize(static_cast<std::size_t>(element_count(result_)));
      max_winograd_magnitude<2>(sums, magnitude, weight, growth_);
      if (tile > 2) max_winograd_magnitude<4>(sums, magnitude, weight, growth_);
      units_ = kWinogradTransformUnits + summation_units(sums.channels);
      // F(2, 3) multiplies integers by multiples of 1/4.
      if (tile == 2) exact_ = Rounding<Arithmetic::f32>::exact_integers / 4;
    }
  }
  WinogradBounds(const ConvBackwardFilter& op, const Operands& operands) {
    if constexpr (std::is_same_v<Scalar, Approx<Arithmetic::f32>>) {
      const auto x = operands.input(ConvBackwardFilter::x);
      const auto dy = operands.input(ConvBackwardFilter::dy);
      result_ = operands.output(0).dims();
      const int tile = operands.notes().winograd;
      if (tile == 0 || !fits_winograd(op, result_) || element_count(result_) == 0) return;
      const Groups groups = groups_of(x.dims(), result_);
      const WinogradProblem sums{
          .images = x.dims()[0],
          .groups = result_[0] / groups.filters,
          .channels = groups.channels,
          .results = groups.filters,
          .source = {x.dims()[2], x.dims()[3]},
          .result = {dy.dims()[2], dy.dims()[3]},
          .shift = {-per_axis(op.padding, 0, 0), -per_axis(op.padding, 1, 0)}};
      const auto magnitude = [](const auto& view) {
        return [&view](std::int64_t n, std::int64_t c, std::int64_t i, std::int64_t j) {
          return std::fabs(view.load({n, c, i, j}).value);
        };
      };
      growth_.resize(static_cast<std::size_t>(element_count(result_)));
      max_winograd_filter_magnitude<2>(sums, magnitude(x), magnitude(dy), growth_);
      if (tile > 2) max_winograd_filter_magnitude<4>(sums, magnitude(x), magnitude(dy), growth_);
      const std::int64_t max_tiles =
          sums.images * ((sums.result[0] + 1) / 2) * ((sums.result[1] + 1) / 2);
      units_ = kWinogradTransformUnits + summation_units(max_tiles);
      if (tile == 2) exact_ = Rounding<Arithmetic::f32>::exact_integers / 4;
      reversed_ = op.mode == ConvMode::convolution;
    }
  }
  Scalar total(const MmaRounding<Scalar>& product, const Accumulator<Scalar>& sum,
               const Index& index) const {
    if (growth_.empty()) return product.total(sum);
    Index at = index;
    for (int axis = kFirstSpatial; reversed_ && axis < result_.rank(); ++axis)
      at[axis] = result_[axis] - 1 - at[axis];
    const auto element = static_cast<std::size_t>(flatten(result_, at));
    return sum.total_by_either({growth_[element], units_, exact_}, product.sums());
  }

 private:
  Dims result_;
  std::vector<double> growth_;  // by element of the result
  double units_ = 0.0, exact_ = 0.0;
  bool reversed_ = false;  // `growth_` is indexed by tap, the result is stored flipped
};

// Adds the dot product of two lines. If the first line lies in padding, there are no terms.
template <class Scalar, class Line>
void add_unless_padding(const MmaRounding<Scalar>& product, bool inside, const Line& pixels,
                        Line factors, std::int64_t count, Accumulator<Scalar>& sum) {
  if (inside) return add_dot_product(product, pixels, factors, count, sum);
  for (std::int64_t i = 0; i < count; ++i) sum.add_padding(factors[i]);
}

// result = alpha * sum + beta * z
template <class Operands>
class Blend {
  using Scalar = typename Operands::Scalar;

 public:
  Blend(const ConvAttributes& op, const Operands& operands, int z)
      : op_(op), result_(operands.output(0)) {
    if (operands.has_input(z) && op.beta != 0.0) z_ = operands.input(z);
  }
  void store(const Index& index, Scalar sum) const {
    Scalar result = op_.alpha == 1.0 ? sum : Scalar(op_.alpha) * sum;
    if (z_) {
      const Scalar addend = z_->load(index);
      result = result + (op_.beta == 1.0 ? addend : Scalar(op_.beta) * addend);
    }
    result_.store(index, result);
  }

 private:
  const ConvAttributes& op_;
  typename Operands::View result_;
  std::optional<typename Operands::View> z_;
};

}  // namespace

template <class Operands>
void evaluate(const ConvForward& op, const Operands& operands) {
  using Scalar = typename Operands::Scalar;
  const auto x = operands.input(ConvForward::x);
  const auto w = operands.input(ConvForward::w);
  const auto y = operands.output(ConvForward::y);
  const Groups groups = groups_of(x.dims(), w.dims());
  const MmaRounding<Scalar> product(operands, x.dtype(), w.dtype());
  const WinogradBounds<Operands> bounds(op, operands, ConvForward::x, ConvForward::w, true);
  const Blend<Operands> blend(op, operands, ConvForward::z);

  for_each(y.dims(), [&](const Index& index) {
    const std::int64_t k = index[1], first_channel = k / groups.filters * groups.channels;
    Index in = index;
    Accumulator<Scalar> sum;
    for_each_in(spatial_box(w.dims(), k, 0), [&](const Index& at) {
      const bool inside = find_input(op, x.dims(), w.dims(), index, at, in);
      in[1] = first_channel;
      add_unless_padding(product, inside, x.line(in, 1), w.line(at, 1), groups.channels, sum);
    });
    blend.store(index, bounds.total(product, sum, index));
  });
}

// dx[i] = sum over the outputs o and taps r that read x[i] of dy[o] * w[r]
template <class Operands>
void evaluate(const ConvBackwardData& op, const Operands& operands) {
  using Scalar = typename Operands::Scalar;
  const auto dy = operands.input(ConvBackwardData::dy);
  const auto w = operands.input(ConvBackwardData::w);
  const auto dx = operands.output(ConvBackwardData::dx);
  const Groups groups = groups_of(dx.dims(), w.dims());
  const MmaRounding<Scalar> product(operands, dy.dtype(), w.dtype());
  const WinogradBounds<Operands> bounds(op, operands, ConvBackwardData::dy, ConvBackwardData::w,
                                        false);
  const Blend<Operands> blend(op, operands, ConvBackwardData::z);

  for_each(dx.dims(), [&](const Index& index) {
    const std::int64_t first_filter = index[1] / groups.channels * groups.filters;
    Index out = index;
    Accumulator<Scalar> sum;
    for_each_in(
        spatial_box(w.dims(), first_filter, index[1] % groups.channels), [&](const Index& at) {
          const bool inside = find_output(op, dy.dims(), w.dims(), index, at, out);
          out[1] = first_filter;
          add_unless_padding(product, inside, dy.line(out, 1), w.line(at, 0), groups.filters, sum);
        });
    blend.store(index, bounds.total(product, sum, index));
  });
}

// dw[r] = sum over the images and outputs o of x[input of tap r for o] * dy[o]
template <class Operands>
void evaluate(const ConvBackwardFilter& op, const Operands& operands) {
  using Scalar = typename Operands::Scalar;
  const auto x = operands.input(ConvBackwardFilter::x);
  const auto dy = operands.input(ConvBackwardFilter::dy);
  const auto dw = operands.output(ConvBackwardFilter::dw);
  const Groups groups = groups_of(x.dims(), dw.dims());
  const MmaRounding<Scalar> product(operands, x.dtype(), dy.dtype());
  const WinogradBounds<Operands> bounds(op, operands);
  const Blend<Operands> blend(op, operands, ConvBackwardFilter::z);

  for_each(dw.dims(), [&](const Index& index) {
    const std::int64_t k = index[0];
    Index in = index;
    in[0] = 0;
    in[1] = k / groups.filters * groups.channels + index[1];
    Accumulator<Scalar> sum;
    for_each_in(spatial_box(dy.dims(), 0, k), [&](const Index& out) {
      const bool inside = find_input(op, x.dims(), dw.dims(), out, index, in);
      add_unless_padding(product, inside, x.line(in, 0), dy.line(out, 0), x.dims()[0], sum);
    });
    blend.store(index, bounds.total(product, sum, index));
  });
}

ASHLAR_REFERENCE(ConvForward);
ASHLAR_REFERENCE(ConvBackwardData);
ASHLAR_REFERENCE(ConvBackwardFilter);

}  // namespace ashlar::reference

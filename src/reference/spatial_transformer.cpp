// Affine grid generator and grid sampler. Coordinate j of a position belongs to spatial axis
// d - 1 - j: x comes first.
#include <array>

#include "reference/grid_position.hpp"

namespace ashlar::reference {

namespace {

// Coordinate in [-1, 1] of element i along an axis; 0 for extent 1.
template <class Scalar>
Scalar coordinate(bool align_corners, std::int64_t i, std::int64_t extent) {
  constexpr double kOtherOrder = 4.0;
  if (extent == 1) return Scalar(0.0);
  const Scalar steps = align_corners ? Scalar(real(2 * i)) / Scalar(real(extent - 1))
                                     : Scalar(real(2 * i + 1)) / Scalar(real(extent));
  return allow_units(steps - Scalar(1.0), kOtherOrder, Scalar(2.0));
}

// The multiplier of theta[n, :, k] at a grid position.
template <class Scalar>
Scalar base(const GridAttributes& op, const Dims& grid, const Index& at, std::int64_t k) {
  const int spatial = grid.rank() - 2;
  if (k == spatial) return Scalar(1.0);
  const int axis = spatial - static_cast<int>(k);  // 1 is the first after the batch
  return coordinate<Scalar>(op.align_corners, at[axis], grid[axis]);
}

}  // namespace

template <class Operands>
void evaluate(const GridGeneratorForward& op, const Operands& operands) {
  using Scalar = typename Operands::Scalar;
  const auto theta = operands.input(GridGeneratorForward::theta);
  const auto grid = operands.output(GridGeneratorForward::grid);
  for_each(grid.dims(), [&](const Index& at) {
    const std::int64_t j = at[at.rank() - 1];
    Accumulator<Scalar> sum;
    for (std::int64_t k = 0; k < theta.dims()[2]; ++k)
      sum.add(theta.load({at[0], j, k}) * base<Scalar>(op, grid.dims(), at, k));
    grid.store(at, sum.total());
  });
}
ASHLAR_REFERENCE(GridGeneratorForward);

template <class Operands>
void evaluate(const GridGeneratorBackward& op, const Operands& operands) {
  using Scalar = typename Operands::Scalar;
  const auto dgrid = operands.input(GridGeneratorBackward::dgrid);
  const auto dtheta = operands.output(GridGeneratorBackward::dtheta);
  for_each(dtheta.dims(), [&](const Index& index) {
    Box positions = Box::all(dgrid.dims());
    const int last = dgrid.dims().rank() - 1;
    positions.begin[0] = index[0];
    positions.end[0] = index[0] + 1;
    positions.begin[last] = index[1];
    positions.end[last] = index[1] + 1;
    Accumulator<Scalar> sum;
    for_each_in(positions, [&](const Index& at) {
      sum.add(dgrid.load(at) * base<Scalar>(op, dgrid.dims(), at, index[2]));
    });
    dtheta.store(index, sum.total());
  });
}
ASHLAR_REFERENCE(GridGeneratorBackward);

namespace {

// The sampling point in x of one grid position.
template <class View>
class GridPoint {
 public:
  using Scalar = typename View::Scalar;

  // `out` is an index of y.
  GridPoint(const GridSampleAttributes& op, const View& grid, const Dims& x, const Index& out)
      : spatial_(x.rank() - 2) {
    Index at = {out[0]};
    for (int axis = 0; axis < spatial_; ++axis) at.push_back(out[axis + 2]);
    at.push_back(0);
    for (int axis = 0; axis < spatial_; ++axis) {
      at[spatial_ + 1] = spatial_ - 1 - axis;
      axes_[static_cast<std::size_t>(axis)] = AxisPosition<Scalar>(op, grid.load(at), x[axis + 2]);
    }
  }

  const AxisPosition<Scalar>& axis(int a) const { return axes_[static_cast<std::size_t>(a)]; }
  bool is_nan() const {
    return any([](const auto& position) { return position.is_nan(); });
  }
  bool unknown() const {
    return any([](const auto& position) { return position.unknown(); });
  }
  // The elements of x[n, c] that may have weight, as indices of x.
  Box seen(std::int64_t n, std::int64_t c) const {
    Box box{{n, c}, {n + 1, c + 1}};
    for (int a = 0; a < spatial_; ++a) {
      box.begin.push_back(axis(a).first_seen());
      box.end.push_back(axis(a).last_seen() + 1);
    }
    return box;
  }
  bool sees(const Index& in) const {
    for (int a = 0; a < spatial_; ++a)
      if (in[a + 2] < axis(a).first_seen() || in[a + 2] > axis(a).last_seen()) return false;
    return true;
  }
  // The weight of an element; along axis `changing` its derivative instead of its weight.
  Scalar weight(const Index& in, int changing = -1) const {
    Scalar product(1.0);
    for (int a = 0; a < spatial_; ++a)
      product =
          product * (a == changing ? axis(a).weight_slope(in[a + 2]) : axis(a).weight(in[a + 2]));
    return product;
  }

 private:
  template <class Test>
  bool any(const Test& test) const {
    for (int a = 0; a < spatial_; ++a)
      if (test(axis(a))) return true;
    return false;
  }

  int spatial_;
  std::array<AxisPosition<Scalar>, 3> axes_;
};

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace

template <class Operands>
void evaluate(const GridSampleForward& op, const Operands& operands) {
  using Scalar = typename Operands::Scalar;
  const auto x = operands.input(GridSampleForward::x);
  const auto grid = operands.input(GridSampleForward::grid);
  const auto y = operands.output(GridSampleForward::y);
  for_each(y.dims(), [&](const Index& out) {
    const GridPoint point(op, grid, x.dims(), out);
    if (point.is_nan() || point.unknown())
      return y.store(out, unknown_unless(!point.unknown(), Scalar(kNaN)));
    Accumulator<Scalar> sum;
    for_each_in(point.seen(out[0], out[1]),
                [&](const Index& in) { sum.add(weighted(point.weight(in), x.load(in))); });
    y.store(out, sum.total());
  });
}
ASHLAR_REFERENCE(GridSampleForward);

namespace {

// Channels accumulated at once: they share the sampling position.
constexpr std::int64_t kChannels = 32;

// dx of kChannels channels at one spatial position: the sum over all outputs that read it.
template <class Operands>
void input_gradient(const GridSampleBackward& op, const Operands& operands, Index in) {
  using Scalar = typename Operands::Scalar;
  const auto grid = operands.input(GridSampleBackward::grid);
  const auto dy = operands.input(GridSampleBackward::dy);
  const auto dx = operands.output(GridSampleBackward::dx);
  const std::int64_t first = in[1] * kChannels, end = std::min(first + kChannels, dx.dims()[1]);
  std::array<Accumulator<Scalar>, kChannels> sums;
  Box outputs = Box::all(dy.dims());
  outputs.begin[0] = in[0];
  outputs.end[0] = in[0] + 1;
  outputs.end[1] = 1;
  for_each_in(outputs, [&](const Index& at) {
    const GridPoint point(op, grid, dx.dims(), at);
    if (point.unknown()) {
      for (auto& sum : sums) sum.add(unknown_unless(false, Scalar(0.0)));
      return;
    }
    if (point.is_nan() || !point.sees(in)) return;
    const Scalar weight = point.weight(in);
    Index out = at;
    for (std::int64_t c = first; c < end; ++c) {
      out[1] = c;
      sums[static_cast<std::size_t>(c - first)].add(weighted(weight, dy.load(out)));
    }
  });
  for (std::int64_t c = first; c < end; ++c) {
    in[1] = c;
    dx.store(in, sums[static_cast<std::size_t>(c - first)].total());
  }
}

// d loss / d coordinate j of one grid position: the sum over all channels and elements read.
template <class Operands>
typename Operands::Scalar coordinate_gradient(const GridSampleBackward& op,
                                              const Operands& operands, const Index& at) {
  using Scalar = typename Operands::Scalar;
  const auto x = operands.input(GridSampleBackward::x);
  const auto grid = operands.input(GridSampleBackward::grid);
  const auto dy = operands.input(GridSampleBackward::dy);
  const int spatial = at.rank() - 2, axis = spatial - 1 - static_cast<int>(at[spatial + 1]);
  if (op.mode == GridSampleMode::nearest) return Scalar(0.0);
  Index out = {at[0], 0};
  for (int a = 0; a < spatial; ++a) out.push_back(at[a + 1]);
  const GridPoint point(op, grid, x.dims(), out);
  if (point.is_nan() || point.unknown()) return unknown_unless(!point.unknown(), Scalar(kNaN));
  Accumulator<Scalar> sum;
  for (std::int64_t c = 0; c < x.dims()[1]; ++c) {
    out[1] = c;
    sum.add_padding(dy.load(out));  // an implementation may multiply it by a change of 0
    for_each_in(point.seen(at[0], c), [&](const Index& in) {
      sum.add(weighted(point.weight(in, axis), x.load(in) * dy.load(out)));
    });
  }
  const Scalar slope = point.axis(axis).slope(), total = sum.total();
  // An implementation may multiply by a slope of 0.
  const bool finite = std::isfinite(nominal(total)) && uncertainty(total) < kInfinity;
  return unknown_unless(nominal(slope) != 0.0 || finite, weighted(slope, total));
}

}  // namespace

template <class Operands>
void evaluate(const GridSampleBackward& op, const Operands& operands) {
  Dims places = operands.output(GridSampleBackward::dx).dims();
  places[1] = (places[1] + kChannels - 1) / kChannels;
  for_each(places, [&](const Index& in) { input_gradient(op, operands, in); });
  if (!operands.has_output(GridSampleBackward::dgrid)) return;
  const auto dgrid = operands.output(GridSampleBackward::dgrid);
  for_each(dgrid.dims(),
           [&](const Index& at) { dgrid.store(at, coordinate_gradient(op, operands, at)); });
}
ASHLAR_REFERENCE(GridSampleBackward);

}  // namespace ashlar::reference

// Sampling positions of a grid and the interpolation weights of the elements of x.
//
// Positions carry rounding errors. Bilinear sampling is continuous: its weights propagate them.
// Nearest sampling and the gradient with respect to the position are discontinuous at cell borders:
// there the weights of either side are accepted.
#pragma once

#include "reference/resample.hpp"

namespace ashlar::reference {

// Half the width of the interval that contains the value.
inline double uncertainty(double) { return 0.0; }
template <Arithmetic A>
double uncertainty(Approx<A> x) {
  return x.error;
}
inline double with_uncertainty(double value, double, double) { return value; }
template <Arithmetic A>
Approx<A> with_uncertainty(double value, double error, Approx<A>) {
  return Approx<A>::with_error(value, error);
}

// The triangle wave between `low` and `high` with slope +-1, rising from `low`.
struct Reflection {
  double low, high;
  double span() const { return high - low; }
  // The wave rises on even legs and falls on odd legs.
  double leg(double x) const { return std::floor((x - low) / span()); }
  double operator()(double x) const {
    if (span() == 0.0) return std::isnan(x) ? x : 0.0;
    if (x >= low && x <= high) return x;
    const double rest = std::fmod(std::fabs(x - low), 2.0 * span());
    return low + (rest > span() ? 2.0 * span() - rest : rest);
  }
};
inline double reflected(double x, const Reflection& wave) { return wave(x); }
template <Arithmetic A>
Approx<A> reflected(Approx<A> x, const Reflection& wave) {
  constexpr double kUnits = 4.0;
  if (x.error == 0.0 && x.value >= wave.low && x.value <= wave.high) return x;
  const double rounding = kUnits * Rounding<A>::unit * (std::fabs(x.value) + wave.span());
  if (!std::isfinite(x.value)) return Approx<A>::with_error(wave(x.value), x.error);
  return Approx<A>::with_error(wave(x.value), x.error + rounding);
}

// The position along one spatial axis of x.
template <class Scalar>
class AxisPosition {
 public:
  AxisPosition() = default;
  AxisPosition(const GridSampleAttributes& op, Scalar coordinate, std::int64_t extent)
      : nearest_(op.mode == GridSampleMode::nearest), extent_(extent) {
    const double size = real(extent);
    // -1 and 1 are the centres of the corner elements, or their outer edges.
    scale_ = op.align_corners ? 0.5 * (size - 1.0) : 0.5 * size;
    const Scalar shifted = coordinate + Scalar(1.0);
    position_ = op.align_corners ? shifted * Scalar(scale_)
                                 : (shifted * Scalar(size) - Scalar(1.0)) * Scalar(0.5);
    slope_ = Scalar(1.0);
    if (op.padding == GridPadding::zeros) return;
    if (op.padding == GridPadding::reflection) {
      const Reflection wave =
          op.align_corners ? Reflection{0.0, size - 1.0} : Reflection{-0.5, size - 0.5};
      slope_ = wave_slope(wave);
      position_ = reflected(position_, wave);
    }
    const Scalar first(0.0), last(size - 1.0);
    slope_ = slope_ * less(first, position_) * less(position_, last);
    position_ = minimum(maximum(position_, first), last);
  }

  bool is_nan() const { return std::isnan(nominal(position_)); }
  bool unknown() const { return uncertainty(position_) == kInfinity; }
  // d position / d coordinate, where it exists.
  Scalar slope() const { return slope_ * Scalar(scale_); }

  // The elements that may have weight: [first_seen, last_seen], within x.
  std::int64_t first_seen() const {
    return std::max<std::int64_t>(cell(nominal(position_) - uncertainty(position_)), 0);
  }
  std::int64_t last_seen() const {
    const std::int64_t last =
        cell(nominal(position_) + uncertainty(position_)) + (nearest_ ? 0 : 1);
    return std::min(last, extent_ - 1);
  }
  Scalar weight(std::int64_t i) const {
    if (!nearest_) return linear_weight(position_, i);
    const Scalar here(cell(nominal(position_)) == i ? 1.0 : 0.0);
    return is_certain() ? here : either_way(here);
  }
  // d weight / d position
  Scalar weight_slope(std::int64_t i) const {
    const auto slope_in = [&](std::int64_t c) { return i == c ? -1.0 : i == c + 1 ? 1.0 : 0.0; };
    const std::int64_t here = cell(nominal(position_));
    double most = 0.0;
    for (std::int64_t c : {i - 2, i - 1, i, i + 1})
      if (c >= cell(nominal(position_) - uncertainty(position_)) &&
          c <= cell(nominal(position_) + uncertainty(position_)))
        most = std::max(most, std::fabs(slope_in(c) - slope_in(here)));
    return with_uncertainty(slope_in(here), most, position_);
  }

 private:
  // The nearest element (ties to even), or for bilinear the one at or below. Clamped just outside
  // of x.
  std::int64_t cell(double position) const {
    const double inside = std::clamp(position, -3.0, real(extent_) + 3.0);
    return static_cast<std::int64_t>(nearest_ ? std::nearbyint(inside) : std::floor(inside));
  }
  bool is_certain() const {
    return cell(nominal(position_) - uncertainty(position_)) ==
           cell(nominal(position_) + uncertainty(position_));
  }
  Scalar wave_slope(const Reflection& wave) const {
    if (wave.span() == 0.0) return Scalar(0.0);
    const double middle = wave.leg(nominal(position_));
    const bool certain = wave.leg(nominal(position_) - uncertainty(position_)) == middle &&
                         wave.leg(nominal(position_) + uncertainty(position_)) == middle;
    return with_uncertainty(std::fmod(std::fabs(middle), 2.0) == 0.0 ? 1.0 : -1.0,
                            certain ? 0.0 : 2.0, position_);
  }

  bool nearest_ = false;
  std::int64_t extent_ = 1;
  double scale_ = 1.0;
  Scalar position_ = Scalar(0.0), slope_ = Scalar(0.0);
};

}  // namespace ashlar::reference

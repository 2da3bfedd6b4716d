// An accumulator whose error bound holds for every order of the additions.
#pragma once

#include <cstdint>

#include "reference/scalar.hpp"

namespace ashlar::reference {

// Rounding error of a sum of n terms, in units of the compute type: at most n - 1, and with
// overwhelming probability at most 6 sqrt(n) + 2, because rounding errors are independent and of
// either sign.
inline double summation_units(std::int64_t n) {
  return std::min(real(std::max<std::int64_t>(n - 1, 0)), 6.0 * std::sqrt(real(n)) + 2.0);
}

// How the products of a node are accumulated (docs/numerics.md). Tensor cores truncate each product
// and each addition to the accumulator, so errors have one sign and grow linearly with the number
// of terms.
enum class MmaAccumulation : std::uint8_t { rounded, truncated, fp8 };
inline constexpr std::int64_t kFp8Chunk = 128;  // terms accumulated to 14 bits before f32 promotion
inline double summation_units(MmaAccumulation sums, std::int64_t n) {
  switch (sums) {
    case MmaAccumulation::rounded: return summation_units(n);
    case MmaAccumulation::truncated: return 2.0 * real(n) + 2.0;
    case MmaAccumulation::fp8:  // 2^-13 is 2^11 units
      return 0x1p11 * (real(std::min(n, kFp8Chunk)) + 8.0) + summation_units(n);
  }
  return kInfinity;
}
// Sums of integers are exact while the sum of their magnitudes is at most this.
constexpr double exact_integers(MmaAccumulation sums, double of_the_compute_type) {
  return sums == MmaAccumulation::fp8 ? 0x1p13 : of_the_compute_type;
}

// Adding and subtracting 1.5 * 2^52 rounds to an integer. False for huge values and NaN.
inline bool is_whole(double x) { return (x + 0x1.8p52) - 0x1.8p52 == x; }

// An alternative algorithm for a sum: its rounding error is at most `units` roundings of a value of
// at most `magnitude`, and zero for integers while that is at most `exact`.
struct SumFormula {
  double magnitude = 0.0, units = 0.0, exact = 0.0;
};

template <class Scalar>
class Accumulator {
 public:
  void add(double term) { sum_ += term; }
  void add_padding(double) {}
  double total(MmaAccumulation = MmaAccumulation::rounded) const { return sum_; }
  double total_by_either(const SumFormula&, MmaAccumulation) const { return sum_; }

 private:
  double sum_ = 0.0;
};

template <Arithmetic A>
class Accumulator<Approx<A>> {
 public:
  void add(Approx<A> term) {
    sum_ += term.value;
    magnitude_ += std::fabs(term.value);
    errors_ += term.error;
    exact_ = exact_ && term.error == 0.0 && is_whole(term.value);
    ++count_;
  }
  // An operand that meets padding: not a term, but an implementation may multiply it by zero.
  void add_padding(Approx<A> factor) {
    if (std::isfinite(factor.value) && !factor.unknown()) return;
    errors_ = kInfinity;
    exact_ = false;
  }
  Approx<A> total(MmaAccumulation sums = MmaAccumulation::rounded) const {
    // Integers small enough to be added without rounding, in any order.
    if (exact_ && magnitude_ <= exact_integers(sums, Rounding<A>::exact_integers))
      return Approx<A>::with_error(sum_, 0.0);
    return rounded(magnitude_, summation_units(sums, count_));
  }
  // The bound of an implementation that adds the terms directly or uses the other formula.
  Approx<A> total_by_either(const SumFormula& formula, MmaAccumulation sums) const {
    const Approx<A> direct = total(sums);
    // A non-finite value spreads to sums that do not contain it.
    if (!std::isfinite(formula.magnitude)) return Approx<A>::with_error(sum_, kInfinity);
    if (exact_ && formula.magnitude <= formula.exact) return direct;
    const Approx<A> other = rounded(formula.magnitude, formula.units);
    return other.error > direct.error ? other : direct;
  }

 private:
  Approx<A> rounded(double magnitude, double units) const {
    using Limits = Rounding<A>;
    if (!std::isfinite(sum_)) return Approx<A>::with_error(sum_, errors_);
    // Partial sums may be as large as the magnitude and overflow.
    if (magnitude + errors_ > Limits::largest) return Approx<A>::with_error(sum_, kInfinity);
    return Approx<A>::with_error(
        sum_, errors_ + units * Limits::unit * (magnitude + errors_) + Limits::tiny);
  }

  double sum_ = 0.0;
  double magnitude_ = 0.0;  // sum of |term|
  double errors_ = 0.0;
  std::int64_t count_ = 0;
  bool exact_ = true;
};

}  // namespace ashlar::reference

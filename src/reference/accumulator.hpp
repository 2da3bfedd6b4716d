// Sums whose bound holds for every order of the additions.
#pragma once

#include <cstdint>

#include "reference/scalar.hpp"

namespace ashlar::reference {

// Growth of the rounding error of a sum of n terms, in units: at most n - 1, and with overwhelming
// probability at most 6 sqrt(n) + 2, because roundings are independent and of either sign.
inline double summation_units(std::int64_t n) {
  return std::min(real(std::max<std::int64_t>(n - 1, 0)), 6.0 * std::sqrt(real(n)) + 2.0);
}

template <class Scalar>
class Accumulator {
 public:
  void add(double term) { sum_ += term; }
  double total() const { return sum_; }

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
    exact_ = exact_ && term.error == 0.0 && term.value == std::nearbyint(term.value);
    ++count_;
  }
  Approx<A> total() const {
    using Limits = Rounding<A>;
    // Whole numbers small enough to be added without rounding, in any order.
    if (exact_ && magnitude_ <= Limits::exact_integers) return Approx<A>::with_error(sum_, 0.0);
    if (!std::isfinite(sum_)) return Approx<A>::with_error(sum_, errors_);
    // Partial sums reach up to the magnitude: past the range they may overflow.
    if (magnitude_ + errors_ > Limits::largest) return Approx<A>::with_error(sum_, kInfinity);
    return Approx<A>::with_error(
        sum_, errors_ + summation_units(count_) * Limits::unit * (magnitude_ + errors_) + Limits::tiny);
  }

 private:
  double sum_ = 0.0;
  double magnitude_ = 0.0;  // sum of |term|
  double errors_ = 0.0;
  std::int64_t count_ = 0;
  bool exact_ = true;
};

}  // namespace ashlar::reference

// Running error analysis by operator overloading: a value together with a bound on the error of a
// correct implementation. docs/numerics.md derives the rules and the constants.
//
// Meaning of {value, error}: an implementation that performs the same arithmetic in the compute
// type, in any order the operation allows, computes a result within `error` of `value`.
//   error = +inf: nothing is known, not even whether the result is NaN.
//   value not finite, error = 0: the result is certainly that infinity, or NaN.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/element.hpp"

namespace ashlar::reference {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

enum class Arithmetic { f32, f64, integer };

constexpr Arithmetic arithmetic_of(DType compute) {
  if (!is_floating(compute)) return Arithmetic::integer;
  return compute == DType::f64 ? Arithmetic::f64 : Arithmetic::f32;
}

// unit: maximum relative error of one operation. tiny: absolute error near zero, where results may
// be flushed. largest: above it an operation may overflow. exact_integers: integer sums are exact
// up to this magnitude.
template <Arithmetic>
struct Rounding {  // integers are exact
  static constexpr double unit = 0.0, tiny = 0.0, largest = kInfinity, exact_integers = kInfinity;
};
template <>
struct Rounding<Arithmetic::f32> {
  static constexpr double unit = 0x1p-24, tiny = 0x1p-126, largest = 0x1.fffffep127,
                          exact_integers = 0x1p24;
};
// The oracle itself rounds in f64: twice the unit covers it and the implementation.
template <>
struct Rounding<Arithmetic::f64> {
  static constexpr double unit = 0x1p-52, tiny = 0x1p-1022, largest = 0x1.fffffffffffffp1023,
                          exact_integers = 0x1p53;
};

// ULPs granted to divisions, roots, exponentials and other library functions.
inline constexpr double kFunctionUnits = 4.0;

// factor * error, where an infinite factor does not turn an error of 0 into NaN. A product with NaN
// is certainly NaN, so its error is 0.
inline double amplified(double factor, double error) {
  return error == 0.0 || std::isnan(factor) ? 0.0 : std::fabs(factor) * error;
}

// |a - b|; 0 for equal infinities and for two NaNs.
inline double distance(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0.0;
  const double gap = std::fabs(a - b);
  return std::isnan(gap) ? kInfinity : gap;
}

template <Arithmetic A>
struct Approx {
  using Limits = Rounding<A>;
  double value = 0.0;
  double error = 0.0;

  Approx() = default;
  // A constant, converted to the compute type by the implementation.
  Approx(double exact) : value(exact) {
    if (!representable(exact)) *this = rounded(exact, 0.0, 1.0);
  }
  // A stored value with its accumulated error.
  static Approx stored(double value, double error) {
    return representable(value) ? with_error(value, error) : rounded(value, error, 1.0);
  }
  // `value` with the given error and no additional rounding.
  static Approx with_error(double value, double error) {
    Approx result;
    result.value = value;
    result.error = error;
    // The fast path: most of the oracle's time is spent here.
    constexpr double kLargest = std::min(Limits::largest, std::numeric_limits<double>::max());
    if (!(std::fabs(value) + error <= kLargest)) result.error = error_out_of_range(value, error);
    return result;
  }
  // The result of an operation with propagated input error `propagated` and `units` roundings.
  // The implementation rounds its own result, which may be larger than `value` by `propagated`.
  static Approx rounded(double value, double propagated, double units) {
    if (std::isfinite(value))
      propagated += units * Limits::unit * (std::fabs(value) + propagated) + Limits::tiny;
    return with_error(value, propagated);
  }
  // The same for a function such as exp, which integer arithmetic computes in f64.
  static Approx of_function(double value, double propagated, double units) {
    const double f64_error = units * Rounding<Arithmetic::f64>::unit * std::fabs(value);
    return rounded(value, A == Arithmetic::integer ? propagated + f64_error : propagated, units);
  }
  static bool representable(double value) {
    if constexpr (A == Arithmetic::f32)
      return static_cast<double>(static_cast<float>(value)) == value || std::isnan(value);
    return true;
  }
  [[gnu::noinline]] static double error_out_of_range(double value, double error) {
    if (!std::isfinite(value)) return error < kInfinity ? 0.0 : kInfinity;
    const bool unknown = std::isnan(error) || std::fabs(value) + error > Limits::largest;
    return unknown ? kInfinity : error;
  }
  bool unknown() const { return error == kInfinity; }

  // IEEE addition and multiplication of exact operands are exact if the result is representable.
  static Approx of_basic_operation(double value, double propagated) {
    if (propagated == 0.0 && std::isfinite(value) && representable(value) && A != Arithmetic::f64)
      return with_error(value, 0.0);
    return rounded(value, propagated, 1.0);
  }

  friend Approx operator+(Approx a, Approx b) {
    return of_basic_operation(a.value + b.value, a.error + b.error);
  }
  friend Approx operator-(Approx a, Approx b) {
    return of_basic_operation(a.value - b.value, a.error + b.error);
  }
  friend Approx operator-(Approx a) { return with_error(-a.value, a.error); }
  friend Approx operator*(Approx a, Approx b) {
    const double product = a.value * b.value;
    if (a.error == 0.0 && b.error == 0.0) return of_basic_operation(product, 0.0);
    return of_basic_operation(product, amplified(a.value, b.error) + amplified(b.value, a.error) +
                                           amplified(a.error, b.error));
  }
  friend Approx operator/(Approx a, Approx b) {
    const double quotient = a.value / b.value;
    if (b.error > 0.0 && std::fabs(b.value) <= b.error) return with_error(quotient, kInfinity);
    // The sign of a zero, and hence of the infinity, is not guaranteed.
    if (b.value == 0.0)
      return with_error(quotient, std::isnan(quotient) && a.error == 0.0 ? 0.0 : kInfinity);
    const double propagated =
        (a.error + amplified(quotient, b.error)) / (std::fabs(b.value) - b.error);
    return rounded(quotient, propagated, kFunctionUnits);
  }
};

// Adds `units` roundings of a value as large as `of`, for implementations with a rounding step that
// the loop nest does not have.
template <Arithmetic A>
Approx<A> allow_units(Approx<A> x, double units, Approx<A> of) {
  if (!std::isfinite(x.value) || !std::isfinite(of.value)) return x;
  return Approx<A>::with_error(
      x.value, x.error + units * Rounding<A>::unit * (std::fabs(of.value) + of.error));
}
inline double allow_units(double x, double, double) { return x; }

// Allows the implementation to round x to `dtype`.
template <Arithmetic A>
Approx<A> allow_rounding_to(DType dtype, Approx<A> x) {
  if (!std::isfinite(x.value) || x.unknown()) return x;
  const double rounding =
      unit_roundoff(dtype) * (std::fabs(x.value) + x.error) + 0.5 * smallest_step(dtype);
  return Approx<A>::with_error(x.value, x.error + rounding);
}
inline double allow_rounding_to(DType, double x) { return x; }

inline double nominal(double x) { return x; }
template <Arithmetic A>
double nominal(Approx<A> x) {
  return x.value;
}

}  // namespace ashlar::reference

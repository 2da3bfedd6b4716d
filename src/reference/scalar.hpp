// Elementary functions of the loop nests, for both scalar types: double (the last-resort engine)
// and Approx (the oracle).
//
// Comparisons return 1 or 0 in the same scalar type; for Approx, an error of 1 means "either".
#pragma once

#include "reference/approx.hpp"

namespace ashlar::reference {

inline double real(std::int64_t n) { return static_cast<double>(n); }

// --- monotonic functions of one argument: the ends of the interval bound the result.
template <Arithmetic A, class Function>
Approx<A> monotone(Approx<A> x, double units, Function function) {
  const double value = function(x.value);
  if (x.error == 0.0) return Approx<A>::of_function(value, 0.0, units);
  if (x.unknown()) return Approx<A>::with_error(value, kInfinity);
  const double spread = std::max(distance(function(x.value + x.error), value),
                                 distance(value, function(x.value - x.error)));
  return Approx<A>::of_function(value, spread, units);
}

inline double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
// log(1 + exp(x)) without overflow.
inline double softplus(double x) {
  return std::isnan(x) ? x : std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x)));
}

inline double exp(double x) { return std::exp(x); }
inline double expm1(double x) { return std::expm1(x); }
inline double log(double x) { return std::log(x); }
inline double sqrt(double x) { return std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline double tanh(double x) { return std::tanh(x); }
inline double erf(double x) { return std::erf(x); }
inline double sin(double x) { return std::sin(x); }
inline double cos(double x) { return std::cos(x); }
inline double tan(double x) { return std::tan(x); }
inline double floor(double x) { return std::floor(x); }
inline double ceil(double x) { return std::ceil(x); }
inline double trunc(double x) { return std::trunc(x); }
inline double round_half_even(double x) { return std::nearbyint(x); }
inline double sign(double x) { return x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : x; }
inline double log1p(double x) { return std::log1p(x); }
inline double absolute(double x) { return std::fabs(x); }
inline double pow(double x, double y) { return std::pow(x, y); }
inline double atan2(double y, double x) { return std::atan2(y, x); }
inline double fmod(double x, double y) { return std::fmod(x, y); }

// exp is often computed as exp2(x * log2(e)): rounding the argument adds two units per |x|.
template <Arithmetic A>
Approx<A> exp(Approx<A> x) {
  const double conditioning = std::isfinite(x.value) ? 2.0 * std::fabs(x.value) : 0.0;
  return monotone(x, kFunctionUnits + conditioning, [](double v) { return std::exp(v); });
}
template <Arithmetic A>
Approx<A> expm1(Approx<A> x) {
  const double conditioning = std::isfinite(x.value) ? 2.0 * std::fabs(x.value) : 0.0;
  const Approx<A> result =
      monotone(x, kFunctionUnits + conditioning, [](double v) { return std::expm1(v); });
  // exp(x) - 1 is a valid implementation: its rounding error is relative to 1.
  return allow_units(result, kFunctionUnits, Approx<A>(1.0));
}
// log(x) = exponent * log(2) + log(mantissa): near 1 the two cancel.
template <Arithmetic A>
Approx<A> log(Approx<A> x) {
  return allow_units(monotone(x, kFunctionUnits, [](double v) { return std::log(v); }), 1.0,
                     Approx<A>(1.0));
}
template <Arithmetic A>
Approx<A> sqrt(Approx<A> x) {
  return monotone(x, kFunctionUnits, [](double v) { return std::sqrt(v); });
}
// The sign of a zero is not promised, and with it that of 1 / sqrt(0).
template <Arithmetic A>
Approx<A> rsqrt(Approx<A> x) {
  if (A != Arithmetic::integer && x.value == 0.0)
    return Approx<A>::with_error(rsqrt(x.value), kInfinity);
  return monotone(x, kFunctionUnits, [](double v) { return rsqrt(v); });
}
// tanh, erf and sigmoid are often computed from exponentials: their absolute error is in units of 1
// where they are not small, and in units of x where they are.
template <Arithmetic A>
Approx<A> tanh(Approx<A> x) {
  return monotone(x, 2.0 * kFunctionUnits, [](double v) { return std::tanh(v); });
}
template <Arithmetic A>
Approx<A> erf(Approx<A> x) {
  return monotone(x, 2.0 * kFunctionUnits, [](double v) { return std::erf(v); });
}
template <Arithmetic A>
Approx<A> sigmoid(Approx<A> x) {
  const double conditioning = std::isfinite(x.value) ? 2.0 * std::fabs(x.value) : 0.0;
  return monotone(x, 2.0 * kFunctionUnits + conditioning, [](double v) { return sigmoid(v); });
}
template <Arithmetic A>
Approx<A> softplus(Approx<A> x) {
  return allow_units(monotone(x, kFunctionUnits, [](double v) { return softplus(v); }),
                     kFunctionUnits, Approx<A>(1.0));
}
// The library function: no cancellation near 0, as log(1 + x) would have.
template <Arithmetic A>
Approx<A> log1p(Approx<A> x) {
  return monotone(x, kFunctionUnits, [](double v) { return std::log1p(v); });
}
// Step functions: the error is the distance between the possible results; no rounding.
template <Arithmetic A, class Function>
Approx<A> stepped(Approx<A> x, Function function) {
  if (x.unknown()) return x;
  const double value = function(x.value);
  return Approx<A>::with_error(value, x.error == 0.0
                                          ? 0.0
                                          : std::max(function(x.value + x.error) - value,
                                                     value - function(x.value - x.error)));
}
template <Arithmetic A>
Approx<A> floor(Approx<A> x) {
  return stepped(x, [](double v) { return std::floor(v); });
}
template <Arithmetic A>
Approx<A> ceil(Approx<A> x) {
  return -floor(-x);
}
template <Arithmetic A>
Approx<A> trunc(Approx<A> x) {
  return stepped(x, [](double v) { return std::trunc(v); });
}
template <Arithmetic A>
Approx<A> round_half_even(Approx<A> x) {
  return stepped(x, [](double v) { return std::nearbyint(v); });
}
template <Arithmetic A>
Approx<A> sign(Approx<A> x) {
  return stepped(x, [](double v) { return sign(v); });
}
template <Arithmetic A>
Approx<A> absolute(Approx<A> x) {
  return Approx<A>::with_error(std::fabs(x.value), x.error);
}

// --- trigonometry: slope at most 1; argument reduction may cost two units of the argument.
template <Arithmetic A>
Approx<A> of_slope_one(Approx<A> x, double value) {
  const double argument =
      std::isfinite(x.value) ? 2.0 * Rounding<A>::unit * std::fabs(x.value) : 0.0;
  if (x.unknown()) return Approx<A>::with_error(value, kInfinity);
  return Approx<A>::of_function(value, std::min(x.error + argument, 2.0), kFunctionUnits);
}
template <Arithmetic A>
Approx<A> sin(Approx<A> x) {
  return of_slope_one(x, std::sin(x.value));
}
template <Arithmetic A>
Approx<A> cos(Approx<A> x) {
  return of_slope_one(x, std::cos(x.value));
}
template <Arithmetic A>
Approx<A> tan(Approx<A> x) {
  return sin(x) / cos(x);
}

// --- functions of two numbers
// x^y = exp(y log x): the exponent's relative rounding is amplified by its size.
template <Arithmetic A>
Approx<A> pow(Approx<A> x, Approx<A> y) {
  const double value = std::pow(x.value, y.value);
  if (x.unknown() || y.unknown()) return Approx<A>::with_error(value, kInfinity);
  // 1^y and x^0 are 1 even for NaN: the NaN of a base near 1 or of a power near 0 is not certain.
  const bool may_be_one = (std::isnan(y.value) && std::fabs(x.value - 1.0) <= x.error) ||
                          (std::isnan(x.value) && std::fabs(y.value) <= y.error);
  // A negative base has a power where the exponent may be a whole number.
  const bool may_be_whole = y.error > 0.0 && x.value - x.error < 0.0 &&
                            std::floor(y.value + y.error) >= std::ceil(y.value - y.error);
  if (std::isnan(value) && (may_be_one || may_be_whole))
    return Approx<A>::with_error(value, kInfinity);
  // The sign of a zero is not promised, and with it that of the infinity of an odd power.
  if (A != Arithmetic::integer && x.value == 0.0 && y.value < 0.0 &&
      std::fabs(std::fmod(y.value, 2.0)) == 1.0)
    return Approx<A>::with_error(value, kInfinity);
  double spread = 0.0;
  if (x.error > 0.0 || y.error > 0.0) {
    const bool base_crosses_zero = std::fabs(x.value) <= x.error;
    const bool whole_positive_power =
        y.error == 0.0 && y.value > 0.0 && y.value == std::floor(y.value);
    if (base_crosses_zero && !whole_positive_power) return Approx<A>::with_error(value, kInfinity);
    for (double base : {x.value - x.error, x.value + x.error})
      for (double power : {y.value - y.error, y.value + y.error})
        spread = std::max(spread, distance(std::pow(base, power), value));
    if (base_crosses_zero) spread += std::fabs(value);
  }
  const double exponent = std::fabs(y.value * std::log(std::fabs(x.value)));
  const double conditioning = std::isfinite(exponent) ? kFunctionUnits * exponent : 0.0;
  return Approx<A>::of_function(value, spread, kFunctionUnits + conditioning);
}
template <Arithmetic A>
Approx<A> atan2(Approx<A> y, Approx<A> x) {
  const double value = std::atan2(y.value, x.value);
  // The sign of a zero selects the side of the branch cut, and it is not guaranteed.
  const bool on_branch_cut = y.value == 0.0 && x.value <= 0.0;
  if (x.error == 0.0 && y.error == 0.0 && !on_branch_cut)
    return Approx<A>::of_function(value, 0.0, kFunctionUnits);
  const double radius = std::hypot(x.value, y.value) - std::hypot(x.error, y.error);
  const bool may_cross_branch_cut = x.value - x.error <= 0.0 && std::fabs(y.value) <= y.error;
  if (!(radius > 0.0) || may_cross_branch_cut || on_branch_cut)
    return Approx<A>::with_error(value, x.unknown() || y.unknown() ? kInfinity : 6.3);
  return Approx<A>::of_function(value, std::hypot(x.error, y.error) / radius, kFunctionUnits);
}
// The remainder of exact operands is exact for small quotients. For large ones, and if errors make
// the integer part of the quotient uncertain, it may be off by one divisor.
template <Arithmetic A>
Approx<A> fmod(Approx<A> x, Approx<A> y) {
  const double value = std::fmod(x.value, y.value);
  if (x.unknown() || y.unknown()) return Approx<A>::with_error(value, kInfinity);
  if (!std::isfinite(value))
    return Approx<A>::with_error(value, x.error > 0.0 || y.error > 0.0 ? kInfinity : 0.0);
  const Approx<A> quotient = x / y;
  if (quotient.unknown()) return Approx<A>::with_error(value, kInfinity);  // y may be 0
  const double whole = std::trunc(quotient.value);
  if (x.error == 0.0 && y.error == 0.0)
    return Approx<A>::with_error(
        value, std::fabs(whole) < 0x1p22 || A == Arithmetic::integer ? 0.0 : std::fabs(y.value));
  const bool certain = std::trunc(quotient.value + quotient.error) == whole &&
                       std::trunc(quotient.value - quotient.error) == whole;
  const double propagated = x.error + amplified(whole, y.error);
  return Approx<A>::rounded(value, certain ? propagated : propagated + std::fabs(y.value) + y.error,
                            1.0);
}

// a / b of integers, towards zero; 0 where b is 0.
inline double truncated_quotient(double a, double b) { return b == 0.0 ? 0.0 : std::trunc(a / b); }
// Over an interval of divisors without 0 the quotient is largest and smallest at the corners, and
// truncation keeps order.
template <Arithmetic A>
Approx<A> truncated_quotient(Approx<A> a, Approx<A> b) {
  const double value = truncated_quotient(a.value, b.value);
  if (a.error == 0.0 && b.error == 0.0) return Approx<A>(value);
  if (a.unknown() || b.unknown() || (b.error > 0.0 && std::fabs(b.value) <= b.error))
    return Approx<A>::with_error(value, kInfinity);
  double spread = 0.0;
  for (double dividend : {a.value - a.error, a.value + a.error})
    for (double divisor : {b.value - b.error, b.value + b.error})
      spread = std::max(spread, distance(truncated_quotient(dividend, divisor), value));
  return Approx<A>::with_error(value, spread);
}

// --- order
inline double less(double a, double b) { return a < b ? 1.0 : 0.0; }
inline double less_equal(double a, double b) { return a <= b ? 1.0 : 0.0; }
inline double equal(double a, double b) { return a == b ? 1.0 : 0.0; }
inline double is_nonzero(double a) { return a != 0.0 ? 1.0 : 0.0; }
inline double negated(double truth) { return 1.0 - truth; }
inline double select(double condition, double a, double b) { return condition != 0.0 ? a : b; }
// NaN propagates: hiding it would hide a defect.
inline double maximum(double a, double b) { return std::isnan(a) || a > b ? a : b; }
inline double minimum(double a, double b) { return std::isnan(a) || a < b ? a : b; }

// 1 or 0, uncertain if the operands are closer than their errors.
template <Arithmetic A>
Approx<A> decided(bool truth, Approx<A> a, Approx<A> b) {
  const double errors = a.error + b.error;
  return Approx<A>::with_error(
      truth ? 1.0 : 0.0, errors > 0.0 && !(std::fabs(a.value - b.value) > errors) ? 1.0 : 0.0);
}
template <Arithmetic A>
Approx<A> less(Approx<A> a, Approx<A> b) {
  return decided(a.value < b.value, a, b);
}
template <Arithmetic A>
Approx<A> less_equal(Approx<A> a, Approx<A> b) {
  return decided(a.value <= b.value, a, b);
}
template <Arithmetic A>
Approx<A> equal(Approx<A> a, Approx<A> b) {
  return decided(a.value == b.value, a, b);
}
template <Arithmetic A>
Approx<A> is_nonzero(Approx<A> a) {
  return decided(a.value != 0.0, a, Approx<A>());
}
template <Arithmetic A>
Approx<A> negated(Approx<A> truth) {
  return Approx<A>::with_error(1.0 - truth.value, truth.error);
}
template <Arithmetic A>
Approx<A> select(Approx<A> condition, Approx<A> a, Approx<A> b) {
  const Approx<A>& chosen = condition.value != 0.0 ? a : b;
  if (condition.error == 0.0) return chosen;
  return Approx<A>::with_error(chosen.value,
                               distance(a.value, b.value) + std::max(a.error, b.error));
}
template <Arithmetic A>
Approx<A> maximum(Approx<A> a, Approx<A> b) {
  const double value = maximum(a.value, b.value);
  if (a.value - a.error > b.value + b.error) return a;
  if (b.value - b.error > a.value + a.error) return b;
  return Approx<A>::with_error(value, std::max(a.error, b.error));
}
template <Arithmetic A>
Approx<A> minimum(Approx<A> a, Approx<A> b) {
  return -maximum(-a, -b);
}

}  // namespace ashlar::reference

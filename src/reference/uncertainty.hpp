// Uncertainty of operations that select one of several values with error bounds.
#pragma once

#include "reference/scalar.hpp"

namespace ashlar::reference {

// Whether a candidate may be larger than the leader within the error bounds; false for exact
// values.
inline bool may_overtake(double, double) { return false; }
template <Arithmetic A>
bool may_overtake(Approx<A> candidate, Approx<A> leader) {
  const double errors = candidate.error + leader.error;
  return errors > 0.0 && !(leader.value - candidate.value > errors);
}

// x, with unknown error unless `certain`.
inline double unknown_unless(bool, double x) { return x; }
template <Arithmetic A>
Approx<A> unknown_unless(bool certain, Approx<A> x) {
  return certain ? x : Approx<A>::with_error(x.value, kInfinity);
}

// `result`, unknown if `cause` is.
inline double unknown_with(double result, double) { return result; }
template <Arithmetic A>
Approx<A> unknown_with(Approx<A> result, Approx<A> cause) {
  return unknown_unless(!cause.unknown(), result);
}

// `x`, which an implementation may also compute as `other`: the same in exact arithmetic, but
// intermediates of one may overflow, or be infinity minus infinity, where those of the other do
// not.
inline double or_overflow_of(double, double x) { return x; }
template <Arithmetic A>
Approx<A> or_overflow_of(Approx<A> other, Approx<A> x) {
  const bool both_finite = std::isfinite(other.value) && std::isfinite(x.value);
  const bool same = other.value == x.value || (std::isnan(other.value) && std::isnan(x.value));
  return unknown_unless(!other.unknown() && (both_finite || same), x);
}

// A truth value that may be either 0 or 1.
inline double either_way(double truth) { return truth; }
template <Arithmetic A>
Approx<A> either_way(Approx<A> truth) {
  return Approx<A>::with_error(truth.value, 1.0);
}

}  // namespace ashlar::reference

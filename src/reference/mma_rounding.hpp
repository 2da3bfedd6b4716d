// Error model of dot products on tensor cores, selected by the notes of the plan.
#pragma once

#include <ashlar/plan.hpp>
#include <bit>

#include "reference/accumulator.hpp"
#include "reference/uncertainty.hpp"

namespace ashlar::reference {

// An operand may keep only its leading 11 significant bits, rounded or truncated (tf32).
template <Arithmetic A>
Approx<A> allow_tf32(Approx<A> x) {
  if (!std::isfinite(x.value) || x.unknown()) return x;
  constexpr std::uint64_t kLostBits = (std::uint64_t{1} << (52 - 10)) - 1;  // of a double's 52
  if (x.error == 0.0 && (std::bit_cast<std::uint64_t>(x.value) & kLostBits) == 0) return x;
  return Approx<A>::with_error(x.value, x.error + 0x1p-10 * (std::fabs(x.value) + x.error));
}

// The error model for operands of two dtypes. For plain double there is none. An unknown element
// of A times NaN is unknown: the weights of a softmax row that is all -inf are unknown, and raised
// attention yields 0 for such a row without reading v.
template <class Scalar>
class MmaRounding {
 public:
  template <class Operands>
  MmaRounding(const Operands&, DType, DType) {}
  Scalar term(Scalar a, Scalar b) const { return unknown_with(a * b, a); }
  Scalar total(const Accumulator<Scalar>& sum) const { return sum.total(); }
  MmaAccumulation sums() const { return MmaAccumulation::rounded; }
};

template <>
class MmaRounding<Approx<Arithmetic::f32>> {
 public:
  using Scalar = Approx<Arithmetic::f32>;

  template <class Operands>
  MmaRounding(const Operands& operands, DType a, DType b) {
    const PlanNotes& notes = operands.notes();
    shortens_a_ = notes.tf32 && a == DType::f32;
    shortens_b_ = notes.tf32 && b == DType::f32;
    const auto is_fp8 = [](DType dtype) { return dtype == DType::e4m3 || dtype == DType::e5m2; };
    if (notes.truncating_accumulation) sums_ = MmaAccumulation::truncated;
    if (notes.reduced_precision_accumulation && is_fp8(a) && is_fp8(b))
      sums_ = MmaAccumulation::fp8;
  }
  Scalar term(Scalar a, Scalar b) const {
    return unknown_with((shortens_a_ ? allow_tf32(a) : a) * (shortens_b_ ? allow_tf32(b) : b), a);
  }
  Scalar total(const Accumulator<Scalar>& sum) const { return sum.total(sums_); }
  MmaAccumulation sums() const { return sums_; }

 private:
  bool shortens_a_ = false, shortens_b_ = false;
  MmaAccumulation sums_ = MmaAccumulation::rounded;
};

// Adds the dot product of the first `count` elements of two lines (view.line). Flattened, because
// calls would dominate the oracle's run time.
template <class Scalar, class Line>
[[gnu::flatten]] void add_dot_product(const MmaRounding<Scalar>& product, Line a, Line b,
                                      std::int64_t count, Accumulator<Scalar>& sum) {
  Accumulator<Scalar> local = sum;
  for (std::int64_t i = 0; i < count; ++i) local.add(product.term(a[i], b[i]));
  sum = local;
}

}  // namespace ashlar::reference

// Bitwise operations on integers that are held in double: two's complement of the width of `dtype`.
#pragma once

#include <ashlar/ops.hpp>
#include <bit>
#include <cstdint>

#include "reference/approx.hpp"

namespace ashlar::reference {

// Doubles are exact up to 2^53; i64 operands past that have lost bits, and the bound says so.
inline constexpr double kExactBits = 0x1p53;

// Nearest even, and the ends of the range for values outside of it.
inline std::int64_t to_bits(double value) {
  if (!(value > -0x1p63)) return std::numeric_limits<std::int64_t>::min();
  if (value >= 0x1p63) return std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(std::nearbyint(value));
}

// The value of the lowest bit_width(dtype) bits.
inline double from_bits(DType dtype, std::uint64_t bits) {
  const int unused = 64 - bit_width(dtype);
  if (lowest_value(dtype) < 0.0)
    return static_cast<double>(std::bit_cast<std::int64_t>(bits << unused) >> unused);
  return static_cast<double>(bits << unused >> unused);
}

inline double bitwise(PointwiseMode mode, DType dtype, double x, double b) {
  const std::int64_t signed_x = to_bits(x), signed_b = to_bits(b);
  const auto bits = std::bit_cast<std::uint64_t>(signed_x);
  const auto others = std::bit_cast<std::uint64_t>(signed_b);
  const bool in_range = signed_b >= 0 && signed_b < bit_width(dtype);
  switch (mode) {
    case PointwiseMode::bit_and: return from_bits(dtype, bits & others);
    case PointwiseMode::bit_or: return from_bits(dtype, bits | others);
    case PointwiseMode::bit_xor: return from_bits(dtype, bits ^ others);
    case PointwiseMode::bit_not: return from_bits(dtype, ~bits);
    case PointwiseMode::shift_left: return in_range ? from_bits(dtype, bits << signed_b) : 0.0;
    default: return static_cast<double>(signed_x >> (in_range ? signed_b : 63));
  }
}

// Exact for exact operands. No interval bounds the effect of an error on the bits of an operand,
// except that booleans stay 0 or 1.
template <Arithmetic A>
Approx<A> bitwise(PointwiseMode mode, DType dtype, Approx<A> x, Approx<A> b) {
  const double value = bitwise(mode, dtype, x.value, b.value);
  const bool exact = x.error == 0.0 && b.error == 0.0 && std::fabs(x.value) <= kExactBits &&
                     std::fabs(b.value) <= kExactBits;
  return Approx<A>::with_error(value, exact ? 0.0 : dtype == DType::boolean ? 1.0 : kInfinity);
}

}  // namespace ashlar::reference

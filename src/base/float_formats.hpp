// Narrow floating-point formats: exact widening to double, and narrowing from double with one
// rounding (to nearest, ties to even).
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace ashlar {

struct FloatFormat {
  int exponent_bits;
  int mantissa_bits;
  bool has_infinity;  // e4m3 has none: it saturates to `largest` and keeps one NaN pattern
  double largest;
  bool has_nan = true;  // e2m1 has none: NaN becomes `largest`

  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  constexpr int smallest_normal_exponent() const { return 1 - bias(); }
};

inline constexpr FloatFormat kFormatF16{5, 10, true, 65504.0};
inline constexpr FloatFormat kFormatBf16{8, 7, true, 3.3895313892515355e38};
inline constexpr FloatFormat kFormatE4m3{4, 3, false, 448.0};
inline constexpr FloatFormat kFormatE5m2{5, 2, true, 57344.0};
inline constexpr FloatFormat kFormatE2m1{2, 1, false, 6.0, false};

constexpr double widen(const FloatFormat& format, std::uint32_t bits) {
  const std::uint32_t mantissa_mask = (1u << format.mantissa_bits) - 1;
  const std::uint32_t exponent_mask = (1u << format.exponent_bits) - 1;
  const std::uint32_t mantissa = bits & mantissa_mask;
  const std::uint32_t exponent = (bits >> format.mantissa_bits) & exponent_mask;
  const bool negative = (bits >> (format.mantissa_bits + format.exponent_bits)) & 1u;
  const double sign = negative ? -1.0 : 1.0;
  if (exponent == exponent_mask) {
    if (format.has_infinity)
      return mantissa == 0 ? sign * std::numeric_limits<double>::infinity()
                           : std::numeric_limits<double>::quiet_NaN();
    if (format.has_nan && mantissa == mantissa_mask)
      return std::numeric_limits<double>::quiet_NaN();
  }
  if (exponent == 0) {  // zero and subnormals: multiples of the smallest subnormal
    const auto step =
        static_cast<std::uint64_t>(format.smallest_normal_exponent() - format.mantissa_bits + 1023)
        << 52;
    return sign * static_cast<double>(mantissa) * std::bit_cast<double>(step);
  }
  const auto biased = static_cast<std::uint64_t>(static_cast<int>(exponent) - format.bias() + 1023);
  const std::uint64_t fraction = static_cast<std::uint64_t>(mantissa)
                                 << (52 - format.mantissa_bits);
  return sign * std::bit_cast<double>(biased << 52 | fraction);
}

// Overflow becomes infinity if the format has one; fp8 saturates to its largest value, as in cuDNN
// for both fp8 types.
inline std::uint32_t narrow(const FloatFormat& format, double value) {
  const std::uint32_t sign =
      std::signbit(value) ? 1u << (format.mantissa_bits + format.exponent_bits) : 0u;
  const std::uint32_t exponent_mask = ((1u << format.exponent_bits) - 1) << format.mantissa_bits;
  const std::uint32_t mantissa_mask = (1u << format.mantissa_bits) - 1;
  if (std::isnan(value) && !format.has_nan) return narrow(format, format.largest);
  if (std::isnan(value))
    return sign | exponent_mask |
           (format.has_infinity ? 1u << (format.mantissa_bits - 1) : mantissa_mask);
  const bool saturates = format.exponent_bits + format.mantissa_bits <= 7;
  if (std::isinf(value) && format.has_infinity) return sign | exponent_mask;

  const double magnitude = std::fabs(value);
  const int exponent = magnitude == 0.0
                           ? format.smallest_normal_exponent()
                           : std::max(std::ilogb(magnitude), format.smallest_normal_exponent());
  // In units of the last place; nearbyint rounds to nearest even.
  const double units = std::nearbyint(std::ldexp(magnitude, format.mantissa_bits - exponent));
  const double rounded = std::ldexp(units, exponent - format.mantissa_bits);
  if (rounded > format.largest) {
    if (!saturates) return sign | exponent_mask;
    return sign | narrow(format, format.largest);
  }
  const auto significand = static_cast<std::uint64_t>(units);
  // Adding the significand (with its hidden bit) to the biased exponent minus one carries
  // correctly.
  const auto biased = static_cast<std::uint64_t>(exponent + format.bias() - 1);
  const std::uint64_t bits = significand < (1u << format.mantissa_bits)
                                 ? significand
                                 : (biased << format.mantissa_bits) + significand;
  return sign | static_cast<std::uint32_t>(bits);
}

// e8m0 is the exponent alone: 2^(bits - 127), 255 for NaN.
inline double widen_e8m0(std::uint32_t bits) {
  return bits == 255 ? std::numeric_limits<double>::quiet_NaN()
                     : std::ldexp(1.0, static_cast<int>(bits) - 127);
}
// Rounds to the nearest power of two, ties upwards. NaN and negative values become NaN; zero
// becomes the smallest scale.
inline std::uint32_t narrow_e8m0(double value) {
  if (std::isnan(value) || value < 0.0) return 255;
  if (value == 0.0) return 0;
  if (std::isinf(value)) return 254;
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);  // value = fraction 2^exponent, in [0.5, 1)
  return static_cast<std::uint32_t>(std::clamp(exponent + (fraction < 0.75 ? 126 : 127), 0, 254));
}

}  // namespace ashlar

// The scale of a block of quantised values.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/element.hpp"

namespace ashlar {

// The smallest value s of `type` with s * largest >= amax: amax / largest, rounded up exactly.
// Saturates at the largest finite value. amax = 0 yields 0 rounded to `type`; NaN yields NaN.
inline double scale_for(DType type, double amax, double largest) {
  if (amax == 0.0 || std::isnan(amax)) return round_to(type, amax);
  const double quotient = amax / largest;
  if (quotient >= largest_value(type)) return largest_value(type);
  std::uint32_t bits = 0;
  store_element(type, &bits, 0, quotient);
  // The nearest value is at most one step too low. The product of two narrow values is exact in
  // double, and bit patterns of positive values are ordered like the values.
  if (load_element(type, &bits, 0) * largest < amax) ++bits;
  return load_element(type, &bits, 0);
}

}  // namespace ashlar

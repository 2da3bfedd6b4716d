// The scale of a block of numbers that are stored narrow.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/element.hpp"

namespace ashlar {

// The smallest number of `type` whose product with `largest` reaches `amax`: amax / largest rounded
// up, and exactly so. Past the range it is the largest finite number; of nothing (amax = 0) it is
// what `type` makes of 0; NaN stays NaN.
inline double scale_for(DType type, double amax, double largest) {
  if (amax == 0.0 || std::isnan(amax)) return round_to(type, amax);
  const double quotient = amax / largest;
  if (quotient >= largest_value(type)) return largest_value(type);
  std::uint32_t bits = 0;
  store_element(type, &bits, 0, quotient);
  // The nearest is at most one step too low. The product of two short numbers is exact, and the
  // patterns of positive numbers stand in their order.
  if (load_element(type, &bits, 0) * largest < amax) ++bits;
  return load_element(type, &bits, 0);
}

}  // namespace ashlar

// Cumulative operations along an axis.
#pragma once

#include <ashlar/ops/slots.hpp>
#include <cstdint>

namespace ashlar {

enum class ScanMode : std::uint8_t { add, mul, min, max, logsumexp };

// y[i] combines x[0] to x[i] along `axis`; exclusive: x[0] to x[i - 1], the neutral element at
// i = 0. reverse: x[i] to the last element of the axis; exclusive: x[i + 1] to the last. Neutral
// are 0 (add), 1 (mul), +inf (min), -inf (max, logsumexp), rounded to y's dtype: an integer dtype
// has its largest or lowest value there. Once NaN, y stays NaN. logsumexp = log(sum of exp(x)),
// floating types only; it is +inf behind the first +inf.
struct Scan {
  ASHLAR_INPUTS(x);
  ASHLAR_OUTPUTS(y);
  ScanMode mode = ScanMode::add;
  std::int64_t axis = -1;
  bool exclusive = false;
  bool reverse = false;

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("mode", self.mode);
    visit("axis", self.axis);
    visit("exclusive", self.exclusive);
    visit("reverse", self.reverse);
  }
};

}  // namespace ashlar

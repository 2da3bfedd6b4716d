// Cumulative operations along an axis.
#pragma once

#include <ashlar/ops/slots.hpp>
#include <cstdint>

namespace ashlar {

enum class ScanMode : std::uint8_t { add, mul, min, max, logsumexp };

// y[i] combines x[0] to x[i] along `axis`; exclusive: x[0] to x[i - 1], the neutral element at
// i = 0. reverse: from the end of the axis.
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

// The k largest or smallest elements along an axis, in order; k = the extent sorts.
#pragma once

#include <ashlar/ops/slots.hpp>
#include <cstdint>

namespace ashlar {

// values[.., j, ..] is the j-th largest (or smallest) element of x along `axis`, index its position
// there (i32 unless given as i64). Equal elements keep their order, also -0 and +0. NaN counts as
// larger than any number and as equal to NaN. k = 0: the whole axis.
struct TopK {
  ASHLAR_INPUTS(x);
  ASHLAR_OUTPUTS(values, ASHLAR_OPTIONAL(index));
  std::int64_t axis = -1;
  std::int64_t k = 0;
  bool largest = true;

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("axis", self.axis);
    visit("k", self.k);
    visit("largest", self.largest);
  }
};

}  // namespace ashlar

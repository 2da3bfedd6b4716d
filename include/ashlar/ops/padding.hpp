// Padding, and its gradient.
#pragma once

#include <ashlar/dims.hpp>
#include <ashlar/ops/slots.hpp>
#include <cstdint>

namespace ashlar {

// What an element outside of x is: `value`, x mirrored without its border element, the border
// element, x repeated.
enum class PadMode : std::uint8_t { constant, reflect, edge, circular };

// before[a] elements are added before and after[a] elements behind those of axis a:
//   y[i] = x[i - before] where x has that element, else what `mode` says.
// Negative counts remove elements, in mode constant only: y[i] stays defined by the same formula.
// reflect needs counts below the extent of x, circular counts up to it, edge at least one element.
struct Pad {
  ASHLAR_INPUTS(x);
  ASHLAR_OUTPUTS(y);
  PadMode mode = PadMode::constant;
  Dims before = {};  // one value per axis; empty: 0
  Dims after = {};
  double value = 0.0;

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("mode", self.mode);
    visit("before", self.before);
    visit("after", self.after);
    visit("value", self.value);
  }
};

// dx[i] is the sum of dy over all elements that pad read x[i] for; 0 where there is none. The dims
// of dx are those of dy minus the counts.
struct PadBackward {
  ASHLAR_INPUTS(dy);
  ASHLAR_OUTPUTS(dx);
  PadMode mode = PadMode::constant;
  Dims before = {};
  Dims after = {};

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("mode", self.mode);
    visit("before", self.before);
    visit("after", self.after);
  }
};

}  // namespace ashlar

// Padding, and its gradient.
#pragma once

#include <ashlar/dims.hpp>
#include <ashlar/ops/slots.hpp>
#include <cstdint>

namespace ashlar {

// What an element outside of x is: `value`, x mirrored without its border element, the border
// element, x repeated.
enum class PadMode : std::uint8_t { constant, reflect, edge, circular };

// before[a] and after[a] elements are added on axis a; negative counts remove elements.
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

// dx[i] is the sum of dy over all elements that pad read x[i] for. The dims of dx follow from dy.
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

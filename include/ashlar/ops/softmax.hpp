// Softmax and log-softmax.
#pragma once

#include <ashlar/ops/slots.hpp>
#include <cstdint>

namespace ashlar {

struct SoftmaxAttributes {
  std::int64_t axis = -1;
  bool log = false;

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("axis", self.axis);
    visit("log", self.log);
  }
};
struct SoftmaxForward : SoftmaxAttributes {
  ASHLAR_INPUTS(x);
  ASHLAR_OUTPUTS(y, ASHLAR_OPTIONAL(stats));  // stats = max + log(sum(exp(x - max))) along the axis
};
struct SoftmaxBackward : SoftmaxAttributes {
  ASHLAR_INPUTS(y, dy);
  ASHLAR_OUTPUTS(dx);
};

}  // namespace ashlar

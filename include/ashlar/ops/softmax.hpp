// Softmax and log-softmax.
#pragma once

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
  enum In { x };
  enum Out { y, stats };  // stats = max + log(sum(exp(x - max))) along the axis
};
struct SoftmaxBackward : SoftmaxAttributes {
  enum In { y, dy };
  enum Out { dx };
};

}  // namespace ashlar

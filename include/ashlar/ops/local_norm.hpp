// Local response normalisation (LRN) and divisive normalisation.
#pragma once

#include <ashlar/ops/slots.hpp>
#include <cstdint>

namespace ashlar {

struct LocalNormAttributes {
  std::int64_t window = 5;  // channels (LRN), or elements along each spatial axis (divisive)
  double alpha = 1e-4;
  double beta = 0.75;
  double k = 2.0;

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("window", self.window);
    visit("alpha", self.alpha);
    visit("beta", self.beta);
    visit("k", self.k);
  }
};

// y = x / (k + alpha / window * sum of x^2 over the window of channels around it)^beta. The window
// extends (window - 1) / 2 channels below and the rest above the element.
struct LrnForward : LocalNormAttributes {
  ASHLAR_INPUTS(x);
  ASHLAR_OUTPUTS(y);
};
struct LrnBackward : LocalNormAttributes {
  ASHLAR_INPUTS(x, dy);
  ASHLAR_OUTPUTS(dx);
};
// y = x / (k + alpha / window^d * sum of (x - mean)^2 over the window of d spatial axes)^beta, with
// the mean of the central element; absent means are 0.
struct DivisiveNormForward : LocalNormAttributes {
  ASHLAR_INPUTS(x, ASHLAR_OPTIONAL(means));
  ASHLAR_OUTPUTS(y);
};
struct DivisiveNormBackward : LocalNormAttributes {
  ASHLAR_INPUTS(x, dy, ASHLAR_OPTIONAL(means));
  ASHLAR_OUTPUTS(dx, ASHLAR_OPTIONAL(dmeans));
};

}  // namespace ashlar

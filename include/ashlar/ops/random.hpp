// Random number generation and dropout.
#pragma once

#include <ashlar/ops/slots.hpp>
#include <cstdint>

namespace ashlar {

enum class RngDistribution : std::uint8_t { bernoulli, uniform, normal };

// Philox4x32-10. Element i (row-major) is lane i % 4 of counter offset + i / 4 under key `seed`.
struct Rng {
  ASHLAR_INPUTS(ASHLAR_OPTIONAL(seed_tensor, offset_tensor));
  ASHLAR_OUTPUTS(y);
  RngDistribution distribution = RngDistribution::bernoulli;
  double probability = 0.5;  // bernoulli: of a 1
  double minimum = 0.0, maximum = 1.0;
  double mean = 0.0, standard_deviation = 1.0;
  std::int64_t seed = 0;
  std::int64_t offset = 0;

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("distribution", self.distribution);
    visit("probability", self.probability);
    visit("minimum", self.minimum);
    visit("maximum", self.maximum);
    visit("mean", self.mean);
    visit("standard_deviation", self.standard_deviation);
    visit("seed", self.seed);
    visit("offset", self.offset);
  }
};

// y = x * (1 / (1 - probability)) where kept, else 0. Element i (row-major) is kept if Rng with the
// same seed and offset and distribution bernoulli(1 - probability) is 1 there. mask is true for
// kept elements; next_offset is the offset for the next call, so seed and offset are the complete
// generator state.
struct DropoutAttributes {
  double probability = 0.5;  // that an element is dropped
  std::int64_t seed = 0;
  std::int64_t offset = 0;

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("probability", self.probability);
    visit("seed", self.seed);
    visit("offset", self.offset);
  }
};
struct DropoutForward : DropoutAttributes {
  ASHLAR_INPUTS(x, ASHLAR_OPTIONAL(seed_tensor, offset_tensor));
  ASHLAR_OUTPUTS(y, ASHLAR_OPTIONAL(mask, next_offset));
};
// Uses mask if given; otherwise regenerates it from seed and offset.
struct DropoutBackward : DropoutAttributes {
  ASHLAR_INPUTS(dy, ASHLAR_OPTIONAL(mask, seed_tensor, offset_tensor));
  ASHLAR_OUTPUTS(dx);
};

}  // namespace ashlar

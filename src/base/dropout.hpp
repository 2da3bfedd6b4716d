// Bernoulli and dropout decisions from Philox bits, defined once for all engines and the oracle.
#pragma once

#include "base/philox.hpp"

namespace ashlar {

// Whether element `index` of a Bernoulli stream is 1. The comparison is in f32, so all engines
// agree bit for bit.
constexpr bool bernoulli(std::uint64_t seed, std::uint64_t offset, std::uint64_t index,
                         double probability) {
  return uniform_open(philox_element(seed, offset, index)) < static_cast<float>(probability);
}

// Whether attention dropout keeps the weight at `index`, its row-major position in the
// [B, H, Sq, Skv] attention weights. Equals element `index` of a Bernoulli rng node with
// probability 1 - `probability`. Kept weights are multiplied by 1 / (1 - probability).
constexpr bool dropout_keeps(std::uint64_t seed, std::uint64_t offset, std::uint64_t index,
                             double probability) {
  return bernoulli(seed, offset, index, 1.0 - probability);
}

}  // namespace ashlar

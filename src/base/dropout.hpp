// Random decisions made from Philox bits, defined once for every engine and for the oracle.
#pragma once

#include "base/philox.hpp"

namespace ashlar {

// Whether element `index` of a Bernoulli stream is 1. The comparison is between f32 numbers, so
// every engine decides alike.
constexpr bool bernoulli(std::uint64_t seed, std::uint64_t offset, std::uint64_t index,
                         double probability) {
  return uniform_open(philox_element(seed, offset, index)) < static_cast<float>(probability);
}

// Whether attention dropout keeps the weight at `index`, its row-major position in the
// [B, H, Sq, Skv] tensor of weights: what a Bernoulli rng node with probability 1 - `probability`
// gives there. Kept weights are multiplied by 1 / (1 - probability).
constexpr bool dropout_keeps(std::uint64_t seed, std::uint64_t offset, std::uint64_t index,
                             double probability) {
  return bernoulli(seed, offset, index, 1.0 - probability);
}

}  // namespace ashlar

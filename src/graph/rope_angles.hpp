// The angle by which rope rotates a pair: position * frequency, and YaRN's change of frequencies.
#pragma once

#include <algorithm>
#include <ashlar/ops.hpp>
#include <cmath>

namespace ashlar {

// The pair with this many turns within `original_length` positions, as a real number.
inline double rope_pair_of_turns(const Rope& op, double turns) {
  constexpr double kTwoPi = 6.283185307179586;
  return static_cast<double>(op.width) *
         std::log(static_cast<double>(op.original_length) / (kTwoPi * turns)) /
         (2.0 * std::log(op.base));
}

// The share of a pair's slowed frequency: 0 up to the pair with beta_fast turns, 1 from the pair
// with beta_slow turns on, linear in the pair's index between them. As in the models' own code,
// the ends are whole numbers.
inline double rope_slowed_share(const Rope& op, std::int64_t pair) {
  const double last = static_cast<double>(op.width - 1);
  const double fast = std::max(std::floor(rope_pair_of_turns(op, op.beta_fast)), 0.0);
  const double slow = std::min(std::ceil(rope_pair_of_turns(op, op.beta_slow)), last);
  const double range = slow > fast ? slow - fast : 0.001;
  return std::clamp((static_cast<double>(pair) - fast) / range, 0.0, 1.0);
}

// The angle per position of one pair, for a width that is not 0.
inline double rope_frequency(const Rope& op, std::int64_t pair) {
  const double exponent = -2.0 * static_cast<double>(pair) / static_cast<double>(op.width);
  const double frequency = std::pow(op.base, exponent);
  if (op.factor <= 1.0) return frequency;
  const double share = rope_slowed_share(op, pair);
  return frequency * (1.0 - share) + frequency / op.factor * share;
}

// The factor of computed cosines and sines.
inline double rope_scale(const Rope& op) {
  if (op.attention_factor != 0.0) return op.attention_factor;
  return 1.0 + 0.1 * std::log(op.factor);
}

// The elements of pair i are i * step and i * step + distance.
struct RopePairing {
  std::int64_t step, distance;
};
inline RopePairing rope_pairing(const Rope& op) {
  if (op.pairs == RopePairs::interleaved) return {2, 1};
  return {1, op.width / 2};
}

}  // namespace ashlar

// Reductions.
#pragma once

#include <ashlar/dims.hpp>
#include <ashlar/ops/slots.hpp>
#include <cstdint>

namespace ashlar {

enum class ReductionMode : std::uint8_t {
  add,
  mul,
  min,
  max,
  amax,
  avg,
  norm1,
  norm2,
  mul_no_zeros
};

// Reduces every axis in which y has extent 1 and x has not. `axes` is used to infer y; empty means
// all axes. index (min, max and amax only) is the row-major position within the reduced axes of the
// first element that equals the result.
struct Reduction {
  ASHLAR_INPUTS(x);
  ASHLAR_OUTPUTS(y, ASHLAR_OPTIONAL(index));
  ReductionMode mode = ReductionMode::add;
  Dims axes = {};

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("mode", self.mode);
    visit("axes", self.axes);
  }
};

}  // namespace ashlar

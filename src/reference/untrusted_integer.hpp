// Integers read from tensors: lengths, offsets, indices. They are untrusted and must be clamped or
// checked.
#pragma once

#include <algorithm>
#include <cstdint>

#include "reference/approx.hpp"
#include "reference/loops.hpp"

namespace ashlar::reference {

// The element as an integer in [low, high]. Clamped before the conversion: converting a double
// outside the range of int64 is undefined behaviour.
template <class View>
std::int64_t integer_within(const View& view, const Index& index, std::int64_t low,
                            std::int64_t high) {
  const double value = nominal(view.load(index));
  if (!(value > static_cast<double>(low))) return low;
  if (value >= static_cast<double>(high)) return high;
  return static_cast<std::int64_t>(value);
}

// The element if it is in [0, extent), else -1.
template <class View>
std::int64_t position_within(const View& view, const Index& index, std::int64_t extent) {
  const std::int64_t position = integer_within(view, index, -1, extent);
  return position < extent ? position : -1;
}

}  // namespace ashlar::reference

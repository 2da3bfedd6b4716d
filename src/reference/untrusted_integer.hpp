// Integers that come from tensors: lengths, offsets, indices. They are outside data, so nothing is
// taken for granted about them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "reference/approx.hpp"
#include "reference/loops.hpp"

namespace ashlar::reference {

// The element as a whole number in [low, high]. Clamped before it is converted: the conversion of a
// double past the range of 64 bits is undefined.
template <class View>
std::int64_t integer_within(const View& view, const Index& index, std::int64_t low,
                            std::int64_t high) {
  const double value = nominal(view.load(index));
  if (!(value > static_cast<double>(low))) return low;
  if (value >= static_cast<double>(high)) return high;
  return static_cast<std::int64_t>(value);
}

// The element if it lies in [0, extent), else -1.
template <class View>
std::int64_t position_within(const View& view, const Index& index, std::int64_t extent) {
  const std::int64_t position = integer_within(view, index, -1, extent);
  return position < extent ? position : -1;
}

}  // namespace ashlar::reference

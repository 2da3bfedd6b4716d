// Reads and writes at computed positions: gather and scatter.
#pragma once

#include <ashlar/ops/slots.hpp>
#include <cstdint>

namespace ashlar {

// What an index selects along `axis`.
enum class IndexMode : std::uint8_t {
  slices,    // a whole slice of x: the axes of index take the place of `axis` (index_select)
  elements,  // one element: index has the dims of y
};
enum class OutOfRange : std::uint8_t { zero, clamp };

// slices: y[a, i, b] = x[a, index[i], b]. elements: y[.., i, ..] = x[.., index[.., i, ..], ..].
// An index outside of [0, extent) gives 0, or the nearest valid one; negative ones do not count
// from the end.
struct Gather {
  ASHLAR_INPUTS(x, index);
  ASHLAR_OUTPUTS(y);
  std::int64_t axis = 0;
  IndexMode mode = IndexMode::slices;
  OutOfRange out_of_range = OutOfRange::zero;

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("axis", self.axis);
    visit("mode", self.mode);
    visit("out_of_range", self.out_of_range);
  }
};

enum class ScatterMode : std::uint8_t { set, add, mul, min, max };

// y is base (0 without it), with every element or slice of source combined into the position that
// index selects along `axis`, as gather reads it. Duplicates combine in row-major order of source,
// so results repeat bitwise; with `set` the last one stays. An index outside of [0, extent) is
// skipped.
struct Scatter {
  ASHLAR_INPUTS(source, index, ASHLAR_OPTIONAL(base));
  ASHLAR_OUTPUTS(y);
  std::int64_t axis = 0;
  IndexMode mode = IndexMode::slices;
  ScatterMode combine = ScatterMode::add;

  template <class Self, class Visitor>
  static void attributes(Self& self, Visitor&& visit) {
    visit("axis", self.axis);
    visit("mode", self.mode);
    visit("combine", self.combine);
  }
};

}  // namespace ashlar

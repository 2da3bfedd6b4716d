// What the definitions of operations in this folder share.
#pragma once

#include <algorithm>
#include <utility>

#include "graph/gradient_context.hpp"
#include "graph/node_context.hpp"
#include "graph/node_shapes.hpp"
#include "graph/op_traits.hpp"

namespace ashlar {

// --- contents of operands (OpTraits::contents)

inline Contents values_within(double low, double high) {
  return {.low = low, .high = high, .below = 0, .above = 0};
}
inline Contents always(double value) { return values_within(value, value); }
inline Contents positive_values() { return values_within(0.25, 2.0); }
inline Contents whole_numbers(double low, double high, double below = 0, double above = 0) {
  return {.kind = Contents::Kind::whole, .low = low, .high = high, .below = below, .above = above};
}
inline Contents seeds() { return whole_numbers(0, 1 << 30); }
// 1 to `longest`; lengths from `least` to `longest` + `above` have defined results too.
inline Contents lengths_up_to(std::int64_t longest, double least = 0, double above = 0) {
  const double low = longest > 0 ? 1.0 : 0.0;
  return whole_numbers(low, static_cast<double>(longest), low - least, above);
}
inline Contents indices_below(std::int64_t count, double below = 0, double above = 0) {
  return whole_numbers(0, static_cast<double>(count - 1), below, above);
}
inline Contents keeps_with(double probability) {
  return {.kind = Contents::Kind::keep_mask, .high = probability, .below = 0, .above = 0};
}

inline Contents epsilons() { return always(0x1p-10); }
inline Contents momenta() { return always(0.25); }

// --- fusion (OpTraits::tails)

inline bool has_output(const Node& node, int slot) {
  return std::cmp_less(slot, node.outputs.size()) &&
         node.outputs[static_cast<std::size_t>(slot)] != kNoTensor;
}

// --- dtypes (OpTraits::supports_e8m0)

inline bool in_every_form(const Op&) { return true; }

// --- operands of samples (OpTraits::sample)

// Parameters and statistics: f64 with f64 operands, else f32.
inline DType parameter_dtype(DType dtype) { return dtype == f64 ? f64 : f32; }

}  // namespace ashlar

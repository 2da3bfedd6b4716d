// The part of a kernel's text that engines print: types, constants, arguments, programs.
#pragma once

#include <string>
#include <vector>

#include "cuda/launch/arguments.hpp"
#include "plan/region.hpp"

namespace ashlar::cuda {

// "static const int kName = value;"
std::string constant(const std::string& name, std::int64_t value);
// `R` and `Index`: registers of the region's precision, positions of 32 bits where every tensor of
// these programs can be walked with them.
std::string register_types(DType precision, const std::vector<const PointwiseProgram*>& programs);
// Whether some position is past what 32 bits hold.
bool needs_wide_index(const std::vector<const PointwiseProgram*>& programs);

// extent0..., magic0...: the extents of a space and what divides by them (lib/divide.cuh).
void add_extents(Arguments& arguments, const Dims& space);
// multiplier | shift << 32; 0 for a divisor of 1.
std::int64_t divider_word(std::int64_t divisor);

}  // namespace ashlar::cuda

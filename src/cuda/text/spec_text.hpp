// Prints the head of a kernel's text: types, constants and extents.
#pragma once

#include <string>
#include <vector>

#include "cuda/launch/arguments.hpp"
#include "plan/region.hpp"

namespace ashlar::cuda {

// "static const int kName = value;"
std::string constant(const std::string& name, std::int64_t value);
// Typedefs `R` (register type of the precision) and `Index` (32 bits where that suffices for every
// tensor of these programs, else 64).
std::string register_types(DType precision, const std::vector<const PointwiseProgram*>& programs);
// Whether an index exceeds 32 bits.
bool needs_wide_index(const std::vector<const PointwiseProgram*>& programs);

// extent0..., magic0...: the extents of a space and their multiplicative inverses (lib/divide.cuh).
void add_extents(Arguments& arguments, const Dims& space);
// Inverse for division by multiplication: multiplier | shift << 32; 0 for a divisor of 1.
std::int64_t divider_word(std::int64_t divisor);

}  // namespace ashlar::cuda

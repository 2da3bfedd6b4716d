// Seeded input values that suit each operation.
#pragma once

#include <cstdint>

#include "support/bound_memory.hpp"

namespace ashlar::support {

enum class Fill : std::uint8_t {
  plain,          // uniform in [-1, 1]; integers in [-4, 4]
  whole_numbers,  // small integers, so that dot products are exact in every compute type
  special,  // plain, with NaN, infinities, zeros of both signs and very large and small values
};

// Fills every input and scalar by seed and tensor name, and seals them.
void fill_inputs(BoundMemory& memory, std::uint64_t seed, Fill fill = Fill::plain);

}  // namespace ashlar::support

// Runs of a Philox stream, several counters per vector.
#pragma once

#include <cstdint>

namespace ashlar::cpu {

// bits[i] = philox_element(seed, offset, first + i) for i < count.
using PhiloxRow = void (*)(std::uint64_t seed, std::uint64_t offset, std::uint64_t first,
                           std::int64_t count, std::uint32_t* bits);

// The best implementation for this CPU.
PhiloxRow philox_row();

}  // namespace ashlar::cpu

// Fills what a graph reads: from .npy files where given, else with seeded random values that suit
// each tensor's role.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "tensor_memory.hpp"

namespace ashlar::cli {

using InputFiles = std::map<std::string, std::string>;  // tensor name -> path of a .npy file

// Allocates every bound tensor and fills inputs and scalars; outputs get a byte pattern that no
// result has, so that an element that no kernel wrote is found.
void fill_inputs(TensorMemory& memory, const InputFiles& files, std::uint64_t seed);

void poison_outputs(const TensorMemory& memory);

}  // namespace ashlar::cli

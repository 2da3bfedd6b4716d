// Prints the frequencies of a rotary position embedding.
#pragma once

#include <ashlar/ops.hpp>
#include <string>

namespace ashlar::cuda {

// "__constant__ double kFrequencies[] = {1, 0.1};", by pair.
std::string rope_frequency_table(const Rope& op);

}  // namespace ashlar::cuda

// Decodes the operand types of tensor cores.
#pragma once

#include <cstdint>

#include "shim/interface.hpp"

namespace emulated {

unsigned bytes_of(MmaType number);
// Decodes `count` elements at `from`; integers as unsigned, wrapping.
void decode(MmaType number, const void* from, unsigned count, float* to);
void decode(MmaType number, const void* from, unsigned count, double* to);
void decode(MmaType number, const void* from, unsigned count, unsigned* to);

}  // namespace emulated

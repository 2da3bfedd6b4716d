// Numbers of the matrix units, from memory.
#pragma once

#include <cstdint>

#include "shim/interface.hpp"

namespace emulated {

unsigned bytes_of(MmaType number);
// `count` of them at `from`; integers as unsigned words, wrapping.
void decode(MmaType number, const void* from, unsigned count, float* to);
void decode(MmaType number, const void* from, unsigned count, double* to);
void decode(MmaType number, const void* from, unsigned count, unsigned* to);

}  // namespace emulated

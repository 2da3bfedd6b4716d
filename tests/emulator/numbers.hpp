// Numbers of the matrix units, from memory.
#pragma once

#include <cstdint>

#include "shim/interface.hpp"

namespace emulated {

unsigned bytes_of(Number number);
// `count` of them at `from`; integers as unsigned words, wrapping.
void decode(Number number, const void* from, unsigned count, float* to);
void decode(Number number, const void* from, unsigned count, double* to);
void decode(Number number, const void* from, unsigned count, unsigned* to);

}  // namespace emulated

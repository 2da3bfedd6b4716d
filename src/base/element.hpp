// Conversion between one tensor element in memory and double: exact, not fast. Kernels have their
// own conversions.
#pragma once

#include <ashlar/dtype.hpp>
#include <cstdint>

namespace ashlar {

// `index` counts elements (bits for booleans, nibbles for 4-bit types) from `data`. Complex types
// are not accepted: access them as two f32 or f64 elements.
double load_element(DType dtype, const void* data, std::int64_t index);

// Rounds once, to nearest even. Integers saturate, NaN becomes 0; booleans are value != 0. Elements
// that share a byte may be stored concurrently.
void store_element(DType dtype, void* data, std::int64_t index, double value);

// The result of store_element followed by load_element.
double round_to(DType dtype, double value);

// Half the distance between 1 and the next larger value: the maximum relative rounding error. 0 for
// integers.
double unit_roundoff(DType dtype);

// Distance between adjacent subnormal values; 0 for integers.
double smallest_step(DType dtype);

// Largest finite value.
double largest_value(DType dtype);
double lowest_value(DType dtype);

}  // namespace ashlar

// One element of a tensor in memory <-> double. The slow, exact road; kernels have their own.
#pragma once

#include <ashlar/dtype.hpp>
#include <cstdint>

namespace ashlar {

// `index` counts elements (bits for booleans, halves of bytes for 4-bit types) from `data`. Complex
// numbers are two elements of f32 or f64: these functions do not take them.
double load_element(DType dtype, const void* data, std::int64_t index);

// Rounds once, to nearest even. Integers saturate and take NaN as 0; booleans are value != 0.
// Elements sharing a byte may be stored from several threads at once.
void store_element(DType dtype, void* data, std::int64_t index, double value);

// The value that store_element followed by load_element would give.
double round_to(DType dtype, double value);

// Half the distance between 1 and the next larger number: the relative rounding error. 0 for
// integers.
double unit_roundoff(DType dtype);

// Distance between adjacent subnormal numbers; 0 for integers.
double smallest_step(DType dtype);

// Largest finite value.
double largest_value(DType dtype);
double lowest_value(DType dtype);

}  // namespace ashlar

// Divides a row by a scalar.
#pragma once

#include <cstdint>

namespace ashlar::cpu {

// y[i] = x[i] / divisor; x and y may be the same row.
template <class T>
using DivideRow = void (*)(const T* x, T divisor, std::int64_t count, T* y);

// The best implementation for this CPU.
template <class T>
[[gnu::visibility("hidden")]] DivideRow<T> divide_row();

}  // namespace ashlar::cpu

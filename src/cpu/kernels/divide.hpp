// Rows divided by one value.
#pragma once

#include <cstdint>

namespace ashlar::cpu {

// y[i] = x[i] / divisor; x and y may be the same row.
template <class T>
using DivideRow = void (*)(const T* x, T divisor, std::int64_t count, T* y);

// The best for this processor.
template <class T>
DivideRow<T> divide_row();

}  // namespace ashlar::cpu

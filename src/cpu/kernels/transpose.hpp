// Small matrices transposed through registers.
#pragma once

#include <cstdint>

namespace ashlar::cpu {

// destination[j * destination_row + i] = source[i * source_row + j], i < rows, j < columns
template <class T>
using Transpose = void (*)(const T* source, std::int64_t source_row, std::int64_t rows,
                           std::int64_t columns, T* destination, std::int64_t destination_row);

// The function for this processor.
template <class T>
Transpose<T> transpose();

}  // namespace ashlar::cpu

// Matrix transpose for float and double accumulators.
#pragma once

#include <type_traits>

#include "cpu/kernels/transpose_tile.hpp"

namespace ashlar::cpu {

// destination[j * destination_row + i] = source[i * source_row + j], i < rows, j < columns
template <class T>
void transpose_rows(const T* source, std::int64_t source_row, std::int64_t rows,
                    std::int64_t columns, T* destination, std::int64_t destination_row) {
  if constexpr (std::is_same_v<T, float>) {
    transpose_tile()(source, source_row, rows, columns, destination, destination_row);
  } else {
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j)
        destination[j * destination_row + i] = source[i * source_row + j];
  }
}

}  // namespace ashlar::cpu

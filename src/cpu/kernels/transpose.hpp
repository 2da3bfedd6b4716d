// Matrices of floats turned over: between pixels together and channels together.
#pragma once

#include <cstdint>

namespace ashlar::cpu {

// to[j * to_row + i] = from[i * from_row + j] for i < rows, j < columns. The two do not overlap.
using Transpose = void (*)(std::int64_t rows, std::int64_t columns, const float* from,
                           std::int64_t from_row, float* to, std::int64_t to_row);
Transpose transpose_kernel();

}  // namespace ashlar::cpu

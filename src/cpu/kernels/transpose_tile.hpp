// Transposes of matrices of floats, vector by vector.
#pragma once

#include <cstdint>

namespace ashlar::cpu {

// destination[j * destination_row + i] = source[i * source_row + j] for i < rows, j < columns.
// The two must not overlap.
using TransposeTile = void (*)(const float* source, std::int64_t source_row, std::int64_t rows,
                               std::int64_t columns, float* destination,
                               std::int64_t destination_row);

// The best for this processor.
TransposeTile transpose_tile();

}  // namespace ashlar::cpu

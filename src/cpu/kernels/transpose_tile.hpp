// Transpose of float matrices in 16 x 16 register tiles.
#pragma once

#include <cstdint>

namespace ashlar::cpu {

// destination[j * destination_row + i] = source[i * source_row + j] for i < rows, j < columns.
// Source and destination must not overlap.
using TransposeTile = void (*)(const float* source, std::int64_t source_row, std::int64_t rows,
                               std::int64_t columns, float* destination,
                               std::int64_t destination_row);

// The best implementation for this CPU.
TransposeTile transpose_tile();

}  // namespace ashlar::cpu

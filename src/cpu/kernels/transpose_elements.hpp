// Transpose of small matrices in L1, by element size.
#pragma once

#include <cstdint>

namespace ashlar::cpu {

// destination[c][r] = source[r][c] for r < rows, c < columns; elements of 1, 2, 4 or 8 bytes; row
// strides in elements.
using TransposeElements = void (*)(const void* source, std::int64_t source_stride,
                                   void* destination, std::int64_t destination_stride,
                                   std::int64_t rows, std::int64_t columns);

// The best implementation for this CPU.
TransposeElements transpose_elements(std::int64_t element_bytes);

}  // namespace ashlar::cpu

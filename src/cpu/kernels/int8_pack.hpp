// Moves bytes into the order kernels/int8_micro_kernel.hpp takes them in. `flip` is xor-ed to every
// byte: 0x80 shifts by 128 what is signed to unsigned and back.
#pragma once

#include <cstdint>

namespace ashlar::cpu {

struct Int8Pack {
  // A panel of B, `width` columns wide: see Int8MicroArgs::b. The depth is filled up to whole quads
  // and the columns to the width with zeros (not flipped).
  // Column j, depth l at source[j * column_stride + l].
  void (*k_contiguous)(const std::uint8_t* source, std::int64_t column_stride, std::int64_t columns,
                       std::int64_t k, std::uint8_t flip, std::int64_t width, std::int8_t* panel);
  // Column j, depth l at source[l * depth_stride + j].
  void (*n_contiguous)(const std::uint8_t* source, std::int64_t k_stride, std::int64_t columns,
                       std::int64_t k, std::uint8_t flip, std::int64_t width, std::int8_t* panel);
  // destination[i] = source[i] ^ flip
  void (*copy)(const std::uint8_t* source, std::int64_t count, std::uint8_t flip,
               std::uint8_t* destination);
  // destination[i * row_stride + l] = source[l * depth_stride + i] ^ flip, for i < rows, l < depth
  void (*transpose)(const std::uint8_t* source, std::int64_t k_stride, std::int64_t rows,
                    std::int64_t k, std::uint8_t flip, std::uint8_t* destination,
                    std::int64_t row_stride);
};

// The best for this processor.
const Int8Pack& int8_pack();

}  // namespace ashlar::cpu

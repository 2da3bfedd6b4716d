// Packing of int8 operands for kernels/int8_micro_kernel.hpp (VNNI layout: 4 consecutive k per
// 32-bit lane). `flip` is xor-ed to every byte: 0x80 converts between signed and unsigned (shift by
// 128).
#pragma once

#include <cstdint>

namespace ashlar::cpu {

struct Int8Pack {
  // Packs a panel of B, `width` columns wide: see Int8MicroArgs::b. K is padded to a multiple of 4
  // and the columns to the width with zeros (not flipped). Element (k = l, column j) is at source[j
  // * column_stride + l].
  void (*k_contiguous)(const std::uint8_t* source, std::int64_t column_stride, std::int64_t columns,
                       std::int64_t k, std::uint8_t flip, std::int64_t width, std::int8_t* panel);
  // The same; element (k = l, column j) is at source[l * k_stride + j].
  void (*n_contiguous)(const std::uint8_t* source, std::int64_t k_stride, std::int64_t columns,
                       std::int64_t k, std::uint8_t flip, std::int64_t width, std::int8_t* panel);
  // destination[i] = source[i] ^ flip
  void (*copy)(const std::uint8_t* source, std::int64_t count, std::uint8_t flip,
               std::uint8_t* destination);
  // destination[i * row_stride + l] = source[l * k_stride + i] ^ flip, for i < rows, l < k
  void (*transpose)(const std::uint8_t* source, std::int64_t k_stride, std::int64_t rows,
                    std::int64_t k, std::uint8_t flip, std::uint8_t* destination,
                    std::int64_t row_stride);
};

// The best implementation for this CPU.
const Int8Pack& int8_pack();

}  // namespace ashlar::cpu

// Moves bytes into the order kernels/quad_product.hpp takes them in. `flip` is xor-ed to every
// byte: 0x80 shifts by 128 what is signed to unsigned and back.
#pragma once

#include <cstdint>

namespace ashlar::cpu {

struct QuadPack {
  // Panels of B: see QuadOperands::b. `panel_bytes` lie between a panel and the next. The depth is
  // filled up to whole quads and the columns to whole panels with zeros (not flipped).
  // Column j, depth l at source[j * column_stride + l].
  void (*depth_runs)(const std::uint8_t* source, std::int64_t column_stride, std::int64_t columns,
                     std::int64_t depth, std::uint8_t flip, std::int64_t panel_bytes,
                     std::int8_t* panels);
  // Column j, depth l at source[l * depth_stride + j].
  void (*column_runs)(const std::uint8_t* source, std::int64_t depth_stride, std::int64_t columns,
                      std::int64_t depth, std::uint8_t flip, std::int64_t panel_bytes,
                      std::int8_t* panels);
  // destination[i] = source[i] ^ flip
  void (*copy)(const std::uint8_t* source, std::int64_t count, std::uint8_t flip,
               std::uint8_t* destination);
  // destination[i * row_stride + l] = source[l * depth_stride + i] ^ flip, for i < rows, l < depth
  void (*transpose)(const std::uint8_t* source, std::int64_t depth_stride, std::int64_t rows,
                    std::int64_t depth, std::uint8_t flip, std::uint8_t* destination,
                    std::int64_t row_stride);
};

// The best for this processor; its panels are as wide as those of quad_product().
const QuadPack& quad_pack();

}  // namespace ashlar::cpu

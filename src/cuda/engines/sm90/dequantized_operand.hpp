// An operand of 8 or 4 bits that kernels/sm90/dequantize_rows.cuh dequantises to 16-bit floats on
// its way into a stage, with block scales and zero points.
#pragma once

#include <optional>

#include "cuda/launch/arguments.hpp"
#include "plan/pointwise_program.hpp"

namespace ashlar::cuda {

struct DequantizedOperand {
  View numbers;              // over (batch, row, k), of 8 or 4 bits, contiguous along k
  View scales;               // likewise, strides count blocks of k; absent: none
  View zeros;                // as the scales; absent: none
  std::int64_t block = 0;    // k values per scale
  bool exact_scales = true;  // scales are exact in the math type
  bool exact_zeros = true;   // so is every value minus zero point

  // 16-byte packets: elements of each, packets per thread (of 128) and tile, scales and zero points
  // of each.
  int packet_elements() const { return 128 / bit_width(numbers.dtype); }
  int packets(int rows, int block_k) const;
  int packet_scales() const;
  int packet_zeros() const { return zeros.present() ? packet_scales() : 0; }
  // Shared memory for the packets of one tile.
  int step_bytes(int rows, int block_k) const;
};

// Matches a program over (batch, row, k); nothing where it is not a dequantisation or its memory
// does not consist of whole packets.
std::optional<DequantizedOperand> dequantized_operand(const PointwiseProgram& program, DType math);

// Generates "struct NarrowA" (or B) for dequantize_rows.cuh.
std::string print_converted(const DequantizedOperand& factor, char which, Arguments& arguments);

}  // namespace ashlar::cuda

// A factor of narrow numbers that kernels/sm90/dequantize_rows.cuh makes floats of 16 bits of, with
// the scales and zero points of their blocks, on the way into a stage.
#pragma once

#include <optional>

#include "cuda/launch/arguments.hpp"
#include "plan/pointwise_program.hpp"

namespace ashlar::cuda {

struct DequantizedOperand {
  View numbers;              // over (batch, row, depth), of 8 or 4 bits, the depth contiguous
  View scales;               // the same, strides count blocks of depth; absent: there are none
  View zeros;                // as the scales; absent: there are none
  std::int64_t block = 0;    // depths that share a scale
  bool exact_scales = true;  // they are floats of the result's type, too
  bool exact_zeros = true;   // so is every difference of a number and a zero point

  // Packets of 16 bytes: their elements, those that one of 128 threads has of a tile, and the
  // scales and zero points of each.
  int packet_elements() const { return 128 / bit_width(numbers.dtype); }
  int packets(int rows, int block_k) const;
  int packet_scales() const;
  int packet_zeros() const { return zeros.present() ? packet_scales() : 0; }
  // Shared memory for what 128 threads have of a tile.
  int step_bytes(int rows, int block_k) const;
};

// Of a program over (batch, row, depth); nothing where it is something else, or does not lie in
// whole packets.
std::optional<DequantizedOperand> dequantized_operand(const PointwiseProgram& program, DType math);

// "struct NarrowA" (or B): what dequantize_rows.cuh wants to be told.
std::string print_converted(const DequantizedOperand& factor, char which, Arguments& arguments);

}  // namespace ashlar::cuda

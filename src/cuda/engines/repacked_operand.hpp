// Operands of convolutions as the copy engine takes them.
#pragma once

#include <optional>

#include "cuda/engines/repack.hpp"

namespace ashlar::cuda {

// An operand in memory, or in scratch after a launch that brings it into order.
struct RepackedOperand {
  View view;                   // in scratch: no tensor
  std::optional<Repack> pack;  // how it comes there
  std::int64_t scratch_bytes = 0;
  double moved_bytes = 0;  // what it costs to bring it there, as bytes at the memory's speed
};

// With the bytes that it takes, but without a view.
RepackedOperand packed(Repack pack);
// Pixels [images, channels, spatial...] with their channels together: where they lie, or as the
// result of the program, at multiples of 16 bytes.
RepackedOperand take_pixels(const PointwiseProgram& program, DType dtype);

// Joins axes of the program that memory does not tell apart, but for the last one: of extent 1, or
// behind rows of extent 1, it would become one of them.
void merge_rows(PointwiseProgram& program);

}  // namespace ashlar::cuda

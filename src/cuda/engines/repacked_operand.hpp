// Operands of convolutions in a layout that TMA supports, repacked where necessary.
#pragma once

#include <optional>

#include "cuda/engines/repack.hpp"

namespace ashlar::cuda {

// An operand in memory, or in the workspace after a repacking launch.
struct RepackedOperand {
  View view;                   // in the workspace: no tensor
  std::optional<Repack> pack;  // how it is repacked
  std::int64_t scratch_bytes = 0;
  double moved_bytes = 0;  // cost of repacking, in bytes at memory bandwidth
};

// Fills in all but the view.
RepackedOperand packed(Repack pack);
// Pixels [images, channels, spatial...] with contiguous channels: in place, or repacked from the
// result of the program, with rows that are multiples of 16 bytes.
RepackedOperand take_pixels(const PointwiseProgram& program, DType dtype);

// Merges axes of the program that are contiguous in memory, except the last one: with an extent of
// 1, or behind rows of extent 1, it would be merged, too.
void merge_rows(PointwiseProgram& program);

}  // namespace ashlar::cuda

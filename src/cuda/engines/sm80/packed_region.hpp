// Convolutions whose operands would be loaded element by element: layout-transform pre-passes
// repack these operands to NHWC in scratch.
#pragma once

#include <map>
#include <optional>

#include "cuda/engines/repacked_operand.hpp"
#include "plan/region.hpp"

namespace ashlar::cuda {

using PackedOperands = std::map<int, RepackedOperand>;  // by input of the anchor

struct PackedRegion {
  Region region;  // loads repacked operands from scratch: views without a tensor
  PackedOperands packs;
};

// Repacks these inputs of the anchor; nothing if the pre-pass cannot repack one of them or the
// region is not a convolution. Channels are zero-padded to multiples of 16 bytes, so that programs
// of the region may have more channels than its anchor.
std::optional<PackedRegion> packed_region(const Region& region, const std::vector<int>& slots);

}  // namespace ashlar::cuda

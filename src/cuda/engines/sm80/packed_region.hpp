// A convolution whose operands lie so that threads would load them element by element: launches
// before it bring them into order.
#pragma once

#include <map>
#include <optional>

#include "cuda/engines/repacked_operand.hpp"
#include "plan/region.hpp"

namespace ashlar::cuda {

using PackedOperands = std::map<int, RepackedOperand>;  // by input of the anchor

struct PackedRegion {
  Region region;  // loads them from scratch: views without a tensor
  PackedOperands packs;
};

// With these inputs of the anchor, each of which the launch must be able to bring; nothing where
// one of them it cannot, or the region is no convolution. Their channels are filled up with zeros
// to whole pieces of 16 bytes, so that programs of the region have more of them than its anchor.
std::optional<PackedRegion> packed_region(const Region& region, const std::vector<int>& slots);

}  // namespace ashlar::cuda

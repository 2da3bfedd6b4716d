// A convolution whose operands lie so that threads would load them element by element: launches
// before it bring them into order.
#pragma once

#include <map>
#include <optional>

#include "cuda/engines/packed_operand.hpp"
#include "plan/region.hpp"

namespace ashlar::cuda {

using PackedOperands = std::map<int, PackedOperand>;  // by input of the anchor

struct PackedRegion {
  Region region;  // loads them from scratch: views without a tensor
  PackedOperands packs;
};

// With these inputs of the anchor, each of which the launch must be able to bring; nothing where
// one of them it cannot, or the region is no convolution forward or backward-data.
std::optional<PackedRegion> packed_region(const Region& region, const std::vector<int>& slots);

}  // namespace ashlar::cuda

// In-place outputs (CompileOptions::in_place): outputs that may share the memory of an input.
#pragma once

#include "plan/device_partition.hpp"

namespace ashlar {

struct InPlacePair {
  TensorId output = kNoTensor, input = kNoTensor;
};
// The pairs that the options name. Throws Error(invalid_argument).
std::vector<InPlacePair> in_place_pairs(const Graph& graph, const CompileOptions& options);

// How the elements of `output`, which the region writes into the memory of `input`, depend on it.
enum class InPlaceReads : std::uint8_t {
  none,          // the region does not read `input`
  own_elements,  // each element of `input` is read, if at all, to compute the same element
  others,        // it may be read after it was overwritten
};
InPlaceReads in_place_reads(const Region& region, InPlacePair pair);

// Orders the regions so that every read of an input comes before the write of the output in its
// memory. Where that cannot be, or where the region that writes reads other elements, the output is
// computed in the workspace and copied when all readers have run. All four are replaced as needed.
void plan_in_place(const std::vector<InPlacePair>& pairs, LoweredGraph& lowered,
                   EngineChoices& engines, std::vector<FusionLimits>& limits,
                   std::vector<Region>& regions);

}  // namespace ashlar

#include "cuda/engines/sm80/packed_region.hpp"

#include "cuda/engines/channel_axes.hpp"

namespace ashlar::cuda {

std::optional<PackedRegion> packed_region(const Region& region, const std::vector<int>& slots) {
  // Columns of filter gradients follow the layout of dw: of several taps none would gain by it.
  if (!region.anchor_as<ConvForward>() && !region.anchor_as<ConvBackwardData>()) return {};
  // The launch computes in f32.
  if (slots.empty() || region.precision() != f32) return {};
  PackedRegion result{region, {}};
  for (const int slot : slots) {
    const auto i = static_cast<std::size_t>(slot);
    const PointwiseProgram& program = input_program(region, slot);
    if (!program.stores.empty() || program.has_blocks()) return {};
    PackedOperand operand = take_pixels(program, region.anchor->inputs[i].dtype);
    if (!operand.pack) return {};
    result.region.prologues[i] = plain_load(operand.view);
    result.packs.emplace(slot, std::move(operand));
  }
  return result;
}

}  // namespace ashlar::cuda

#include "cuda/engines/sm80/packed_region.hpp"

#include "base/ceil_div.hpp"
#include "cuda/engines/channel_axes.hpp"
#include "cuda/launch/tensor_map.hpp"

namespace ashlar::cuda {

std::optional<PackedRegion> packed_region(const Region& region, const std::vector<int>& slots) {
  // The pre-pass computes in f32.
  if (slots.empty() || region.anchor_as<Matmul>() || region.precision() != f32) return {};
  // The pre-pass was not timed for filter gradients and for padded channels: this factor ranks
  // measured configurations first.
  constexpr double kUnmeasured = 2;
  const bool is_filter_gradient = region.anchor_as<ConvBackwardFilter>() != nullptr;
  PackedRegion result{region, {}};
  for (const int slot : slots) {
    const auto i = static_cast<std::size_t>(slot);
    const PointwiseProgram& program = input_program(region, slot);
    if (!program.stores.empty() || program.has_blocks()) return {};
    RepackedOperand operand = take_pixels(program, region.anchor->inputs[i].dtype);
    if (!operand.pack || element_count(operand.view.dims) == 0) return {};
    std::int64_t& channels = operand.view.dims[1];
    const std::int64_t whole = round_up(channels, elements_per_16_bytes(operand.view.dtype));
    operand.pack->zeros = whole - channels;
    if (is_filter_gradient || whole > channels) operand.moved_bytes *= kUnmeasured;
    channels = whole;
    result.region.prologues[i] = plain_load(operand.view);
    result.packs.emplace(slot, std::move(operand));
  }
  return result;
}

}  // namespace ashlar::cuda

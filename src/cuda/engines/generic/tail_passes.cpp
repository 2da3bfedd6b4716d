#include "cuda/engines/generic/tail_passes.hpp"

#include <algorithm>

#include "cuda/engines/generic/operations.hpp"

namespace ashlar::cuda {

namespace {

constexpr const char* kSlotTails =
    "__shared__ float tail_slots[kTails][kThreads];\n"
    "struct SlotTails {\n"
    "  template <int kNumber>\n"
    "  __device__ void take(const R (&values)[1]) {\n"
    "    float& slot = tail_slots[kNumber][threadIdx.x];\n"
    "    slot = Tail<kNumber>::apply(slot, values[0]);\n"
    "  }\n"
    "};\n";

void describe_product(const Region& region, GenericKernel& kernel) {
  if (const auto* op = region.anchor_as<Matmul>()) describe(*op, kernel);
  if (const auto* op = region.anchor_as<ConvForward>()) describe(*op, kernel);
  if (const auto* op = region.anchor_as<ConvBackwardData>()) describe(*op, kernel);
}

}  // namespace

KernelDesign generic_with_tails(const Graph& graph, const Region& region,
                                const std::vector<TailPass>& tails, const DeviceProps& device) {
  std::vector<Dims> spaces;  // without duplicates
  for (const TailPass& tail : tails)
    if (std::find(spaces.begin(), spaces.end(), tail.result) == spaces.end())
      spaces.push_back(tail.result);
  KernelDesign design;
  for (const Dims& space : spaces) {
    const Dims& all = region.epilogue.space;
    Dims reduced = all;
    for (int axis = 0; axis < all.rank(); ++axis)
      if (space[axis] != 1) reduced[axis] = 1;
    GenericKernel kernel(region);
    describe_product(region, kernel);
    kernel.constant("kTails", static_cast<std::int64_t>(tails.size()));
    kernel.constant("kTailRank", all.rank());
    std::int64_t parts = 1;
    for (std::size_t i = 0; i < tails.size(); ++i) {
      const bool is_here = tails[i].result == space;
      if (is_here) parts = tails[i].parts;
      kernel.reserved(fmt::format("tail{}", i), tails[i].reservation);
      kernel.text(tails[i].text +
                  fmt::format("  enum {{ kIsHere = {} }};\n}};\n", is_here ? 1 : 0));
    }
    kernel.text(kSlotTails);
    const std::int64_t elements = element_count(space);
    kernel.number("elements", elements);
    kernel.number("parts", parts);
    kernel.number("terms", element_count(reduced));
    kernel.numbers("all", all);
    kernel.numbers("kept", space);
    kernel.numbers("reduced", reduced);
    kernel.end_with("entry_tails", {.units = parts * elements, .team = elements == 1});
    for (LaunchDesign& launch : kernel.design(graph, device).launches)
      design.launches.push_back(std::move(launch));
  }
  return design;
}

}  // namespace ashlar::cuda

// Matrix products and convolutions on tensor cores by cp.async and mma.sync: any layout, type and
// fusion, on every GPU from sm_80 on.
#include <algorithm>

#include "cuda/engines/engines.hpp"
#include "cuda/engines/product_tails.hpp"
#include "cuda/engines/sm80/product_design.hpp"
#include "cuda/engines/tile_cost.hpp"

namespace ashlar::cuda {

namespace {

// The region with every operand in order that threads would load element by element, and then those
// in shorter pieces than 16 bytes; nothing where there is none of the first, or it does not help.
// One that is in order may want another one to be.
std::optional<PackedRegion> in_order(const Region& region, const DeviceProps& device) {
  std::vector<int> slots = ProductDesigner(region, device).slots_by_element();
  while (auto packed = packed_region(region, slots)) {
    const std::vector<int> more =
        ProductDesigner(packed->region, device, packed->packs).slots_in_short_pieces();
    if (more.empty()) return packed;
    if (std::find_first_of(more.begin(), more.end(), slots.begin(), slots.end()) != more.end())
      return {};
    slots.insert(slots.end(), more.begin(), more.end());
  }
  return {};
}

class ProductEngine : public CudaEngine {
 public:
  explicit ProductEngine(bool convolutions) : convolutions_(convolutions) {}
  std::string_view id() const override {
    return convolutions_ ? "cuda.conv_sm80" : "cuda.gemm_sm80";
  }
  std::string_view description() const override {
    return convolutions_ ? "convolutions of any layout on tensor cores (mma.sync), all directions"
                         : "matrix products of any layout on tensor cores (mma.sync)";
  }

  Support supports(const Region& region, const DeviceProps& device) const override {
    const bool is_matmul = region.anchor_as<Matmul>() != nullptr;
    if (convolutions_ && is_matmul) return Support::other_operation("a matrix product");
    if (!convolutions_ && !is_matmul) return Support::other_operation("no matrix product");
    if (Support support = is_tensor_product(region); !support) return support;
    if (Support support = has_no_tails(region); !support) return support;
    for (const PointwiseProgram& prologue : region.prologues)
      if (prologue.has_blocks()) return Support::no("scales of blocks before the product");
    return ProductDesigner(region, device).support();
  }
  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    std::vector<Config> result = ProductDesigner(region, device).configs(id());
    if (const auto packed = in_order(region, device)) {
      for (Config& config : ProductDesigner(packed->region, device, packed->packs).configs(id()))
        result.push_back(std::move(config));
      sort_by_cost(result, device, region.precision());
    }
    return result;
  }
  KernelDesign design(const Graph& graph, const Region& region, const Config& config,
                      const DeviceProps& device) const override {
    const bool is_packed = std::any_of(config.knobs.begin(), config.knobs.end(),
                                       [](const auto& knob) { return knob.first == kPacked; });
    if (!is_packed) return ProductDesigner(region, device).design(graph, config);
    const auto packed = in_order(region, device);
    return ProductDesigner(packed->region, device, packed->packs).design(graph, config);
  }

 private:
  bool convolutions_;
};

}  // namespace

const CudaEngine& gemm_sm80_engine() {
  static const ProductEngine engine(false);
  return engine;
}

const CudaEngine& conv_sm80_engine() {
  static const ProductEngine engine(true);
  return engine;
}

}  // namespace ashlar::cuda

// Engines cuda.gemm_sm80 and cuda.conv_sm80: GEMM and implicit-GEMM convolution by cp.async and
// mma.sync, for any layout, type and fusion, on every GPU from sm_80 on.
#include <algorithm>

#include "cuda/engines/engines.hpp"
#include "cuda/engines/gemm_tails.hpp"
#include "cuda/engines/sm80/gemm_design.hpp"
#include "cuda/engines/tile_cost.hpp"

namespace ashlar::cuda {

namespace {

// The region with operands repacked that threads would load element by element, and then those that
// would be loaded in vectors of less than 16 bytes. Nothing if no operand is loaded element by
// element, or if repacking does not help. Repacking one operand may require repacking the other.
std::optional<PackedRegion> packed_for(const Region& region, const DeviceProps& device) {
  std::vector<int> slots = GemmDesigner(region, device).slots_by_element();
  while (auto packed = packed_region(region, slots)) {
    const std::vector<int> more =
        GemmDesigner(packed->region, device, packed->packs).slots_with_short_vectors();
    if (more.empty()) return packed;
    if (std::find_first_of(more.begin(), more.end(), slots.begin(), slots.end()) != more.end())
      return {};
    slots.insert(slots.end(), more.begin(), more.end());
  }
  return {};
}

class Sm80Engine : public CudaEngine {
 public:
  explicit Sm80Engine(bool convolutions) : convolutions_(convolutions) {}
  ComputeMethod method() const override { return ComputeMethod::tensor_cores; }
  std::string_view id() const override {
    return convolutions_ ? "cuda.conv_sm80" : "cuda.gemm_sm80";
  }
  std::string_view description() const override {
    return convolutions_ ? "convolution in any layout on tensor cores (mma.sync), all directions"
                         : "GEMM in any layout on tensor cores (mma.sync)";
  }

  Support supports(const Region& region, const DeviceProps& device) const override {
    const bool is_matmul = region.anchor_as<Matmul>() != nullptr;
    if (convolutions_ && is_matmul) return Support::other_operation("the anchor is a matmul");
    if (!convolutions_ && !is_matmul) return Support::other_operation("the anchor is not a matmul");
    if (Support support = is_gemm_problem(region); !support) return support;
    if (Support support = has_no_tails(region); !support) return support;
    for (const PointwiseProgram& prologue : region.prologues)
      if (prologue.has_blocks()) return Support::no("the prologue has block scales");
    return GemmDesigner(region, device).support();
  }
  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    std::vector<Config> result = GemmDesigner(region, device).configs(id());
    if (const auto packed = packed_for(region, device)) {
      for (Config& config : GemmDesigner(packed->region, device, packed->packs).configs(id()))
        result.push_back(std::move(config));
      sort_by_cost(result, device, region.precision());
    }
    return result;
  }
  KernelDesign design(const Graph& graph, const Region& region, const Config& config,
                      const DeviceProps& device) const override {
    const bool is_packed = std::any_of(config.knobs.begin(), config.knobs.end(),
                                       [](const auto& knob) { return knob.first == kPacked; });
    if (!is_packed) return GemmDesigner(region, device).design(graph, config);
    const auto packed = packed_for(region, device);
    return GemmDesigner(packed->region, device, packed->packs).design(graph, config);
  }

 private:
  bool convolutions_;
};

}  // namespace

const CudaEngine& gemm_sm80_engine() {
  static const Sm80Engine engine(false);
  return engine;
}

const CudaEngine& conv_sm80_engine() {
  static const Sm80Engine engine(true);
  return engine;
}

}  // namespace ashlar::cuda

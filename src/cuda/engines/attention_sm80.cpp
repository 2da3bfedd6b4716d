// Engine for attention in the manner of FlashAttention-2: cp.async, ldmatrix and mma.sync, scores
// and weights in registers, on every GPU from sm_80 on.
#include "cuda/engines/engines.hpp"
#include "cuda/engines/sm80/attention_design.hpp"

namespace ashlar::cuda {

namespace {

class AttentionSm80Engine final : public CudaEngine {
 public:
  ComputeMethod method() const override { return ComputeMethod::tensor_cores; }
  std::string_view id() const override { return "cuda.attention_sm80"; }
  std::string_view description() const override {
    return "attention with an online softmax on tensor cores (mma.sync)";
  }

  Support supports(const Region& region, const DeviceProps& device) const override {
    if (!region.anchor_as<AttentionForward>())
      return Support::other_operation("the anchor is not an attention_forward");
    return AttentionDesigner(region, device).support();
  }
  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    return AttentionDesigner(region, device).configs();
  }
  KernelDesign design(const Graph& graph, const Region& region, const Config& config,
                      const DeviceProps& device) const override {
    return AttentionDesigner(region, device).design(graph, config);
  }
};

}  // namespace

const CudaEngine& attention_sm80_engine() {
  static const AttentionSm80Engine engine;
  return engine;
}

}  // namespace ashlar::cuda

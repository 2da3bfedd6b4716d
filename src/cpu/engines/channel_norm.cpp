// Batch, instance and group norm: few statistics over many elements each. Every statistic is
// computed by all threads, in chunks that depend on the shape alone.
#include "cpu/engines/build.hpp"
#include "cpu/engines/engines.hpp"
#include "cpu/engines/norm_kernels.hpp"

namespace ashlar::cpu {

namespace {

bool by_channels(NormMode mode) {
  return mode == NormMode::batch || mode == NormMode::instance || mode == NormMode::group;
}

std::unique_ptr<Kernel> build_channel_norm(const Region& region, bool split,
                                           const DeviceProps& device) {
  return region.anchor_as<NormForward>() ? build_norm_forward(region, split, device)
                                         : build_norm_backward(region, split, device);
}

class ChannelNormEngine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.channel_norm"; }
  EngineKind kind() const override { return EngineKind::generic_fusion; }
  std::string_view description() const override {
    return "batch, instance and group norm, forward and backward";
  }

  Support supports(const Region& region, const DeviceProps&) const override {
    const auto* forward = region.anchor_as<NormForward>();
    const auto* backward = region.anchor_as<NormBackward>();
    if (!forward && !backward) return Support::other_operation("the anchor is not a normalisation");
    if (!by_channels(forward ? forward->mode : backward->mode))
      return Support::no("the norm is per row");
    if (touches_ragged(region)) return Support::no("a tensor is ragged");
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    Cost cost = row_cost(region, 0.4);
    cost.bytes *= 2.5;  // statistics and results are separate passes over memory
    const auto config = [&](bool split) {
      return make_config({{"split", split ? 1 : 0}}, cost,
                         build_channel_norm(region, split, device)->scratch_layout().total_bytes());
    };
    const Config split = config(true);
    cost.bytes_fraction = cost.flops_fraction = 0.2;
    const Config whole = config(false);
    if (split.scratch_bytes == whole.scratch_bytes) return {split};
    return {split, whole};
  }

  std::unique_ptr<Kernel> build(const Graph&, const Region& region, const Config& config,
                                const DeviceProps& device) const override {
    return build_channel_norm(region, config.knob("split") != 0, device);
  }
};

}  // namespace

const Engine& channel_norm_engine() {
  static const ChannelNormEngine engine;
  return engine;
}

}  // namespace ashlar::cpu

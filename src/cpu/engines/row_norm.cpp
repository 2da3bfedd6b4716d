// Layer, adaptive layer and RMS norm: many statistics over few elements each, one thread per
// statistic.
#include "cpu/engines/build.hpp"
#include "cpu/engines/engines.hpp"
#include "cpu/engines/norm_kernels.hpp"

namespace ashlar::cpu {

namespace {

bool by_rows(NormMode mode) {
  return mode == NormMode::layer || mode == NormMode::ada_layer || mode == NormMode::rms;
}

class RowNormEngine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.row_norm"; }
  EngineKind kind() const override { return EngineKind::generic_fusion; }
  std::string_view description() const override {
    return "layer, adaptive layer and RMS norm, forward and backward";
  }

  Support supports(const Region& region, const DeviceProps&) const override {
    const auto* forward = region.anchor_as<NormForward>();
    const auto* backward = region.anchor_as<NormBackward>();
    if (!forward && !backward) return Support::other_operation("the anchor is not a normalisation");
    if (!by_rows(forward ? forward->mode : backward->mode))
      return Support::no("the norm is per channel");
    if (touches_ragged(region)) return Support::no("a tensor is ragged");
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    if (region.anchor_as<NormForward>()) return {make_config({}, row_cost(region, 0.5))};
    Cost cost = row_cost(region, 0.4);
    cost.bytes *= 2;  // x and dy are read for dx and again for the parameter gradients
    return {make_config({}, cost,
                        build_norm_backward(region, true, device)->scratch_layout().total_bytes())};
  }

  std::unique_ptr<Kernel> build(const Graph&, const Region& region, const Config&,
                                const DeviceProps& device) const override {
    if (region.anchor_as<NormForward>()) return build_norm_forward(region, false, device);
    return build_norm_backward(region, true, device);
  }
};

}  // namespace

const Engine& row_norm_engine() {
  static const RowNormEngine engine;
  return engine;
}

}  // namespace ashlar::cpu

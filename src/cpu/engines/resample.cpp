// Max and average pooling, forward and backward.
#include "cpu/engines/build.hpp"
#include "cpu/engines/engines.hpp"
#include "cpu/engines/pooling.hpp"

namespace ashlar::cpu {

namespace {

class ResampleEngine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.resample"; }
  EngineKind kind() const override { return EngineKind::generic_fusion; }
  std::string_view description() const override {
    return "max and average pooling, forward and backward";
  }

  Support supports(const Region& region, const DeviceProps&) const override {
    const auto* forward = region.anchor_as<ResampleForward>();
    const auto* backward = region.anchor_as<ResampleBackward>();
    if (!forward && !backward) return Support::other_operation("the anchor is not a resampling");
    const ResampleAttributes& op =
        forward ? static_cast<const ResampleAttributes&>(*forward) : *backward;
    const bool maximum = op.mode == ResampleMode::maxpool;
    if (op.mode == ResampleMode::nearest || op.mode == ResampleMode::bilinear)
      return Support::no("an interpolation mode; max and average pooling are supported");
    if (touches_ragged(region)) return Support::no("a tensor is ragged");
    if (backward && !maximum && !is_floating(region.anchor->compute))
      return Support::no(
          "average pooling backward with an integer compute type: every term truncates");
    if (op.window[op.window.rank() - 1] > kPoolingSegment / 2)
      return Support::no("window {} is wider than {}", op.window[op.window.rank() - 1],
                         kPoolingSegment / 2);
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps&) const override {
    const bool forward = region.anchor_as<ResampleForward>() != nullptr;
    const PoolingShape shape =
        forward ? pooling_forward_shape(region) : pooling_backward_shape(region);
    Cost cost = row_cost(region, shape.along() ? 0.1 : 0.4);
    cost.flops = 2.0 * static_cast<double>(element_count(shape.y));
    for (std::int64_t extent : shape.op.window) cost.flops *= static_cast<double>(extent);
    const bool find_maxima =
        !forward && shape.is_maximum() && input_program(region, ResampleBackward::index).empty();
    const std::int64_t scratch =
        find_maxima ? element_count(shape.y) * bit_width(region.precision()) / 8 : 0;
    return {make_config({{"axis", shape.axis}}, cost, scratch)};
  }

  std::unique_ptr<Kernel> build(const Graph&, const Region& region, const Config&,
                                const DeviceProps&) const override {
    return region.anchor_as<ResampleForward>() ? build_pooling_forward(region)
                                               : build_pooling_backward(region);
  }
};

}  // namespace

const Engine& resample_engine() {
  static const ResampleEngine engine;
  return engine;
}

}  // namespace ashlar::cpu

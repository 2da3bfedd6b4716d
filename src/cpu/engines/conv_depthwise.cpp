// Depthwise and small-group convolutions, too thin for GEMM: register tiles of pixels if channels
// are contiguous, else rows along the contiguous axis.
#include "cpu/conv/conv_direct_filter.hpp"
#include "cpu/conv/conv_lines_filter.hpp"
#include "cpu/conv/conv_lines_pixels.hpp"
#include "cpu/conv/conv_planes.hpp"
#include "cpu/engines/build.hpp"
#include "cpu/engines/engines.hpp"

namespace ashlar::cpu {

namespace {

// Strategies of the engine. Rows need no scratch; they are the fallback.
enum Strategy : std::int64_t { kRows, kLines, kPlanes };

// Lines if channels are contiguous, else planes.
Strategy best_strategy(const Region& region, const ConvGeometry& geometry) {
  const PointwiseProgram& source = region.prologues[0];
  const std::vector<ConvPhase> phases = phases_of(geometry, region);
  if (contiguous_views(source, 1) > contiguous_views(source, source.space.rank() - 1))
    return lines_fit(phases, 1) ? kLines : kRows;
  return planes_fit(phases, std::max(geometry.channels, geometry.filters)) ? kPlanes : kRows;
}

// Whether the stack buffers of the row strategy suffice.
Support rows_fit(const ConvGeometry& geometry) {
  const std::int64_t terms = geometry.tap_count() * std::max(geometry.channels, geometry.filters);
  if (terms > kMaxTerms) return Support::no("{} terms per result, at most {}", terms, kMaxTerms);
  const std::int64_t weights = geometry.tap_count() * geometry.channels * geometry.filters;
  if (weights > kMaxGroupWeights)
    return Support::no("{} weights per group, at most {}", weights, kMaxGroupWeights);
  return Support::yes();
}

std::unique_ptr<Kernel> build_strategy(Strategy strategy, const Region& region,
                                       const DeviceProps& device) {
  const bool filter = region.anchor_as<ConvBackwardFilter>() != nullptr;
  switch (strategy) {
    case kLines:
      if (filter) return build_for_precision<ConvLinesFilterKernel>(region, device);
      return build_for_precision<ConvLinesKernel>(region, device);
    case kPlanes:
      if (filter) return build_for_precision<ConvPlanesFilterKernel>(region, device);
      return build_for_precision<ConvPlanesKernel>(region, device);
    case kRows: break;
  }
  if (filter) return build_for_precision<DirectFilterPixelRows>(region);
  return build_for_precision<DirectPixelRows>(region);
}

class ConvDepthwiseEngine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.conv_depthwise"; }
  EngineKind kind() const override { return EngineKind::generic_fusion; }
  std::string_view description() const override {
    return "direct depthwise and small-group convolution, vectorised along channels or pixels";
  }

  Support supports(const Region& region, const DeviceProps&) const override {
    if (!is_convolution(region)) return Support::other_operation("the anchor is not a convolution");
    const int spatial = region.anchor->outputs[0].dims.rank() - 2;
    if (spatial < 1 || spatial > kMaxSpatial)
      return Support::no("{} spatial axes, 1 to 3 are supported", spatial);
    for (const View& view : region.anchor->inputs)
      if (view.ragged_offset != kNoTensor) return Support::no("a ragged operand");
    const ConvGeometry geometry(*region.anchor);
    if (geometry.groups < 2) return Support::no("one group: implicit GEMM is faster");
    if (geometry.channels > kMaxGroupChannels)
      return Support::no("{} channels per group, at most {}", geometry.channels, kMaxGroupChannels);
    if (geometry.filters > kMaxGroupChannels)
      return Support::no("{} filters per group, at most {}", geometry.filters, kMaxGroupChannels);
    return best_strategy(region, geometry) == kRows ? rows_fit(geometry) : Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    const ConvGeometry geometry(*region.anchor);
    std::vector<Config> configs;
    const Strategy best = best_strategy(region, geometry);
    if (best != kRows) {
      Config config = make_config({{"strategy", best}}, row_cost(region, 1.0));
      const bool depthwise = geometry.channels == 1 && geometry.filters == 1;
      config.cost.flops_fraction = best == kPlanes ? 0.2 : depthwise ? 0.6 : 0.3;
      config.scratch_bytes = build_strategy(best, region, device)->scratch_layout().total_bytes();
      configs.push_back(config);
    }
    if (rows_fit(geometry)) {
      Config rows = make_config({{"strategy", kRows}}, row_cost(region, 1.0));
      rows.cost.flops_fraction = 0.05;
      configs.push_back(rows);
    }
    return configs;
  }

  std::unique_ptr<Kernel> build(const Graph&, const Region& region, const Config& config,
                                const DeviceProps& device) const override {
    return build_strategy(static_cast<Strategy>(config.knob("strategy")), region, device);
  }
};

}  // namespace

const Engine& conv_depthwise_engine() {
  static const ConvDepthwiseEngine engine;
  return engine;
}

}  // namespace ashlar::cpu

// Depthwise and small-group convolutions, too thin for a matrix product: tiles of pixels where
// channels lie together, else rows of whatever does.
#include "cpu/conv_direct_filter.hpp"
#include "cpu/conv_lines_filter.hpp"
#include "cpu/conv_lines_pixels.hpp"
#include "cpu/engines/build.hpp"
#include "cpu/engines/engines.hpp"

namespace ashlar::cpu {

namespace {

// Where channels lie together.
bool runs_by_lines(const Region& region, const ConvGeometry& geometry) {
  const PointwiseProgram& source = region.prologues[0];
  return contiguous_views(source, 1) > contiguous_views(source, source.space.rank() - 1) &&
         lines_fit(phases_of(geometry, region));
}

// Rows are held on the stack.
Support rows_fit(const ConvGeometry& geometry) {
  const std::int64_t terms = geometry.tap_count() * std::max(geometry.channels, geometry.filters);
  if (terms > kMostTerms)
    return Support::no("{} products per result, at most {}", terms, kMostTerms);
  const std::int64_t weights = geometry.tap_count() * geometry.channels * geometry.filters;
  if (weights > kMostGroupWeights)
    return Support::no("{} weights per group, at most {}", weights, kMostGroupWeights);
  return Support::yes();
}

std::unique_ptr<Kernel> build_lines(const Region& region, const DeviceProps& device) {
  if (region.anchor_as<ConvBackwardFilter>())
    return build_for_precision<ConvLinesFilterKernel>(region, device);
  return build_for_precision<ConvLinesKernel>(region, device);
}

class ConvDepthwiseEngine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.conv_depthwise"; }
  EngineKind kind() const override { return EngineKind::generic_fusion; }
  std::string_view description() const override {
    return "direct convolution for groups of few channels, along channels or along pixels";
  }

  Support supports(const Region& region, const DeviceProps&) const override {
    if (!is_convolution(region)) return Support::other_operation("the anchor is no convolution");
    const int spatial = region.anchor->outputs[0].dims.rank() - 2;
    if (spatial < 1 || spatial > kMaxSpatial)
      return Support::no("{} spatial axes, 1 to 3 are supported", spatial);
    for (const View& view : region.anchor->inputs)
      if (view.ragged_offset != kNoTensor) return Support::no("a ragged operand");
    const ConvGeometry geometry(*region.anchor);
    if (geometry.groups < 2) return Support::no("one group: a matrix product is faster");
    if (geometry.channels > kMostGroupChannels)
      return Support::no("{} channels per group, at most {}", geometry.channels,
                         kMostGroupChannels);
    if (geometry.filters > kMostGroupChannels)
      return Support::no("{} filters per group, at most {}", geometry.filters, kMostGroupChannels);
    return runs_by_lines(region, geometry) ? Support::yes() : rows_fit(geometry);
  }

  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    const ConvGeometry geometry(*region.anchor);
    std::vector<Config> configs;
    if (runs_by_lines(region, geometry)) {
      Config lines = make_config({{"lines", 1}}, row_cost(region, 1.0));
      lines.cost.flops_fraction = geometry.channels == 1 && geometry.filters == 1 ? 0.6 : 0.3;
      lines.scratch_bytes = build_lines(region, device)->scratch_book().total_bytes();
      configs.push_back(lines);
    }
    if (rows_fit(geometry)) {
      Config rows = make_config({{"lines", 0}}, row_cost(region, 1.0));
      rows.cost.flops_fraction = 0.05;
      configs.push_back(rows);
    }
    return configs;
  }

  std::unique_ptr<Kernel> build(const Graph&, const Region& region, const Config& config,
                                const DeviceProps& device) const override {
    if (config.knob("lines") != 0) return build_lines(region, device);
    if (region.anchor_as<ConvBackwardFilter>())
      return build_for_precision<DirectFilterPixelRows>(region);
    return build_for_precision<DirectPixelRows>(region);
  }
};

}  // namespace

const Engine& conv_depthwise_engine() {
  static const ConvDepthwiseEngine engine;
  return engine;
}

}  // namespace ashlar::cpu

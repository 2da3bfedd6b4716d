// Depthwise and small-group convolutions, too thin for a matrix product: tiles of pixels where
// channels lie together, else rows of whatever does.
#include "cpu/conv_direct_filter.hpp"
#include "cpu/conv_lines_filter.hpp"
#include "cpu/conv_lines_pixels.hpp"
#include "cpu/engines/build.hpp"
#include "cpu/engines/engines.hpp"

namespace ashlar::cpu {

namespace {

// Rows along channels need one channel per group and memory that holds channels together.
bool rows_along_channels(const Region& region, const ConvGeometry& geometry) {
  const PointwiseProgram& source = region.prologues[0];
  return geometry.channels == 1 &&
         contiguous_views(source, 1) > contiguous_views(source, source.space.rank() - 1);
}

// Lines of pixels, vectors along channels: groups of equally many channels and filters.
bool runs_by_lines(const Region& region, const ConvGeometry& geometry) {
  const PointwiseProgram& source = region.prologues[0];
  return geometry.channels == geometry.filters &&
         (geometry.channels & (geometry.channels - 1)) == 0 &&
         contiguous_views(source, 1) > contiguous_views(source, source.space.rank() - 1) &&
         lines_fit(phases_of(geometry, region));
}

template <class T>
bool fills_vectors(const ConvGeometry& geometry) {
  return depthwise_kernel<T>().lanes % geometry.channels == 0;
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

constexpr std::int64_t kMostSplits = 16;

std::int64_t split_count(const ConvGeometry& geometry) {
  const std::int64_t lines = geometry.images * geometry.y[0] * geometry.y[1];
  return std::clamp<std::int64_t>(lines / 8, 1, kMostSplits);
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
    constexpr std::int64_t kFew = 8;
    if (geometry.channels > kFew)
      return Support::no("{} channels per group, at most {}", geometry.channels, kFew);
    if (geometry.filters > kFew)
      return Support::no("{} filters per group, at most {}", geometry.filters, kFew);
    return runs_by_lines(region, geometry) ? Support::yes() : rows_fit(geometry);
  }

  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    const ConvGeometry geometry(*region.anchor);
    std::vector<Config> configs;
    const bool whole_groups = region.precision() == f64 ? fills_vectors<double>(geometry)
                                                        : fills_vectors<float>(geometry);
    if (runs_by_lines(region, geometry) && whole_groups) {
      Config lines;
      lines.knobs = {{"lines", 1}, {"along_channels", 1}, {"splits", 1}};
      lines.cost = row_cost(region, 1.0);
      lines.cost.flops_fraction = geometry.channels == 1 ? 0.6 : 0.4;
      lines.scratch_bytes = build_lines(region, device)->scratch_book().total_bytes();
      configs.push_back(lines);
    }
    if (rows_fit(geometry)) add_rows(region, geometry, configs);
    return configs;
  }

  std::unique_ptr<Kernel> build(const Graph&, const Region& region, const Config& config,
                                const DeviceProps& device) const override {
    if (config.knob("lines") != 0) return build_lines(region, device);
    const bool along_channels = config.knob("along_channels") != 0;
    if (region.anchor_as<ConvBackwardFilter>()) {
      if (along_channels)
        return build_for_precision<DirectFilterChannelRows>(region, config.knob("splits"));
      return build_for_precision<DirectFilterPixelRows>(region);
    }
    if (along_channels) return build_for_precision<DirectChannelRows>(region);
    return build_for_precision<DirectPixelRows>(region);
  }

 private:
  static void add_rows(const Region& region, const ConvGeometry& geometry,
                       std::vector<Config>& configs) {
    const bool along_channels = rows_along_channels(region, geometry);
    Config whole;
    whole.knobs = {{"lines", 0}, {"along_channels", along_channels}, {"splits", 1}};
    whole.cost = row_cost(region, 1.0);
    whole.cost.flops_fraction = 0.15;
    if (along_channels && region.anchor_as<ConvBackwardFilter>() && split_count(geometry) > 1) {
      Config split = whole;
      split.knobs[2].second = split_count(geometry);
      split.scratch_bytes =
          region.precision() == f64
              ? DirectFilterChannelRows<double>::scratch_bytes(geometry, split_count(geometry))
              : DirectFilterChannelRows<float>::scratch_bytes(geometry, split_count(geometry));
      whole.cost.flops_fraction /= 2;
      configs.push_back(split);
    }
    configs.push_back(whole);
  }
};

}  // namespace

const Engine& conv_depthwise_engine() {
  static const ConvDepthwiseEngine engine;
  return engine;
}

}  // namespace ashlar::cpu

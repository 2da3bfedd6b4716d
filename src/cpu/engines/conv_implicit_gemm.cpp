// Implicit-GEMM convolution: patches are gathered while packing, without an im2col matrix.
#include "cpu/conv/conv_rows.hpp"
#include "cpu/engines/build.hpp"
#include "cpu/engines/engines.hpp"
#include "cpu/gemm/gemm_region.hpp"

namespace ashlar::cpu {

namespace {

// Whether pixels of y or dx are the rows of C: vectors run along C's columns, which should be
// contiguous and fill a vector.
bool pixels_are_rows(const PointwiseProgram& epilogue, std::int64_t result_channels) {
  constexpr std::int64_t kNarrow = 16;
  const int last = epilogue.space.rank() - 1;
  return contiguous_views(epilogue, 1) >= contiguous_views(epilogue, last) &&
         result_channels >= kNarrow;
}

GemmShape shape_of(const ConvGeometry& geometry, const ConvPhase& phase, const Region& region) {
  const auto taps = static_cast<std::int64_t>(phase.taps.size());
  GemmShape shape{.batch = geometry.groups};
  if (region.anchor_as<ConvBackwardFilter>()) {
    shape.m = geometry.filters;
    shape.n = taps * geometry.channels;
    shape.k = phase.pixels();
    return shape;
  }
  const bool forward = region.anchor_as<ConvForward>() != nullptr;
  const std::int64_t result_channels = forward ? geometry.filters : geometry.channels;
  shape.m = phase.pixels();
  shape.n = result_channels;
  shape.k = taps * (forward ? geometry.channels : geometry.filters);
  if (!pixels_are_rows(region.epilogue, result_channels)) std::swap(shape.m, shape.n);
  return shape;
}

std::vector<GemmShape> shapes_of(const Region& region) {
  const ConvGeometry geometry(*region.anchor);
  std::vector<GemmShape> shapes;
  for (const ConvPhase& phase : phases_of(geometry, region))
    shapes.push_back(shape_of(geometry, phase, region));
  return shapes;
}

template <class T>
PatchSource<T> gather(const PointwiseProgram& source, const Spatial& extents, std::int64_t channels,
                      std::int64_t scale) {
  return {source, extents, channels, scale, runs_along_channels(source, channels, scale)};
}

// Forward and backward-data: patches times filter.
template <class T>
class PixelConvKernel final : public Kernel {
 public:
  PixelConvKernel(const Region& region, const Config& config)
      : geometry_(*region.anchor),
        forward_(region.anchor_as<ConvForward>() != nullptr),
        result_channels_(forward_ ? geometry_.filters : geometry_.channels),
        pixels_are_rows_(pixels_are_rows(region.epilogue, result_channels_)),
        phases_(phases_of(geometry_, region)),
        shapes_(shapes_of(region)),
        blocks_(GemmBlocks::from_knobs(config)),
        kernel_(gemm_kernel<T>()),
        patches_(gather<T>(region.prologues[0], forward_ ? geometry_.x : geometry_.y,
                           forward_ ? geometry_.channels : geometry_.filters,
                           forward_ ? geometry_.stride[kMaxSpatial - 1] : 1)),
        filter_(region.prologues[1], forward_),
        store_(region.epilogue, z_of(region), geometry_,
               pixels_are_rows_ ? 1 : 1 + geometry_.spatial,
               pixels_are_rows_ || forward_ ? 1 : geometry_.stride[kMaxSpatial - 1]),
        scratch_(scratch_layout_.add("panels",
                                     gemm_scratch_bytes(covering(shapes_), blocks_, sizeof(T)))) {}

  void run(const KernelContext& context) const override {
    T* scratch = context.scratch<T>(scratch_layout_, scratch_);
    for (std::size_t i = 0; i < phases_.size(); ++i) {
      const PatchOperand<T> patches(patches_, geometry_, phases_[i], true, context);
      const FilterOperand<T> filter(filter_, geometry_, phases_[i], context);
      const PixelSink<T> sink(store_, geometry_, phases_[i], result_channels_, pixels_are_rows_,
                              context);
      if (pixels_are_rows_)
        gemm<T>(shapes_[i], blocks_, kernel_, patches, filter, sink, scratch);
      else
        gemm<T>(shapes_[i], blocks_, kernel_, filter, patches, sink, scratch);
    }
  }

 private:
  ConvGeometry geometry_;
  bool forward_;
  std::int64_t result_channels_;
  bool pixels_are_rows_;
  std::vector<ConvPhase> phases_;
  std::vector<GemmShape> shapes_;
  GemmBlocks blocks_;
  GemmKernel<T> kernel_;
  PatchSource<T> patches_;
  FilterSource<T> filter_;
  ConvStore<T> store_;
  int scratch_;
};

// Backward-filter: dy transposed times patches of x, summed over pixels.
template <class T>
class FilterConvKernel final : public Kernel {
 public:
  FilterConvKernel(const Region& region, const Config& config)
      : geometry_(*region.anchor),
        x_phase_(geometry_.forward_phase()),
        dy_phase_(geometry_.identity_phase()),
        shape_(shape_of(geometry_, x_phase_, region)),
        blocks_(GemmBlocks::from_knobs(config)),
        kernel_(gemm_kernel<T>()),
        x_(gather<T>(region.prologues[ConvBackwardFilter::x], geometry_.x, geometry_.channels,
                     geometry_.stride[kMaxSpatial - 1])),
        dy_(gather<T>(region.prologues[ConvBackwardFilter::dy], geometry_.y, geometry_.filters, 1)),
        store_(region.epilogue, z_of(region), geometry_, 1, 1),
        scratch_(scratch_layout_.add("panels", gemm_scratch_bytes(shape_, blocks_, sizeof(T)))) {}

  void run(const KernelContext& context) const override {
    const PatchOperand<T> dy(dy_, geometry_, dy_phase_, false, context);
    const PatchOperand<T> x(x_, geometry_, x_phase_, false, context);
    const FilterSink<T> sink(store_, geometry_, x_phase_, context);
    gemm<T>(shape_, blocks_, kernel_, dy, x, sink, context.scratch<T>(scratch_layout_, scratch_));
  }

 private:
  ConvGeometry geometry_;
  ConvPhase x_phase_, dy_phase_;
  GemmShape shape_;
  GemmBlocks blocks_;
  GemmKernel<T> kernel_;
  PatchSource<T> x_, dy_;
  ConvStore<T> store_;
  int scratch_;
};

class ConvImplicitGemmEngine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.conv_implicit_gemm"; }
  EngineKind kind() const override { return EngineKind::generic_fusion; }
  std::string_view description() const override {
    return "implicit-GEMM convolution that gathers its patches while packing";
  }

  bool stores_last(const Region& region) const override {
    return region.anchor_as<ConvBackwardFilter>() != nullptr;
  }
  Support supports(const Region& region, const DeviceProps&) const override {
    if (!is_convolution(region)) return Support::other_operation("the anchor is not a convolution");
    const int spatial = region.anchor->outputs[0].dims.rank() - 2;
    if (spatial < 1 || spatial > kMaxSpatial)
      return Support::no("{} spatial axes, 1 to 3 are supported", spatial);
    for (const View& view : region.anchor->inputs)
      if (view.ragged_offset != kNoTensor) return Support::no("a ragged operand");
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    const bool may_split = region.anchor_as<ConvBackwardFilter>() != nullptr;
    std::vector<Config> configs = gemm_region_configs(shapes_of(region), region, device, may_split);
    // Gathering patches costs about as much again as a matmul of these extents.
    for (Config& config : configs) config.cost.flops_fraction /= 2;
    return configs;
  }

  std::unique_ptr<Kernel> build(const Graph&, const Region& region, const Config& config,
                                const DeviceProps&) const override {
    if (region.anchor_as<ConvBackwardFilter>())
      return build_gemm_kernel<FilterConvKernel>(region, config);
    return build_gemm_kernel<PixelConvKernel>(region, config);
  }
};

}  // namespace

const Engine& conv_implicit_gemm_engine() {
  static const ConvImplicitGemmEngine engine;
  return engine;
}

}  // namespace ashlar::cpu

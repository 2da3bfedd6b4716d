// Indirect-GEMM convolution on tiles of pixels: filters packed in panels, pixels read in place;
// padding and layout changes are staged block by block.
#include "cpu/conv/conv_tile_gradient.hpp"
#include "cpu/conv/conv_tile_pixels.hpp"
#include "cpu/conv/conv_tile_planes.hpp"
#include "cpu/engines/build.hpp"
#include "cpu/engines/engines.hpp"

namespace ashlar::cpu {

namespace {

class ConvTilesEngine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.conv_tiles"; }
  EngineKind kind() const override { return EngineKind::generic_fusion; }
  std::string_view description() const override {
    return "indirect-GEMM convolution on tiles of pixels read in place, filter in panels";
  }

  bool stores_last(const Region& region) const override {
    return region.anchor_as<ConvBackwardFilter>() != nullptr;
  }
  Support supports(const Region& region, const DeviceProps&) const override {
    if (!is_convolution(region)) return Support::other_operation("the anchor is not a convolution");
    const int spatial = region.anchor->outputs[0].dims.rank() - 2;
    if (spatial < 1 || spatial > kMaxSpatial)
      return Support::no("{} spatial axes, 1 to 3 are supported", spatial);
    if (region.precision() != f32)
      return Support::no("compute precision {}, f32 is supported", to_string(region.precision()));
    if (touches_ragged(region)) return Support::no("a ragged tensor");
    const ConvGeometry geometry(*region.anchor);
    for (const std::int64_t extent : {geometry.images, geometry.channels, geometry.filters})
      if (extent == 0) return Support::no("an empty tensor");
    for (const Spatial& extents : {geometry.x, geometry.y, geometry.window})
      if (std::find(extents.begin(), extents.end(), 0) != extents.end())
        return Support::no("an empty tensor");
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    if (region.anchor_as<ConvBackwardFilter>()) {
      const TileGradientWork work(region, device);
      return {make_config({{"threads", work.threads}}, cost(work, region), work.scratch_bytes())};
    }
    if (TilePlanesWork::takes(region)) {
      const TilePlanesWork work(region, device);
      return {make_config({{"threads", work.threads}}, cost(work, region), work.scratch_bytes())};
    }
    const TilePixelsWork work(region, device);
    return {make_config({{"threads", work.threads}}, cost(work, region), work.scratch_bytes())};
  }

  std::unique_ptr<Kernel> build(const Graph&, const Region& region, const Config&,
                                const DeviceProps& device) const override {
    if (region.anchor_as<ConvBackwardFilter>())
      return std::make_unique<TileGradientKernel>(region, device);
    if (TilePlanesWork::takes(region)) return std::make_unique<TilePlanesKernel>(region, device);
    return std::make_unique<TilePixelsKernel>(region, device);
  }

 private:
  static Cost cost(const TileGradientWork& work, const Region& region) {
    // As below; a pixel is packed once for the filters, and staged for every panel of channels.
    constexpr double kFlopsPerPacked = 60;
    const auto real = [](std::int64_t n) { return static_cast<double>(n); };
    const ConvGeometry& geometry = work.geometry;
    const double pixels = real(work.phases[0].grid.pixels() * geometry.groups);
    Cost cost;
    cost.bytes = region.bytes();
    cost.flops = 2 * pixels * real(geometry.filters) * real(work.padded_columns());
    cost.flops += kFlopsPerPacked * pixels * real(geometry.filters + geometry.channels);
    cost.flops += kFlopsPerPacked * real(work.partial_elements());
    // Partial tiles if there are few filters; short pixel rows shorten the K loop.
    const double row = real(work.block().extent[2]) * (work.phases.size() > 1 ? 14.0 : 1.0);
    const double filters = std::min(real(geometry.filters) / kMaxTileRows, 1.0);
    cost.flops_fraction = 0.93 * row / (row + 2) * filters;
    return cost;
  }

  static Cost cost(const TilePlanesWork& work, const Region& region) {
    // As below; every source element is packed once per part of the filters.
    constexpr double kFlopsPerPacked = 30;
    const auto real = [](std::int64_t n) { return static_cast<double>(n); };
    const double pixels =
        real(work.geometry.groups * work.phase.images) * real(round_up(work.plane(), kLine));
    Cost cost;
    cost.bytes = region.bytes();
    cost.flops = region.epilogue.flops_per_element() *
                     static_cast<double>(element_count(region.epilogue.space)) +
                 2 * pixels * real(work.summed()) * real(round_up(work.results(), kMaxTileRows)) +
                 kFlopsPerPacked * pixels * real(work.summed() * work.filter_parts);
    cost.flops_fraction = 0.93;
    return cost;
  }

  static Cost cost(const TilePixelsWork& work, const Region& region) {
    // FMAs in whole vectors, plus packing of the filter and staging of pixels in equivalent flops.
    constexpr double kFlopsPerPacked = 30, kFlopsPerStaged = 30, kFlopsPerBuffered = 60;
    const auto real = [](std::int64_t n) { return static_cast<double>(n); };
    const std::int64_t results = work.filter_results();
    const std::int64_t wide = round_up(results, kLine);
    Cost cost;
    cost.bytes = region.bytes();
    cost.flops = region.epilogue.flops_per_element() *
                 static_cast<double>(element_count(region.epilogue.space));
    for (const TilePhase& phase : work.phases) {
      const double pixels = real(phase.grid.pixels() * work.geometry.groups);
      cost.flops += 2 * pixels * real(wide) * real(phase.k());
      if (!phase.in_place)
        cost.flops += kFlopsPerStaged *
                      real(phase.block_count() * work.geometry.groups * phase.staged_elements());
      if (!work.sink.is_direct()) cost.flops += kFlopsPerBuffered * pixels * real(wide);
    }
    cost.flops += kFlopsPerPacked * real(work.packed);
    // Fewer vectors per row of B mean more loads per FMA.
    cost.flops_fraction = results >= 3 * kPanelColumns / 4 ? 0.95
                          : results > kPanelColumns / 4    ? 0.75
                                                           : 0.3;
    return cost;
  }
};

}  // namespace

const Engine& conv_tiles_engine() {
  static const ConvTilesEngine engine;
  return engine;
}

}  // namespace ashlar::cpu

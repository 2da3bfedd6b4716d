// The scatter engine: chooses between rows of slices and lines along the axis.
#include "cpu/engines/scatter.hpp"

#include "cpu/engines/engines.hpp"
#include "plan/merge_axes.hpp"

namespace ashlar::cpu {

namespace {

// Whether rows of y are best read and written across the axis, so that whole rows share an index.
bool has_slices(const Region& region) {
  const ScatterShape shape(region);
  return shape.axes.slices && choose_row_axis(shape.y, {&region.epilogue}) != shape.axes.axis;
}

class ScatterEngine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.scatter"; }
  EngineKind kind() const override { return EngineKind::generic_fusion; }
  std::string_view description() const override {
    return "scatter by sorted slices, or by lines accumulated in scratch memory";
  }

  bool stores_last(const Region& region) const override {
    return region.anchor_as<Scatter>() != nullptr;
  }
  Support supports(const Region& region, const DeviceProps&) const override {
    if (!region.anchor_as<Scatter>())
      return Support::other_operation("the anchor is not a scatter");
    if (touches_ragged(region)) return Support::no("a tensor is ragged");
    if (!is_raw(region.prologues[Scatter::index])) return Support::no("the index is computed");
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    return {make_config({}, row_cost(region, 0.5),
                        kernel(region, device)->scratch_layout().total_bytes())};
  }

  std::unique_ptr<Kernel> build(const Graph&, const Region& region, const Config&,
                                const DeviceProps& device) const override {
    return kernel(region, device);
  }

 private:
  static std::unique_ptr<Kernel> kernel(const Region& region, const DeviceProps& device) {
    return has_slices(region) ? build_scatter_slices(region, device)
                              : build_scatter_lines(region, device);
  }
};

}  // namespace

const Engine& scatter_engine() {
  static const ScatterEngine engine;
  return engine;
}

}  // namespace ashlar::cpu

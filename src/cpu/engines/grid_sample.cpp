// Grid sampling. Two traversals: if channels are contiguous, a row of channels is a weighted sum of
// rows of x; else the taps of a chunk of positions are tabulated once and every channel gathers
// from its plane.
#include "cpu/engines/build.hpp"
#include "cpu/engines/engines.hpp"
#include "cpu/engines/grid_sampling.hpp"

namespace ashlar::cpu {

namespace {

template <class T>
class GridSampleForwardKernel final : public Kernel {
 public:
  explicit GridSampleForwardKernel(const Region& region)
      : sampler_(*region.anchor_as<GridSampleForward>(),
                 region.prologues[GridSampleForward::x].space),
        channels_(region.epilogue.space[1]),
        across_(samples_across_channels(region.prologues[GridSampleForward::x])),
        ops_(row_ops<T>()),
        gather_(gather_sum<T>()),
        grid_(region.prologues[GridSampleForward::grid], sampler_.spatial()),
        y_(region.epilogue, across_ ? 1 : sampler_.spatial() + 1) {
    const PointwiseProgram& x = region.prologues[GridSampleForward::x];
    if (across_)
      x_ = RowProgram<T>(x, 1);
    else
      planes_ = Planes<T>(x, scratch_layout_);
  }

  void run(const KernelContext& context) const override {
    if (element_count(grid_.loop().dims) == 0 || channels_ == 0) return;
    across_ ? run_across(context) : run_along(context);
  }

 private:
  std::int64_t grain() const {
    return items_per_thread(std::min(kGridChunk, grid_.loop().dims[grid_.loop().axis]) * channels_ *
                            sampler_.taps());
  }

  void run_across(const KernelContext& context) const {
    const auto x = x_.bind(context), y = y_.bind(context), grid = grid_.bind(context);
    parallel_for(grid_.loop().count(), grain(), [&](std::int64_t begin, std::int64_t end, int) {
      alignas(64) T sums[kChannelRow], buffer[kChannelRow];
      for (std::int64_t item = begin; item < end; ++item) {
        Coords at;
        const std::int64_t count = grid_.loop().locate(item, at);
        grid_.for_positions(grid, at, count, [&](std::int64_t p, const T* position) {
          const PointTaps<T> taps = sampler_.at(position);
          Coords here = at;
          here[static_cast<std::size_t>(grid_.loop().axis)] += p;
          for (std::int64_t c = 0; c < channels_; c += kChannelRow) {
            const std::int64_t width = std::min(kChannelRow, channels_ - c);
            std::fill(sums, sums + width, T{0});
            for (int k = 0; k < sampler_.taps(); ++k) {
              const T weight = taps.weight[static_cast<std::size_t>(k)];
              if (weight == T{0}) continue;
              Coords from = {at[0], c};
              for (int s = 0; s < sampler_.spatial(); ++s)
                from[static_cast<std::size_t>(s + 2)] = taps.coordinate(k, s);
              if (std::isnan(weight))
                std::fill(sums, sums + width, weight);
              else
                ops_.axpy(weight, x.view(from.data(), width, buffer), width, sums);
            }
            y.store(GridRows<T>::in_result(here, c).data(), width, sums);
          }
        });
      }
    });
  }

  void run_along(const KernelContext& context) const {
    const auto y = y_.bind(context), grid = grid_.bind(context);
    const T* x = planes_.prepare(context, scratch_layout_);
    parallel_for(grid_.loop().count(), grain(), [&](std::int64_t begin, std::int64_t end, int) {
      TapTable<T> table;
      alignas(64) T results[kGridChunk];
      for (std::int64_t item = begin; item < end; ++item) {
        Coords at;
        const std::int64_t count = grid_.loop().locate(item, at);
        grid_.for_positions(grid, at, count, [&](std::int64_t p, const T* position) {
          table.set(sampler_, p, sampler_.at(position), planes_.strides(), false);
        });
        for (std::int64_t c = 0; c < channels_; ++c) {
          gather_(planes_.plane(x, at[0], c), table.index, table.weight, sampler_.taps(),
                  kGridChunk, count, results);
          y.store(GridRows<T>::in_result(at, c).data(), count, results);
        }
      }
    });
  }

  GridSampler<T> sampler_;
  std::int64_t channels_;
  bool across_;
  const RowOps<T>& ops_;
  GatherSum<T> gather_;
  GridRows<T> grid_;
  RowProgram<T> x_, y_;
  Planes<T> planes_;
};

class GridSampleEngine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.grid_sample"; }
  EngineKind kind() const override { return EngineKind::generic_fusion; }
  std::string_view description() const override { return "grid sampling, forward and backward"; }

  Support supports(const Region& region, const DeviceProps&) const override {
    if (!region.anchor_as<GridSampleForward>() && !region.anchor_as<GridSampleBackward>())
      return Support::other_operation("the anchor is not grid sampling");
    if (touches_ragged(region)) return Support::no("a tensor is ragged");
    if (!Planes<float>::fits(region.prologues[0]))
      return Support::no("offsets in a plane of x exceed 32-bit gather indices");
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps&) const override {
    const bool across = samples_across_channels(region.prologues[0]);
    return {make_config({{"across", across ? 1 : 0}}, row_cost(region, across ? 0.3 : 0.15),
                        make(region)->scratch_layout().total_bytes())};
  }

  std::unique_ptr<Kernel> build(const Graph&, const Region& region, const Config&,
                                const DeviceProps&) const override {
    return make(region);
  }

 private:
  static std::unique_ptr<Kernel> make(const Region& region) {
    if (region.anchor_as<GridSampleForward>())
      return build_for_precision<GridSampleForwardKernel>(region);
    return build_grid_sample_backward(region);
  }
};

}  // namespace

const Engine& grid_sample_engine() {
  static const GridSampleEngine engine;
  return engine;
}

}  // namespace ashlar::cpu

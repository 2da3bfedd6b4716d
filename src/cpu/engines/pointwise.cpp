// Regions without an anchor: the whole region is one row program.
#include <algorithm>

#include "cpu/engines/build.hpp"
#include "cpu/engines/engines.hpp"
#include "cpu/store_to.hpp"
#include "cpu/threads.hpp"
#include "plan/merge_axes.hpp"

namespace ashlar::cpu {

namespace {

constexpr std::int64_t kChunkLength = 8192;  // elements of a row per task

template <class T>
class PointwiseKernel final : public Kernel {
 public:
  PointwiseKernel(const Region& region, StoreTo store_to) {
    PointwiseProgram program = region.epilogue;
    space_ = program.space;
    if (space_.empty()) return;
    merge_axes({&program}, {&space_});
    axis_ = choose_row_axis(space_, {&program});
    program_ = RowProgram<T>(program, axis_, nullptr, 1, store_to);
    const std::int64_t elements = element_count(space_);
    row_length_ = space_[axis_];
    chunks_per_row_ = (row_length_ + kChunkLength - 1) / kChunkLength;
    chunks_ = elements == 0 ? 0 : elements / row_length_ * chunks_per_row_;
    grain_ = items_per_thread(std::min(row_length_, kChunkLength), program.flops_per_element());
  }

  void run(const KernelContext& context) const override {
    if (chunks_ == 0) return;
    const auto bound = program_.bind(context);
    parallel_for(chunks_, grain_, [&](std::int64_t begin, std::int64_t end, int) {
      std::array<std::int64_t, kMaxRank> coords;
      for (std::int64_t chunk = begin; chunk < end; ++chunk) {
        std::int64_t row = chunk / chunks_per_row_;
        for (int axis = space_.rank() - 1; axis >= 0; --axis) {
          const auto a = static_cast<std::size_t>(axis);
          if (axis == axis_) continue;
          coords[a] = row % space_[axis];
          row /= space_[axis];
        }
        const std::int64_t first = chunk % chunks_per_row_ * kChunkLength;
        coords[static_cast<std::size_t>(axis_)] = first;
        bound.store(coords.data(), std::min(kChunkLength, row_length_ - first), nullptr);
      }
    });
  }

 private:
  RowProgram<T> program_;
  Dims space_;
  int axis_ = 0;
  std::int64_t row_length_ = 0, chunks_per_row_ = 0, chunks_ = 0, grain_ = 1;
};

bool is_ragged(const PointwiseProgram& program) {
  const auto ragged = [](const auto& item) { return item.view.ragged_offset != kNoTensor; };
  return std::any_of(program.steps.begin(), program.steps.end(), ragged) ||
         std::any_of(program.stores.begin(), program.stores.end(), ragged);
}

class PointwiseEngine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.pointwise"; }
  EngineKind kind() const override { return EngineKind::generic_fusion; }
  std::string_view description() const override {
    return "fused pointwise operations, run over rows in L1-sized tiles";
  }

  bool stores_last(const Region&) const override { return true; }
  Support supports(const Region& region, const DeviceProps&) const override {
    if (region.anchor) return Support::other_operation("the region has an anchor");
    if (is_ragged(region.epilogue))
      return Support::no("a ragged tensor: rows of different lengths");
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps&) const override {
    Config config;
    config.cost = row_cost(region, 0.7);
    return {config};
  }

  std::unique_ptr<Kernel> build(const Graph&, const Region& region, const Config&,
                                const DeviceProps& device) const override {
    return build_for_precision<PointwiseKernel>(region, store_to(region.epilogue, device));
  }
};

}  // namespace

const Engine& pointwise_engine() {
  static const PointwiseEngine engine;
  return engine;
}

}  // namespace ashlar::cpu

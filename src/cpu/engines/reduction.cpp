// Reductions over any axes: rows are folded as they are read, fixed chunks combined in a fixed
// order.
#include <cmath>

#include "cpu/engines/build.hpp"
#include "cpu/engines/engines.hpp"
#include "cpu/engines/reduction_shape.hpp"
#include "cpu/threads.hpp"

namespace ashlar::cpu {

namespace {

struct Folding {
  Fold fold;
  Premap premap;
};

Folding folding_of(ReductionMode mode) {
  switch (mode) {
    case ReductionMode::add:
    case ReductionMode::avg: return {Fold::sum, Premap::identity};
    case ReductionMode::mul: return {Fold::product, Premap::identity};
    case ReductionMode::min: return {Fold::minimum, Premap::identity};
    case ReductionMode::max: return {Fold::maximum, Premap::identity};
    case ReductionMode::amax: return {Fold::maximum, Premap::absolute};
    case ReductionMode::norm1: return {Fold::sum, Premap::absolute};
    case ReductionMode::norm2: return {Fold::sum, Premap::square};
    case ReductionMode::mul_no_zeros: return {Fold::product, Premap::one_for_zero};
  }
  return {Fold::sum, Premap::identity};
}

template <class T>
class ReductionKernel final : public Kernel {
 public:
  ReductionKernel(const Region& region, bool split)
      : ReductionKernel(*region.anchor_as<Reduction>(), region.anchor->compute,
                        ReductionShape(region), split) {}

  void run(const KernelContext& context) const override {
    const auto x = x_.bind(context);
    const auto y = y_.bind(context);
    if (splits_ == 1) {
      parallel_for(space_.items(), grain_, [&](std::int64_t begin, std::int64_t end, int) {
        alignas(64) T totals[kStripeLength];
        for (std::int64_t item = begin; item < end; ++item) {
          fold(x, item, 0, totals);
          finish(y, item, totals);
        }
      });
      return;
    }
    T* partial = context.scratch<T>(scratch_layout_, partial_);
    const std::int64_t width = space_.max_width();
    parallel_for(space_.items() * splits_, 1, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t chunk = begin; chunk < end; ++chunk)
        fold(x, chunk / splits_, chunk % splits_, partial + chunk * width);
    });
    for (std::int64_t item = 0; item < space_.items(); ++item) {
      T* totals = partial + item * splits_ * width;
      Coords origin;
      const std::int64_t boxes = space_.origin(item, origin);
      for (std::int64_t i = 0; i < boxes; ++i) {
        double total = neutral(folding_.fold);
        for (std::int64_t split = 0; split < splits_; ++split)
          total = combine(folding_.fold, total, static_cast<double>(totals[split * width + i]));
        totals[i] = static_cast<T>(total);
      }
      finish(y, item, totals);
    }
  }

 private:
  ReductionKernel(const Reduction& op, DType compute, const ReductionShape& shape, bool split)
      : mode_(op.mode),
        truncate_(!is_floating(compute)),
        folding_(folding_of(op.mode)),
        ops_(row_ops<T>()),
        space_(shape.space, shape.boxes, shape.axis),
        splits_(split ? space_.splits() : 1),
        grain_(items_per_thread(space_.rows() * kRowLength)),
        x_(shape.x, shape.axis),
        y_(shape.epilogue, shape.space, shape.axis) {
    if (splits_ > 1)
      partial_ = scratch_layout_.add("partial", space_.items() * splits_ * space_.max_width() *
                                                    static_cast<std::int64_t>(sizeof(T)));
  }

  void fold(const typename RowProgram<T>::Bound& x, std::int64_t item, std::int64_t split,
            T* totals) const {
    alignas(64) T row[kRowLength];
    fold_boxes<T, 1>(
        ops_, space_, item, split, splits_, folding_.fold,
        [&](const Coords& coords, std::int64_t count, T(&values)[1]) {
          x.load(coords.data(), count, row);
          values[0] = ops_.fold(folding_.fold, folding_.premap, row, count);
        },
        [&](const Coords& coords, std::int64_t count, T*(&accumulators)[1]) {
          x.load(coords.data(), count, row);
          ops_.fold_into(folding_.fold, folding_.premap, row, count, accumulators[0]);
        },
        totals, 0);
  }

  void finish(const typename Operand<T>::Bound& y, std::int64_t item, T* totals) const {
    Coords coords;
    const std::int64_t width = space_.origin(item, coords);
    const auto count = static_cast<T>(space_.box_size());
    for (std::int64_t i = 0; i < width; ++i) {
      if (mode_ == ReductionMode::norm2) totals[i] = std::sqrt(totals[i]);
      if (mode_ == ReductionMode::amax && space_.rows() == 0) totals[i] = 0;
      if (mode_ == ReductionMode::avg)
        totals[i] = truncate_ && count == 0 ? T{0} : totals[i] / count;
      if (mode_ == ReductionMode::avg && truncate_) totals[i] = std::trunc(totals[i]);
    }
    y.store(coords, width, totals);
  }

  ReductionMode mode_;
  bool truncate_;  // integer averages
  Folding folding_;
  const RowOps<T>& ops_;
  BoxSpace space_;
  std::int64_t splits_, grain_;
  int partial_ = -1;
  RowProgram<T> x_;
  Operand<T> y_;
};

std::unique_ptr<Kernel> build_reduction(const Region& region, bool split) {
  const std::vector<View>& outputs = region.anchor->outputs;
  if (outputs.size() > Reduction::index && outputs[Reduction::index].present())
    return build_reduction_with_index(region, split);
  return build_for_precision<ReductionKernel>(region, split);
}

class ReductionEngine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.reduction"; }
  EngineKind kind() const override { return EngineKind::generic_fusion; }
  std::string_view description() const override {
    return "reductions over any axes, with fused prologue and epilogue";
  }

  Support supports(const Region& region, const DeviceProps&) const override {
    if (!region.anchor_as<Reduction>())
      return Support::other_operation("the anchor is not a reduction");
    if (touches_ragged(region)) return Support::no("a tensor is ragged");
    if (region.prologues[Reduction::x].space.empty()) return Support::no("the tensor has no axes");
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps&) const override {
    const ReductionShape shape(region);
    const BoxSpace space(shape.space, shape.boxes, shape.axis);
    Config whole = make_config({{"splits", 1}}, row_cost(region, 0.5));
    if (space.splits() == 1) return {whole};
    whole.cost = row_cost(region, 0.2);
    const std::int64_t scratch = build_reduction(region, true)->scratch_layout().total_bytes();
    return {make_config({{"splits", space.splits()}}, row_cost(region, 0.5), scratch), whole};
  }

  std::unique_ptr<Kernel> build(const Graph&, const Region& region, const Config& config,
                                const DeviceProps&) const override {
    return build_reduction(region, config.knob("splits") > 1);
  }
};

}  // namespace

const Engine& reduction_engine() {
  static const ReductionEngine engine;
  return engine;
}

}  // namespace ashlar::cpu

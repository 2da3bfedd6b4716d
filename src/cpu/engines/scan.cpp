// Scans along any axis: sums, products, minima and maxima. A line is scanned in blocks whose folds
// are combined in double.
#include "cpu/engines/scan_shape.hpp"

#include "cpu/engines/build.hpp"
#include "cpu/engines/engines.hpp"
#include "cpu/engines/scan_chunks.hpp"
#include "cpu/kernels/scan_rows.hpp"
#include "cpu/store_to.hpp"

namespace ashlar::cpu {

namespace {

Fold fold_of(ScanMode mode) {
  switch (mode) {
    case ScanMode::mul: return Fold::product;
    case ScanMode::min: return Fold::minimum;
    case ScanMode::max: return Fold::maximum;
    case ScanMode::add:
    case ScanMode::logsumexp: break;
  }
  return Fold::sum;
}

template <class T>
class ScanKernel final : public Kernel {
 public:
  ScanKernel(const Region& region, StoreTo store_to)
      : op_(*region.anchor_as<Scan>()),
        fold_(fold_of(op_.mode)),
        shape_(region),
        rows_(scan_rows<T>()),
        ops_(row_ops<T>()),
        x_(shape_.x, shape_.row_axis),
        y_(shape_.y, shape_.row_axis, nullptr, 1, store_to),
        chunks_(shape_, op_.mode, scratch_layout_) {}

  void run(const KernelContext& context) const override {
    const auto x = x_.bind(context), y = y_.bind(context);
    chunks_.run(context, scratch_layout_, false,
                [&](Coords coords, std::int64_t width, std::int64_t begin, std::int64_t end,
                    const ScanState& carry, const ScanState& total, bool store) {
                  if (shape_.along())
                    along(x, y, coords, begin, end, *carry.fold, *total.fold, store);
                  else
                    across(x, y, coords, width, begin, end, carry.fold, total.fold, store);
                });
  }

 private:
  using Bound = typename RowProgram<T>::Bound;

  // Elements [begin, end) of a line, counted from where the scan starts. `total` becomes their
  // fold, the same whatever `carry` is.
  void along(const Bound& x, const Bound& y, Coords coords, std::int64_t begin, std::int64_t end,
             double carry, double& total, bool store) const {
    alignas(64) T buffer[kScanRow], results[kScanRow];
    const auto axis = static_cast<std::size_t>(shape_.axis);
    for (std::int64_t at = begin; at < end; at += kScanRow) {
      const std::int64_t count = std::min(kScanRow, end - at);
      coords[axis] = op_.reverse ? shape_.length - at - count : at;
      const T* row = x.view(coords.data(), count, buffer);
      const auto place = store ? y.place(coords.data()) : typename Bound::Place{};
      const bool direct = place.memory != nullptr && !place.stream;
      T* target = direct ? place.memory : results;
      const T start = static_cast<T>(combine(fold_, carry, total));
      total = combine(fold_, total, static_cast<double>(scan_block(row, start, count, target)));
      if (store && !direct) y.store(coords.data(), count, results);
    }
  }

  // An exclusive scan is the inclusive one, one element later.
  T scan_block(const T* row, T start, std::int64_t count, T* target) const {
    if (!op_.exclusive) return rows_.along(fold_, op_.reverse, row, start, count, target);
    const std::int64_t last = op_.reverse ? 0 : count - 1;
    T rest = rows_.along(fold_, op_.reverse, row + (op_.reverse ? 1 : 0), start, count - 1,
                         target + (op_.reverse ? 0 : 1));
    target[op_.reverse ? count - 1 : 0] = start;
    ops_.fold_into(fold_, Premap::identity, row + last, 1, &rest);
    return rest;
  }

  // Folds in T over kFlushRows rows, in double beyond.
  void across(const Bound& x, const Bound& y, Coords coords, std::int64_t width, std::int64_t begin,
              std::int64_t end, const double* carry, double* total, bool store) const {
    alignas(64) T buffer[kScanStripe], results[kScanStripe], base[kScanStripe], folds[kScanStripe];
    const T first = static_cast<T>(neutral(fold_));
    for (std::int64_t block = begin; block < end; block += kFlushRows) {
      for (std::int64_t i = 0; i < width; ++i)
        base[i] = static_cast<T>(combine(fold_, carry[i], total[i]));
      std::fill(folds, folds + width, first);
      for (std::int64_t at = block; at < std::min(end, block + kFlushRows); ++at) {
        if (shape_.axis >= 0)
          coords[static_cast<std::size_t>(shape_.axis)] = op_.reverse ? shape_.length - 1 - at : at;
        const T* row = x.view(coords.data(), width, buffer);
        const auto place = store ? y.place(coords.data()) : typename Bound::Place{};
        const bool direct = place.memory != nullptr && !place.stream;
        rows_.across(fold_, op_.exclusive, row, base, width, folds,
                     direct ? place.memory : results);
        if (store && !direct) y.store(coords.data(), width, results);
      }
      for (std::int64_t i = 0; i < width; ++i)
        total[i] = combine(fold_, total[i], static_cast<double>(folds[i]));
    }
  }

  Scan op_;
  Fold fold_;
  ScanShape shape_;
  const ScanRows<T>& rows_;
  const RowOps<T>& ops_;
  RowProgram<T> x_, y_;
  ScanChunks chunks_;
};

class ScanEngine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.scan"; }
  EngineKind kind() const override { return EngineKind::generic_fusion; }
  std::string_view description() const override {
    return "cumulative sums, products, minima, maxima and logarithms of sums of exponentials";
  }

  Support supports(const Region& region, const DeviceProps&) const override {
    if (!region.anchor_as<Scan>()) return Support::other_operation("the anchor is not a scan");
    if (touches_ragged(region)) return Support::no("a tensor is ragged");
    if (region.prologues[Scan::x].space.empty()) return Support::no("the tensor has no axes");
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps& device) const override {
    const ScanShape shape(region);
    const std::int64_t scratch = build_kernel(region, device)->scratch_layout().total_bytes();
    return {make_config({{"chunks", shape.chunks}}, row_cost(region, 0.5), scratch)};
  }

  std::unique_ptr<Kernel> build(const Graph&, const Region& region, const Config&,
                                const DeviceProps& device) const override {
    return build_kernel(region, device);
  }

 private:
  static std::unique_ptr<Kernel> build_kernel(const Region& region, const DeviceProps& device) {
    if (region.anchor_as<Scan>()->mode == ScanMode::logsumexp)
      return build_log_sum_exp_scan(region);
    return build_for_precision<ScanKernel>(region, store_to(region.epilogue, device));
  }
};

}  // namespace

const Engine& scan_engine() {
  static const ScanEngine engine;
  return engine;
}

}  // namespace ashlar::cpu

// Softmax and log-softmax along any axis, forward and backward: one thread per line of elements.
#include <cmath>

#include "cpu/box_space.hpp"
#include "cpu/engines/build.hpp"
#include "cpu/engines/engines.hpp"
#include "cpu/kernels/norm_rows.hpp"
#include "cpu/kernels/stream.hpp"
#include "cpu/store_to.hpp"
#include "cpu/threads.hpp"
#include "plan/merge_axes.hpp"

namespace ashlar::cpu {

namespace {

constexpr std::int64_t kSoftmaxPrefetchBytes = 1024;  // bytes that fit the line-fill buffers
constexpr double kFlops = 10;                         // per element, mostly the exponential

// Operands with axes merged: x, y and stats, or y, dy and dx.
struct SoftmaxShape {
  PointwiseProgram first, second, result, stats;
  Dims space, lines;
  int axis;

  explicit SoftmaxShape(const Region& region)
      : first(region.prologues[0]),
        second(input_program(region, 1)),
        result(region.epilogue),
        space(first.space) {
    const auto* forward = region.anchor_as<SoftmaxForward>();
    if (forward) stats = output_program(region.anchor->outputs, SoftmaxForward::stats);
    const std::int64_t softmax_axis =
        forward ? forward->axis : region.anchor_as<SoftmaxBackward>()->axis;
    lines = space;
    lines[static_cast<int>(softmax_axis)] = 1;
    merge_axes({&first, &second, &result, &stats}, {&space, &lines});
    axis = choose_row_axis(space, {&first, &result});
  }
};

template <class T>
class SoftmaxKernel : public Kernel {
 protected:
  SoftmaxKernel(const SoftmaxShape& shape, bool log, StoreTo store_to)
      : ops_(row_ops<T>()),
        rows_(norm_rows<T>()),
        space_(shape.space, shape.lines, shape.axis, kLongRow),
        grain_(items_per_thread(space_.box_size() * space_.max_width(), kFlops)),
        log_(log),
        first_(shape.first, shape.axis),
        result_(shape.result, shape.space, shape.axis, store_to) {}

  const RowOps<T>& ops_;
  const NormRows<T>& rows_;
  BoxSpace space_;
  std::int64_t grain_;
  bool log_;
  RowProgram<T> first_;
  Operand<T> result_;
};

template <class T>
class SoftmaxForwardKernel final : public SoftmaxKernel<T> {
 public:
  SoftmaxForwardKernel(const Region& region, StoreTo store_to)
      : SoftmaxForwardKernel(*region.anchor_as<SoftmaxForward>(), SoftmaxShape(region), store_to) {}

  void run(const KernelContext& context) const override {
    const Bound bound{this->first_.bind(context), this->result_.bind(context),
                      stats_.bind(context)};
    parallel_for(this->space_.items(), this->grain_,
                 [&](std::int64_t begin, std::int64_t end, int) {
                   for (std::int64_t item = begin; item < end; ++item)
                     this->space_.rows() == 1 && !this->space_.columns() ? one_row(bound, item)
                                                                         : many_rows(bound, item);
                 });
  }

 private:
  struct Bound {
    typename RowProgram<T>::Bound x;
    typename Operand<T>::Bound y, stats;
  };

  SoftmaxForwardKernel(const SoftmaxForward& op, const SoftmaxShape& shape, StoreTo store_to)
      : SoftmaxKernel<T>(shape, op.log, store_to), stats_(shape.stats, shape.space, shape.axis) {}

  void one_row(const Bound& bound, std::int64_t item) const {
    const RowOps<T>& ops = this->ops_;
    this->space_.for_rows(item, 0, 1, [&](const Coords& coords, std::int64_t count) {
      alignas(64) T buffer[kLongRow], weights[kLongRow];
      const T* row = bound.x.view(coords.data(), count, buffer);
      // Rows are mostly contiguous: prefetches the next one.
      const T* prefetch = row == buffer ? nullptr : row + count;
      if (prefetch != nullptr) prefetch_to_l1(prefetch, kSoftmaxPrefetchBytes);
      const T largest = ops.fold(Fold::maximum, Premap::identity, row, count);
      if (prefetch != nullptr)
        prefetch_to_l1(prefetch + kSoftmaxPrefetchBytes / sizeof(T), kSoftmaxPrefetchBytes);
      const T sum = ops.exp_shifted(row, {&largest, false}, count, weights);
      const T log_sum = std::log(sum), factor = 1 / sum, stats = largest + log_sum;
      bound.stats.store(coords, 1, &stats);
      emit(bound, coords, count, row, weights, {&largest, false}, {&log_sum, false},
           {&factor, false}, prefetch);
    });
  }

  void many_rows(const Bound& bound, std::int64_t item) const {
    const RowOps<T>& ops = this->ops_;
    const BoxSpace& space = this->space_;
    const bool columns = space.columns();
    alignas(64) T largest[kStripeLength], sums[kStripeLength], logs[kStripeLength];
    alignas(64) T buffer[kLongRow], weights[kLongRow];
    fold_boxes<T, 1>(
        ops, space, item, 0, 1, Fold::maximum,
        [&](const Coords& coords, std::int64_t count, T(&values)[1]) {
          const T* row = bound.x.view(coords.data(), count, buffer);
          values[0] = ops.fold(Fold::maximum, Premap::identity, row, count);
        },
        [&](const Coords& coords, std::int64_t count, T*(&accumulators)[1]) {
          const T* row = bound.x.view(coords.data(), count, buffer);
          ops.fold_into(Fold::maximum, Premap::identity, row, count, accumulators[0]);
        },
        largest, 0);
    fold_boxes<T, 1>(
        ops, space, item, 0, 1, Fold::sum,
        [&](const Coords& coords, std::int64_t count, T(&values)[1]) {
          const T* row = bound.x.view(coords.data(), count, buffer);
          values[0] = ops.exp_shifted(row, {largest, false}, count, weights);
        },
        [&](const Coords& coords, std::int64_t count, T*(&accumulators)[1]) {
          const T* row = bound.x.view(coords.data(), count, buffer);
          ops.exp_shifted(row, {largest, true}, count, weights);
          ops.fold_into(Fold::sum, Premap::identity, weights, count, accumulators[0]);
        },
        sums, 0);
    Coords origin;
    const std::int64_t width = space.origin(item, origin);
    alignas(64) T stats[kStripeLength];
    for (std::int64_t i = 0; i < width; ++i) {
      logs[i] = std::log(sums[i]);
      stats[i] = largest[i] + logs[i];
      sums[i] = 1 / sums[i];
    }
    bound.stats.store(origin, width, stats);
    space.for_rows(item, 0, 1, [&](const Coords& coords, std::int64_t count) {
      const T* row = bound.x.view(coords.data(), count, buffer);
      if (!this->log_) ops.exp_shifted(row, {largest, columns}, count, weights);
      emit(bound, coords, count, row, weights, {largest, columns}, {logs, columns}, {sums, columns},
           nullptr);
    });
  }

  void emit(const Bound& bound, const Coords& coords, std::int64_t count, const T* row, T* weights,
            RowArg<T> largest, RowArg<T> log_sum, RowArg<T> factor, const void* prefetch) const {
    const auto place = bound.y.place(coords);
    T* y = place.memory != nullptr ? place.memory : weights;
    const RowHints hints{prefetch, place.stream};
    // Two subtractions: largest + log_sum would lose the logarithm's digits for a large maximum.
    if (this->log_)
      this->rows_.subtract(row, largest, log_sum, count, y, hints);
    else
      this->rows_.scale(weights, factor, count, y, hints);
    if (place.memory == nullptr) bound.y.store(coords, count, weights);
  }

  Operand<T> stats_;
};

template <class T>
class SoftmaxBackwardKernel final : public SoftmaxKernel<T> {
 public:
  SoftmaxBackwardKernel(const Region& region, StoreTo store_to)
      : SoftmaxBackwardKernel(*region.anchor_as<SoftmaxBackward>(), SoftmaxShape(region),
                              store_to) {}

  void run(const KernelContext& context) const override {
    static constexpr T kZero = 0, kOne = 1;
    const RowOps<T>& ops = this->ops_;
    const BoxSpace& space = this->space_;
    const auto y = this->first_.bind(context), dy = dy_.bind(context);
    const auto dx = this->result_.bind(context);
    parallel_for(space.items(), this->grain_, [&](std::int64_t begin, std::int64_t end, int) {
      alignas(64) T y_buffer[kLongRow], dy_buffer[kLongRow], sums[kStripeLength];
      for (std::int64_t item = begin; item < end; ++item) {
        fold_boxes<T, 1>(
            ops, space, item, 0, 1, Fold::sum,
            [&](const Coords& coords, std::int64_t count, T(&values)[1]) {
              const T* dy_row = dy.view(coords.data(), count, dy_buffer);
              values[0] = this->log_
                              ? ops.fold(Fold::sum, Premap::identity, dy_row, count)
                              : ops.dot(dy_row, y.view(coords.data(), count, y_buffer), count);
            },
            [&](const Coords& coords, std::int64_t count, T*(&accumulators)[1]) {
              const T* dy_row = dy.view(coords.data(), count, dy_buffer);
              if (this->log_)
                return ops.fold_into(Fold::sum, Premap::identity, dy_row, count, accumulators[0]);
              ops.dot_into(dy_row, y.view(coords.data(), count, y_buffer), count, accumulators[0]);
            },
            sums, 0);
        const RowArg<T> sum{sums, space.columns()};
        space.for_rows(item, 0, 1, [&](const Coords& coords, std::int64_t count) {
          const T* dy_row = dy.view(coords.data(), count, dy_buffer);
          const T* y_row = y.view(coords.data(), count, y_buffer);
          const auto place = dx.place(coords);
          T* target = place.memory != nullptr ? place.memory : dy_buffer;
          const RowHints hints{nullptr, place.stream};
          if (this->log_) {  // dy - exp(y) * sum
            ops.exp_shifted(y_row, {&kZero, false}, count, y_buffer);
            this->rows_.gradient(dy_row, y_buffer, {&kZero, false}, sum, {&kOne, false}, count,
                                 target, hints);
          } else {  // (dy - sum) * y
            this->rows_.gradient(dy_row, y_row, sum, {&kZero, false}, {y_row, true}, count, target,
                                 hints);
          }
          if (place.memory == nullptr) dx.store(coords, count, dy_buffer);
        });
      }
    });
  }

 private:
  SoftmaxBackwardKernel(const SoftmaxBackward& op, const SoftmaxShape& shape, StoreTo store_to)
      : SoftmaxKernel<T>(shape, op.log, store_to), dy_(shape.second, shape.axis) {}

  RowProgram<T> dy_;
};

class SoftmaxEngine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.softmax"; }
  EngineKind kind() const override { return EngineKind::generic_fusion; }
  std::string_view description() const override {
    return "softmax and log-softmax, forward and backward";
  }

  Support supports(const Region& region, const DeviceProps&) const override {
    if (!region.anchor_as<SoftmaxForward>() && !region.anchor_as<SoftmaxBackward>())
      return Support::other_operation("the anchor is not a softmax");
    if (touches_ragged(region)) return Support::no("a tensor is ragged");
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps&) const override {
    return {make_config({}, row_cost(region, 0.4))};
  }

  std::unique_ptr<Kernel> build(const Graph&, const Region& region, const Config&,
                                const DeviceProps& device) const override {
    const StoreTo results = store_to(region.epilogue, device);
    if (region.anchor_as<SoftmaxForward>())
      return build_for_precision<SoftmaxForwardKernel>(region, results);
    return build_for_precision<SoftmaxBackwardKernel>(region, results);
  }
};

}  // namespace

const Engine& softmax_engine() {
  static const SoftmaxEngine engine;
  return engine;
}

}  // namespace ashlar::cpu

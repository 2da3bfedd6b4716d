// Cross-entropy over the last axis, forward and backward, each in one pass over the logits: one
// thread per row, with a running maximum and sum (online softmax). Probabilities are not stored.
#include <atomic>
#include <cmath>
#include <limits>

#include "base/checked.hpp"
#include "cpu/engines/build.hpp"
#include "cpu/engines/engines.hpp"
#include "cpu/integer_operand.hpp"
#include "cpu/kernels/vocabulary.hpp"
#include "cpu/store_to.hpp"
#include "cpu/threads.hpp"

namespace ashlar::cpu {

namespace {

constexpr double kLossFlops = 10;           // per class, mostly the exponential
constexpr std::int64_t kClassBlock = 2048;  // classes processed at once: they stay in L1
// The subtracted value may lag behind the maximum by this: the exponentials cannot overflow, and
// few blocks are computed twice.
constexpr int kLargestExponent = 16;

// The rows of x and what forward and backward read of them.
template <class Op, class T>
class CrossEntropyKernel : public Kernel {
 protected:
  explicit CrossEntropyKernel(const Region& region)
      : op_(*region.anchor_as<Op>()),
        ops_(row_ops<T>()),
        vocabulary_(vocabulary_rows<T>()),
        lines_(region.prologues[Op::x].space),
        axis_(lines_.rank() - 1),
        classes_(lines_[axis_]),
        x_(region.prologues[Op::x], axis_),
        target_(region.prologues[Op::target]) {
    lines_[axis_] = 1;
    rows_ = element_count(lines_);
    grain_ = items_per_thread(classes_, kLossFlops);
  }

  Coords coords_of(std::int64_t row) const {
    Coords coords{};
    for (int axis = axis_ - 1; axis >= 0; --axis) {
      coords[static_cast<std::size_t>(axis)] = row % lines_[axis];
      row /= lines_[axis];
    }
    return coords;
  }
  bool is_class(std::int64_t target) const { return target >= 0 && target < classes_; }

  // Calls body(coords, begin, count) for the blocks of classes of a row.
  template <class Body>
  void for_blocks(Coords coords, Body&& body) const {
    for (std::int64_t begin = 0; begin < classes_; begin += kClassBlock) {
      coords[static_cast<std::size_t>(axis_)] = begin;
      body(coords, begin, std::min(kClassBlock, classes_ - begin));
    }
  }

  Op op_;
  const RowOps<T>& ops_;
  const VocabularyRows<T>& vocabulary_;
  Dims lines_;
  int axis_;
  std::int64_t classes_, rows_ = 0, grain_ = 0;
  RowProgram<T> x_;
  IntegerOperand target_;
};

template <class T>
class CrossEntropyForwardKernel final : public CrossEntropyKernel<CrossEntropyForward, T> {
  using Op = CrossEntropyForward;
  using Base = CrossEntropyKernel<Op, T>;

 public:
  explicit CrossEntropyForwardKernel(const Region& region)
      : Base(region),
        loss_(region.epilogue, this->axis_),
        stats_(output_program(region.anchor->outputs, Op::stats), this->lines_, this->axis_) {
    if (this->op_.mean)
      losses_ = this->scratch_layout_.add(
          "losses of rows", checked_mul(this->rows_, static_cast<std::int64_t>(sizeof(double))));
  }

  void run(const KernelContext& context) const override {
    const Run run{*this, context, this->x_.bind(context), loss_.bind(context),
                  stats_.bind(context)};
    if (!this->op_.mean)
      return parallel_for(
          this->rows_, this->grain_, [&](std::int64_t begin, std::int64_t end, int) {
            for (std::int64_t row = begin; row < end; ++row) {
              const Coords coords = this->coords_of(row);
              const T loss = run.loss_of(coords, this->target_.load(context, coords, 0));
              run.loss.store(coords.data(), 1, &loss);
            }
          });
    double* losses = context.scratch<double>(this->scratch_layout_, losses_);
    std::atomic<std::int64_t> counted = 0;
    parallel_for(this->rows_, this->grain_, [&](std::int64_t begin, std::int64_t end, int) {
      std::int64_t count = 0;
      for (std::int64_t row = begin; row < end; ++row) {
        const Coords coords = this->coords_of(row);
        const std::int64_t target = this->target_.load(context, coords, 0);
        losses[row] = static_cast<double>(run.loss_of(coords, target));
        if (target != this->op_.ignore_index) ++count;
      }
      counted += count;
    });
    // In the order of the rows, so that the mean does not depend on the thread count.
    double sum = 0;
    for (std::int64_t row = 0; row < this->rows_; ++row) sum += losses[row];
    const T mean = static_cast<T>(sum / static_cast<double>(counted.load()));
    run.loss.store(Coords{}.data(), 1, &mean);
  }

 private:
  struct Run {
    const CrossEntropyForwardKernel& kernel;
    const KernelContext& context;
    typename RowProgram<T>::Bound x, loss;
    typename Operand<T>::Bound stats;

    // Stores stats; returns the loss.
    T loss_of(const Coords& coords, std::int64_t target) const {
      const bool ignored = target == kernel.op_.ignore_index;
      if (ignored && !stats.present()) return 0;
      const bool smooths = kernel.op_.label_smoothing != 0.0;
      T largest = -kInfinity, shift = -kInfinity, wanted = kNaN;
      double sum = 0, logits = 0;
      kernel.for_blocks(coords, [&](const Coords& at, std::int64_t begin, std::int64_t count) {
        alignas(64) T buffer[kClassBlock];
        const T* row = x.view(at.data(), count, buffer);
        const T* next = row == buffer || begin + count == kernel.classes_ ? nullptr : row + count;
        if (target >= begin && target < begin + count) wanted = row[target - begin];
        if (smooths)
          logits += static_cast<double>(kernel.ops_.fold(Fold::sum, Premap::identity, row, count));
        ExpSum<T> block = kernel.vocabulary_.exp_sum(row, shift, count, next);
        if (!(block.largest <= largest) && !std::isnan(largest)) largest = block.largest;
        if (!(largest - shift <= kLargestExponent) && largest > shift) {
          sum *= std::exp(static_cast<double>(shift) - static_cast<double>(largest));
          shift = largest;
          block = kernel.vocabulary_.exp_sum(row, shift, count, nullptr);
        }
        if (shift > -kInfinity) sum += static_cast<double>(block.sum);
      });
      const bool defined = std::isfinite(largest);
      const T log_sum = defined ? static_cast<T>(std::log(sum) + (static_cast<double>(shift) -
                                                                  static_cast<double>(largest)))
                                : kNaN;
      const T value = largest + log_sum;
      stats.store(coords, 1, &value);
      if (ignored) return 0;
      if (!kernel.is_class(target)) return kNaN;
      const T own = log_sum - (wanted - largest);
      if (!smooths) return own;
      const auto smoothing = static_cast<T>(kernel.op_.label_smoothing);
      const auto mean = static_cast<T>(logits / static_cast<double>(kernel.classes_));
      return (1 - smoothing) * own + smoothing * (log_sum - (mean - largest));
    }
  };

  static constexpr T kNaN = std::numeric_limits<T>::quiet_NaN();
  static constexpr T kInfinity = std::numeric_limits<T>::infinity();
  RowProgram<T> loss_;
  Operand<T> stats_;
  int losses_ = 0;
};

template <class T>
class CrossEntropyBackwardKernel final : public CrossEntropyKernel<CrossEntropyBackward, T> {
  using Op = CrossEntropyBackward;
  using Base = CrossEntropyKernel<Op, T>;

 public:
  CrossEntropyBackwardKernel(const Region& region, StoreTo store_to)
      : Base(region),
        stats_(region.prologues[Op::stats], this->axis_),
        dloss_(region.prologues[Op::dloss], this->axis_),
        dx_(region.epilogue, this->axis_, nullptr, 1, store_to) {}

  void run(const KernelContext& context) const override {
    double rows = 1;
    if (this->op_.mean) rows = static_cast<double>(counted_rows(context));
    const auto x = this->x_.bind(context), stats = stats_.bind(context),
               dloss = dloss_.bind(context), dx = dx_.bind(context);
    parallel_for(this->rows_, this->grain_, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t row = begin; row < end; ++row) {
        const Coords coords = this->coords_of(row);
        const std::int64_t target = this->target_.load(context, coords, 0);
        if (target == this->op_.ignore_index) {
          fill(dx, coords, 0);
        } else if (!this->is_class(target)) {
          fill(dx, coords, std::numeric_limits<T>::quiet_NaN());
        } else {
          T log_sum, factor;
          stats.load(coords.data(), 1, &log_sum);
          dloss.load(this->op_.mean ? Coords{}.data() : coords.data(), 1, &factor);
          gradient(x, dx, coords, target, log_sum, factor / static_cast<T>(rows));
        }
      }
    });
  }

 private:
  using Bound = typename RowProgram<T>::Bound;

  std::int64_t counted_rows(const KernelContext& context) const {
    std::atomic<std::int64_t> counted = 0;
    parallel_for(
        this->rows_, items_per_thread(1, kLossFlops),
        [&](std::int64_t begin, std::int64_t end, int) {
          std::int64_t count = 0;
          for (std::int64_t row = begin; row < end; ++row)
            if (this->target_.load(context, this->coords_of(row), 0) != this->op_.ignore_index)
              ++count;
          counted += count;
        });
    return counted.load();
  }

  void fill(const Bound& dx, const Coords& coords, T value) const {
    alignas(64) T values[kClassBlock];
    std::fill(values, values + std::min(kClassBlock, this->classes_), value);
    this->for_blocks(coords, [&](const Coords& at, std::int64_t, std::int64_t count) {
      dx.store(at.data(), count, values);
    });
  }

  void gradient(const Bound& x, const Bound& dx, const Coords& coords, std::int64_t target,
                T log_sum, T factor) const {
    const auto smoothing = static_cast<T>(this->op_.label_smoothing);
    const auto offset =
        static_cast<T>(this->op_.label_smoothing / static_cast<double>(this->classes_));
    this->for_blocks(coords, [&](const Coords& at, std::int64_t begin, std::int64_t count) {
      alignas(64) T buffer[kClassBlock];
      const T* row = x.view(at.data(), count, buffer);
      const bool has_target = target >= begin && target < begin + count;
      const T wanted = has_target ? row[target - begin] : T{0};
      const auto place = dx.place(at.data());
      T* y = place.memory != nullptr ? place.memory : buffer;
      // An ordinary store follows at the target.
      const RowHints hints{nullptr, place.stream && !has_target};
      this->vocabulary_.gradient(row, log_sum, offset, factor, count, y, hints);
      if (has_target)
        y[target - begin] = (std::exp(wanted - log_sum) - (1 - smoothing) - offset) * factor;
      if (place.memory == nullptr) dx.store(at.data(), count, buffer);
    });
  }

  RowProgram<T> stats_, dloss_, dx_;
};

class CrossEntropyEngine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.cross_entropy"; }
  EngineKind kind() const override { return EngineKind::generic_fusion; }
  std::string_view description() const override {
    return "cross-entropy, forward and backward, in one pass over the logits";
  }

  Support supports(const Region& region, const DeviceProps&) const override {
    if (!region.anchor_as<CrossEntropyForward>() && !region.anchor_as<CrossEntropyBackward>())
      return Support::other_operation("the anchor is not a cross-entropy");
    if (touches_ragged(region)) return Support::no("a tensor is ragged");
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps&) const override {
    return {make_config({}, row_cost(region, 0.4))};
  }

  std::unique_ptr<Kernel> build(const Graph&, const Region& region, const Config&,
                                const DeviceProps& device) const override {
    if (region.anchor_as<CrossEntropyForward>())
      return build_for_precision<CrossEntropyForwardKernel>(region);
    return build_for_precision<CrossEntropyBackwardKernel>(region,
                                                           store_to(region.epilogue, device));
  }
};

}  // namespace

const Engine& cross_entropy_engine() {
  static const CrossEntropyEngine engine;
  return engine;
}

}  // namespace ashlar::cpu

// Connectionist temporal classification in log space: one thread per sequence, the recursions
// vectorised over its states. src/reference/ctc.cpp has the formulas; `after` stores its states in
// reverse, so that both recursions use the same step.
#include <cmath>
#include <limits>

#include "base/checked.hpp"
#include "cpu/engines/build.hpp"
#include "cpu/engines/engines.hpp"
#include "cpu/integer_operand.hpp"
#include "cpu/kernels/log_sum.hpp"
#include "cpu/threads.hpp"

namespace ashlar::cpu {

namespace {

constexpr std::int64_t kBefore = 2;  // -inf before the first state: the recursion looks back

template <class T>
class CtcKernel final : public Kernel {
 public:
  explicit CtcKernel(const Region& region)
      : op_(*region.anchor_as<CtcLoss>()),
        times_(region.prologues[CtcLoss::x].space[0]),
        batch_(region.prologues[CtcLoss::x].space[1]),
        classes_(region.prologues[CtcLoss::x].space[2]),
        ops_(row_ops<T>()),
        log_sum_(log_sum<T>()),
        labels_(region.prologues[CtcLoss::labels]),
        label_lengths_(region.prologues[CtcLoss::label_lengths]),
        input_lengths_(region.prologues[CtcLoss::input_lengths]),
        x_(region.prologues[CtcLoss::x], 2),
        loss_(region.epilogue, 0) {
    const Dims& labels = region.prologues[CtcLoss::labels].space;
    flat_ = labels.rank() == 1;
    label_extent_ = labels[labels.rank() - 1];
    const PointwiseProgram gradient = output_program(region.anchor->outputs, CtcLoss::gradient);
    has_gradient_ = !gradient.empty();
    if (has_gradient_) gradient_ = RowProgram<T>(gradient, 2);
    const PointwiseProgram& previous = input_program(region, CtcLoss::previous);
    if (!previous.empty()) previous_ = RowProgram<T>(previous, 2);

    // A sequence of L labels has 2 L + 1 states.
    const std::int64_t count = element_count(labels);
    const std::int64_t states =
        checked_add(checked_mul(2, count), checked_mul(batch_, 1 + kBefore));
    const auto reserve_scratch = [&](const char* name, std::int64_t elements, std::size_t size) {
      return scratch_layout_.add(name, checked_mul(elements, static_cast<std::int64_t>(size)));
    };
    const std::int64_t kept = has_gradient_ ? std::max<std::int64_t>(times_, 1) : 1;
    starts_ = reserve_scratch("starts of labels", batch_ + 1, sizeof(std::int64_t));
    classes_of_ = reserve_scratch("labels", count, sizeof(std::int64_t));
    before_ = reserve_scratch("before", checked_mul(kept, states), sizeof(T));
    rows_ = reserve_scratch("states", checked_mul(kRows, states), sizeof(T));
    sums_ = reserve_scratch("softmax", checked_mul(3 * batch_, times_), sizeof(T));
    x_rows_ = reserve_scratch("row of x", checked_mul(batch_, classes_), sizeof(T));
  }

  void run(const KernelContext& context) const override {
    std::int64_t* starts = context.scratch<std::int64_t>(scratch_layout_, starts_);
    starts[0] = 0;
    for (std::int64_t n = 0; n < batch_; ++n) {
      const std::int64_t most = flat_ ? label_extent_ - starts[n] : label_extent_;
      starts[n + 1] = starts[n] + clamped(label_lengths_.load(context, {n}, 0), most);
    }
    const Run run{*this,
                  context,
                  x_.bind(context),
                  loss_.bind(context),
                  has_gradient_ ? gradient_.bind(context) : typename RowProgram<T>::Bound{},
                  reads_previous() ? previous_.bind(context) : typename RowProgram<T>::Bound{}};
    parallel_for(batch_, 1, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t n = begin; n < end; ++n) run.sequence(n);
    });
  }

 private:
  static constexpr T kNothing = -std::numeric_limits<T>::infinity(), kNoSkip = 1;
  static constexpr std::int64_t kRows = 6;

  static std::int64_t clamped(std::int64_t length, std::int64_t most) {
    return std::clamp<std::int64_t>(length, 0, most);
  }
  bool reads_previous() const { return has_gradient_ && op_.padding == CtcPadding::skip; }

  // A sequence in progress: its lengths and scratch.
  struct Sequence {
    std::int64_t n, times, states;
    const std::int64_t* labels;
    T *before, *with_emission, *emission, *after, *skip, *skip_back, *terms;
    T *largest, *log_sum, *scale;  // by time: softmax statistics of x
    T* row;                        // one element per class

    std::int64_t state_class(std::int64_t s, std::int64_t blank) const {
      return s % 2 == 0 ? blank : labels[s / 2];
    }
  };

  struct Run {
    const CtcKernel& kernel;
    const KernelContext& context;
    typename RowProgram<T>::Bound x, loss, gradient, previous;

    void sequence(std::int64_t n) const {
      bool possible = true;
      const Sequence s = open(n, possible);
      T log_p = kNothing;
      if (possible) {
        prepare_skips(s);
        log_p = forward(s);
      }
      const bool impossible = log_p == kNothing;
      const T cost = impossible && kernel.op_.zero_infinity ? T{0} : -log_p;
      const Coords at = {n};
      loss.store(at.data(), 1, &cost);
      if (!kernel.has_gradient_) return;
      if (impossible) {
        std::fill(s.row, s.row + kernel.classes_, T{0});
        for (std::int64_t t = 0; t < s.times; ++t) store_row(s, t);
      } else {
        backward(s, log_p);
      }
      for (std::int64_t t = s.times; t < kernel.times_; ++t) {
        if (kernel.reads_previous())
          previous.load(Coords{t, n, 0}.data(), kernel.classes_, s.row);
        else
          std::fill(s.row, s.row + kernel.classes_, T{0});
        store_row(s, t);
      }
    }

    // Sets up the sequence; `possible`: whether its labels are valid classes.
    Sequence open(std::int64_t n, bool& possible) const {
      const auto scratch = [&](int reservation) {
        return context.scratch<T>(kernel.scratch_layout_, reservation);
      };
      const std::int64_t* starts =
          context.scratch<std::int64_t>(kernel.scratch_layout_, kernel.starts_);
      const std::int64_t count = starts[n + 1] - starts[n];
      const std::int64_t first = kernel.flat_ ? starts[n] : n * kernel.label_extent_;
      std::int64_t* labels =
          context.scratch<std::int64_t>(kernel.scratch_layout_, kernel.classes_of_) + first;
      for (std::int64_t i = 0; i < count; ++i) {
        const Coords at = kernel.flat_ ? Coords{first + i} : Coords{n, i};
        labels[i] = kernel.labels_.load(context, at, 0);
        possible = possible && labels[i] >= 0 && labels[i] < kernel.classes_;
      }
      const std::int64_t offset = 2 * first + n * (1 + kBefore), stride = 2 * count + 1 + kBefore;
      const std::int64_t kept = kernel.has_gradient_ ? std::max<std::int64_t>(kernel.times_, 1) : 1;
      T* states = scratch(kernel.rows_) + offset * kRows;
      T* sums = scratch(kernel.sums_) + 3 * n * kernel.times_;
      return {n,
              clamped(kernel.input_lengths_.load(context, {n}, 0), kernel.times_),
              2 * count + 1,
              labels,
              scratch(kernel.before_) + offset * kept,
              states + kBefore,
              states + stride,
              states + 2 * stride,
              states + 3 * stride,
              states + 4 * stride,
              states + 5 * stride,
              sums,
              sums + kernel.times_,
              sums + 2 * kernel.times_,
              scratch(kernel.x_rows_) + n * kernel.classes_};
    }
    T* before_at(const Sequence& s, std::int64_t t) const {
      return s.before + (kernel.has_gradient_ ? t * s.states : 0);
    }

    // skip[s] is 0 if state s may follow s - 2, else 1; skip_back the same with states counted from
    // the end.
    void prepare_skips(const Sequence& s) const {
      for (std::int64_t i = 0; i < s.states; ++i)
        s.skip[i] = i % 2 == 1 && i >= 3 && s.labels[i / 2] != s.labels[i / 2 - 1] ? T{0} : T{1};
      for (std::int64_t r = 0; r < s.states; ++r)
        s.skip_back[r] = r >= 2 ? s.skip[s.states - 1 - r + 2] : T{1};
      std::fill(s.with_emission - kBefore, s.with_emission, kNothing);
    }
    // The states before the first step, or after the last.
    void start(const Sequence& s, T* states) const {
      std::fill(states, states + s.states, kNothing);
      std::fill(states, states + std::min<std::int64_t>(s.states, 2), T{0});
    }

    void load_row(const Sequence& s, std::int64_t t) const {
      x.load(Coords{t, s.n, 0}.data(), kernel.classes_, s.row);
    }
    void store_row(const Sequence& s, std::int64_t t) const {
      gradient.store(Coords{t, s.n, 0}.data(), kernel.classes_, s.row);
    }
    // Emissions from the row of x at time t, whose softmax statistics are known.
    void find_emissions(const Sequence& s, std::int64_t t) const {
      const bool logits = kernel.op_.input == CtcInput::logits;
      for (std::int64_t i = 0; i < s.states; ++i) {
        const T value = s.row[s.state_class(i, kernel.op_.blank)];
        s.emission[i] = logits ? value - s.largest[t] - s.log_sum[t] : std::log(value);
      }
    }
    void find_softmax(const Sequence& s, std::int64_t t) const {
      s.largest[t] = kernel.ops_.fold(Fold::maximum, Premap::identity, s.row, kernel.classes_);
      const T sum = kernel.ops_.exp_shifted(s.row, {s.largest + t, false}, kernel.classes_, s.row);
      s.log_sum[t] = std::log(sum);
      s.scale[t] = 1 / sum;
    }

    // Returns the log probability of the labels.
    T forward(const Sequence& s) const {
      if (s.times == 0) return s.states == 1 ? T{0} : kNothing;
      for (std::int64_t t = 0; t < s.times; ++t) {
        load_row(s, t);
        if (kernel.op_.input == CtcInput::logits) {
          find_softmax(s, t);
          load_row(s, t);
        }
        find_emissions(s, t);
        T* before = before_at(s, t);
        if (t == 0)
          start(s, before);
        else
          kernel.log_sum_(s.with_emission, s.skip, s.states, before);
        std::copy(before, before + s.states, s.with_emission);
        kernel.ops_.fold_into(Fold::sum, Premap::identity, s.emission, s.states, s.with_emission);
      }
      const T last[] = {kNothing, s.with_emission[s.states - 2], s.with_emission[s.states - 1]};
      T total;
      kernel.log_sum_(last + kBefore, &kNoSkip, 1, &total);
      return total;
    }

    void backward(const Sequence& s, T log_p) const {
      const bool logits = kernel.op_.input == CtcInput::logits;
      for (std::int64_t t = s.times - 1; t >= 0; --t) {
        if (t == s.times - 1)
          start(s, s.after);
        else
          kernel.log_sum_(s.with_emission, s.skip_back, s.states, s.after);
        load_row(s, t);
        find_emissions(s, t);
        std::reverse_copy(s.emission, s.emission + s.states, s.with_emission);
        kernel.ops_.fold_into(Fold::sum, Premap::identity, s.after, s.states, s.with_emission);
        const T* before = before_at(s, t);
        const T* rest = logits ? s.with_emission : s.after;
        for (std::int64_t i = 0; i < s.states; ++i) s.terms[i] = before[i] + rest[s.states - 1 - i];
        if (logits) {
          kernel.ops_.exp_shifted(s.terms, {&log_p, false}, s.states, s.terms);
          kernel.ops_.exp_shifted(s.row, {s.largest + t, false}, kernel.classes_, s.row);
          kernel.ops_.multiply(s.row, {s.scale + t, false}, kernel.classes_, s.row);
        } else {
          for (std::int64_t i = 0; i < s.states; ++i) s.terms[i] = std::exp(s.terms[i] - log_p);
          std::fill(s.row, s.row + kernel.classes_, T{0});
        }
        double blanks = 0;
        for (std::int64_t i = 0; i < s.states; i += 2) blanks += static_cast<double>(s.terms[i]);
        for (std::int64_t i = 1; i < s.states; i += 2) s.row[s.labels[i / 2]] -= s.terms[i];
        s.row[kernel.op_.blank] -= static_cast<T>(blanks);
        store_row(s, t);
      }
    }
  };

  CtcLoss op_;
  std::int64_t times_, batch_, classes_, label_extent_ = 0;
  bool flat_ = false, has_gradient_ = false;
  const RowOps<T>& ops_;
  LogSum<T> log_sum_;
  IntegerOperand labels_, label_lengths_, input_lengths_;
  RowProgram<T> x_, loss_, gradient_, previous_;
  int starts_, classes_of_, before_, rows_, sums_, x_rows_;
};

class CtcEngine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.ctc"; }
  EngineKind kind() const override { return EngineKind::generic_fusion; }
  std::string_view description() const override {
    return "connectionist temporal classification: loss and gradient";
  }

  Support supports(const Region& region, const DeviceProps&) const override {
    if (!region.anchor_as<CtcLoss>())
      return Support::other_operation("the anchor is not a ctc_loss");
    if (touches_ragged(region)) return Support::no("a tensor is ragged");
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps&) const override {
    return {make_config({}, row_cost(region, 0.3),
                        build_for_precision<CtcKernel>(region)->scratch_layout().total_bytes())};
  }

  std::unique_ptr<Kernel> build(const Graph&, const Region& region, const Config&,
                                const DeviceProps&) const override {
    return build_for_precision<CtcKernel>(region);
  }
};

}  // namespace

const Engine& ctc_engine() {
  static const CtcEngine engine;
  return engine;
}

}  // namespace ashlar::cpu

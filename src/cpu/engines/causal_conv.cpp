// Causal depthwise convolution along time; vectors along time or along channels, whichever is
// contiguous.
#include <algorithm>

#include "cpu/box_space.hpp"
#include "cpu/engines/build.hpp"
#include "cpu/engines/engines.hpp"
#include "cpu/kernels/pointwise.hpp"
#include "cpu/threads.hpp"

namespace ashlar::cpu {

namespace {

constexpr std::int64_t kMaxKernelTaps = 32;
constexpr std::int64_t kMaxLanes = 64;
constexpr std::int64_t kTimeTile = 4096;  // elements: time steps with halo, times lanes

// Blocking. A tile is a run of time steps of one channel (lanes = 1), or some time steps of
// adjacent channels, channels fastest.
struct Blocking {
  std::int64_t batches, channels, steps, taps;
  std::int64_t lanes;       // adjacent channels
  std::int64_t tile_steps;  // time steps per tile
  bool silu;

  template <class Op>
  Blocking(const Region& region, const Op& op) {
    const Dims& x = region.anchor->inputs[Op::x].dims;
    batches = x[0];
    channels = x[1];
    steps = x[2];
    taps = region.anchor->inputs[Op::w].dims[1];
    silu = op.activation == CausalConvActivation::silu;
    const PointwiseProgram& source = region.prologues[Op::x];
    const bool along_channels =
        contiguous_views(source, 1) > contiguous_views(source, 2) && channels > 1;
    lanes = along_channels ? std::min(kMaxLanes, channels) : 1;
    static_assert(kTimeTile / kMaxLanes > 2 * (kMaxKernelTaps - 1), "a tile has room for a step");
    tile_steps = std::min(kTimeTile / lanes - 2 * (taps - 1), std::max<std::int64_t>(steps, 1));
  }
  int axis() const { return lanes > 1 ? 1 : 2; }
  std::int64_t history() const { return taps - 1; }
  std::int64_t stripes() const { return (channels + lanes - 1) / lanes; }
  std::int64_t tiles() const { return (steps + tile_steps - 1) / tile_steps; }
};

// Position of a tile: channels [channel, channel + width) of a batch.
struct Stripe {
  std::int64_t batch, channel, width;
};

// Reads and writes time steps [t, t + count) of a [B, C, T] tensor as a tile.
template <class T>
class TimeRows {
 public:
  TimeRows() = default;
  TimeRows(const PointwiseProgram& program, const Blocking& blocking)
      : program_(program, blocking.axis()), along_time_(blocking.lanes == 1) {}

  struct Bound {
    typename RowProgram<T>::Bound bound;
    bool along_time;

    void load(const Stripe& at, std::int64_t t, std::int64_t count, T* tile) const {
      each_row(at, t, count, [&](const Coords& coords, std::int64_t length, std::int64_t offset) {
        bound.load(coords.data(), length, tile + offset);
      });
    }
    void store(const Stripe& at, std::int64_t t, std::int64_t count, const T* tile) const {
      each_row(at, t, count, [&](const Coords& coords, std::int64_t length, std::int64_t offset) {
        bound.store(coords.data(), length, tile + offset);
      });
    }

   private:
    template <class Body>
    void each_row(const Stripe& at, std::int64_t t, std::int64_t count, const Body& body) const {
      if (count <= 0) return;
      Coords coords{at.batch, at.channel, t};
      if (along_time) return body(coords, count, std::int64_t{0});
      for (std::int64_t i = 0; i < count; ++i, ++coords[2]) body(coords, at.width, i * at.width);
    }
  };
  Bound bind(const KernelContext& context) const { return {program_.bind(context), along_time_}; }

 private:
  RowProgram<T> program_;
  bool along_time_ = true;
};

// x preceded by the initial state: position p is time p - history.
template <class T>
class Past {
 public:
  template <class Op>
  Past(const Region& region, const Blocking& blocking, Op)
      : blocking_(blocking), x_(region.prologues[Op::x], blocking) {
    const PointwiseProgram& state = input_program(region, Op::initial_state);
    has_state_ = !state.empty();
    if (has_state_) state_ = TimeRows<T>(state, blocking);
  }

  struct Bound {
    const Past* past;
    typename TimeRows<T>::Bound x, state;

    // Loads positions [position, position + count), all below history + steps.
    void load(const Stripe& at, std::int64_t position, std::int64_t count, T* tile) const {
      const std::int64_t before =
          std::clamp<std::int64_t>(past->blocking_.history() - position, 0, count);
      if (past->has_state_)
        state.load(at, position, before, tile);
      else
        std::fill_n(tile, before * at.width, T{0});
      x.load(at, position + before - past->blocking_.history(), count - before,
             tile + before * at.width);
    }
  };
  Bound bind(const KernelContext& context) const {
    Bound bound{this, x_.bind(context), {}};
    if (has_state_) bound.state = state_.bind(context);
    return bound;
  }

 private:
  Blocking blocking_;
  TimeRows<T> x_, state_;
  bool has_state_ = false;
};

// The filters and biases of a stripe: w[i * width + lane].
template <class T>
struct Filter {
  alignas(64) T w[kMaxKernelTaps * kMaxLanes];
  alignas(64) T bias[kMaxLanes];
};

template <class T>
class CausalConvKernel : public Kernel {
 protected:
  template <class Op>
  CausalConvKernel(const Region& region, const Op& op)
      : ops_(row_ops<T>()),
        blocking_(region, op),
        past_(region, blocking_, Op{}),
        w_(region.prologues[Op::w], 0) {
    const PointwiseProgram& bias = input_program(region, Op::bias);
    has_bias_ = !bias.empty();
    if (has_bias_) bias_ = RowProgram<T>(bias, 0);
  }

  struct Bound {
    typename Past<T>::Bound past;
    typename RowProgram<T>::Bound w, bias;
  };
  Bound bind(const KernelContext& context) const {
    Bound bound{past_.bind(context), w_.bind(context), {}};
    if (has_bias_) bound.bias = bias_.bind(context);
    return bound;
  }
  void load_filter(const Bound& bound, const Stripe& at, Filter<T>& filter) const {
    for (std::int64_t i = 0; i < blocking_.taps; ++i) {
      const Coords coords{at.channel, i};
      bound.w.load(coords.data(), at.width, filter.w + i * at.width);
    }
    const Coords coords{at.channel};
    if (has_bias_)
      bound.bias.load(coords.data(), at.width, filter.bias);
    else
      std::fill_n(filter.bias, at.width, T{0});
  }
  // target[t] += w[tap] * source[t], for `count` time steps.
  void add_tap(const Filter<T>& filter, const Stripe& at, std::int64_t tap, std::int64_t count,
               const T* source, T* target) const {
    if (at.width == 1) return ops_.axpy(filter.w[tap], source, count, target);
    for (std::int64_t t = 0; t < count; ++t)
      ops_.dot_into(filter.w + tap * at.width, source + t * at.width, at.width,
                    target + t * at.width);
  }
  // Pre-activation sums, for `count` steps from the start of `past`.
  void make_sums(const Filter<T>& filter, const Stripe& at, std::int64_t count, const T* past,
                 T* sums) const {
    for (std::int64_t t = 0; t < count; ++t)
      std::copy_n(filter.bias, at.width, sums + t * at.width);
    for (std::int64_t i = 0; i < blocking_.taps; ++i)
      add_tap(filter, at, i, count, past + i * at.width, sums);
  }
  Stripe stripe(std::int64_t batch, std::int64_t number) const {
    const std::int64_t channel = number * blocking_.lanes;
    return {batch, channel, std::min(blocking_.lanes, blocking_.channels - channel)};
  }

  const RowOps<T>& ops_;
  Blocking blocking_;
  Past<T> past_;
  RowProgram<T> w_, bias_;
  bool has_bias_;
};

template <class T>
class CausalConvForwardKernel final : public CausalConvKernel<T> {
 public:
  using Op = CausalConvForward;
  explicit CausalConvForwardKernel(const Region& region)
      : CausalConvKernel<T>(region, *region.anchor_as<Op>()),
        silu_(pointwise_row<T>(PointwiseMode::swish_fwd, f32)),
        y_(region.epilogue, this->blocking_) {
    const PointwiseProgram state = output_program(region.anchor->outputs, Op::final_state);
    has_state_ = !state.empty();
    if (has_state_) state_ = TimeRows<T>(state, this->blocking_);
  }

  void run(const KernelContext& context) const override {
    const Blocking& blocking = this->blocking_;
    const auto bound = this->bind(context);
    const auto y = y_.bind(context);
    const std::int64_t tiles = blocking.tiles();
    parallel_for(blocking.batches * blocking.stripes() * tiles,
                 items_per_thread(blocking.tile_steps * blocking.lanes),
                 [&](std::int64_t begin, std::int64_t end, int) {
                   alignas(64) T past[kTimeTile], sums[kTimeTile];
                   Filter<T> filter;
                   for (std::int64_t item = begin; item < end; ++item) {
                     const std::int64_t number = item / tiles % blocking.stripes();
                     const Stripe at = this->stripe(item / tiles / blocking.stripes(), number);
                     const std::int64_t t = item % tiles * blocking.tile_steps,
                                        count = std::min(blocking.tile_steps, blocking.steps - t);
                     this->load_filter(bound, at, filter);
                     bound.past.load(at, t, count + blocking.history(), past);
                     this->make_sums(filter, at, count, past, sums);
                     if (blocking.silu)
                       silu_(Pointwise{}, sums, nullptr, nullptr, count * at.width, sums);
                     y.store(at, t, count, sums);
                   }
                 });
    if (has_state_) store_state(bound.past, context);
  }

 private:
  void store_state(const typename Past<T>::Bound& past, const KernelContext& context) const {
    const Blocking& blocking = this->blocking_;
    const auto state = state_.bind(context);
    parallel_for(blocking.batches * blocking.stripes(),
                 items_per_thread(blocking.history() * blocking.lanes),
                 [&](std::int64_t begin, std::int64_t end, int) {
                   alignas(64) T tile[kMaxKernelTaps * kMaxLanes];
                   for (std::int64_t item = begin; item < end; ++item) {
                     const Stripe at =
                         this->stripe(item / blocking.stripes(), item % blocking.stripes());
                     past.load(at, blocking.steps, blocking.history(), tile);
                     state.store(at, 0, blocking.history(), tile);
                   }
                 });
  }

  PointwiseRow<T> silu_;
  TimeRows<T> y_, state_;
  bool has_state_;
};

template <class T>
class CausalConvBackwardKernel final : public CausalConvKernel<T> {
 public:
  using Op = CausalConvBackward;
  explicit CausalConvBackwardKernel(const Region& region)
      : CausalConvKernel<T>(region, *region.anchor_as<Op>()),
        slope_(pointwise_row<T>(PointwiseMode::swish_bwd, f32)),
        dy_(region.prologues[Op::dy], this->blocking_),
        dx_(region.epilogue, this->blocking_) {
    const auto& outputs = region.anchor->outputs;
    if (const auto program = output_program(outputs, Op::dinitial_state); !program.empty()) {
      has_state_ = true;
      state_ = TimeRows<T>(program, this->blocking_);
    }
    if (const auto program = output_program(outputs, Op::dw); !program.empty()) {
      has_dw_ = true;
      dw_ = RowProgram<T>(program, 0);
    }
    if (const auto program = output_program(outputs, Op::dbias); !program.empty()) {
      has_dbias_ = true;
      dbias_ = RowProgram<T>(program, 0);
    }
  }

  // One task per stripe of channels: dw sums over batches and time.
  void run(const KernelContext& context) const override {
    const auto bound = this->bind(context);
    const Gradients gradients{dy_.bind(context), dx_.bind(context),
                              has_state_ ? state_.bind(context) : typename TimeRows<T>::Bound{}};
    const Blocking& blocking = this->blocking_;
    parallel_for(
        blocking.stripes(),
        items_per_thread(blocking.batches * blocking.steps * blocking.lanes * blocking.taps),
        [&](std::int64_t begin, std::int64_t end, int) {
          for (std::int64_t number = begin; number < end; ++number)
            run_stripe(bound, gradients, number, context);
        });
  }

 private:
  struct Gradients {
    typename TimeRows<T>::Bound dy, dx, state;
  };
  // Sums over batches and time: in T within a tile, in double over tiles.
  struct Totals {
    double w[kMaxKernelTaps * kMaxLanes] = {};
    double bias[kMaxLanes] = {};
  };

  void run_stripe(const typename CausalConvKernel<T>::Bound& bound, const Gradients& gradients,
                  std::int64_t number, const KernelContext& context) const {
    const Blocking& blocking = this->blocking_;
    Filter<T> filter;
    Totals totals;
    Stripe at = this->stripe(0, number);
    this->load_filter(bound, at, filter);
    // One tile more than the steps need: the initial state gets gradients too.
    const std::int64_t positions = blocking.steps + blocking.history();
    for (at.batch = 0; at.batch < blocking.batches; ++at.batch)
      for (std::int64_t p = 0; p < positions; p += blocking.tile_steps)
        run_tile(bound, gradients, filter, at, p, std::min(blocking.tile_steps, positions - p),
                 totals);
    store_totals(totals, at, context);
  }

  // Gradients of positions [p, p + count), which depend on the pre-activation gradients of times
  // from p - history on.
  void run_tile(const typename CausalConvKernel<T>::Bound& bound, const Gradients& gradients,
                const Filter<T>& filter, const Stripe& at, std::int64_t p, std::int64_t count,
                Totals& totals) const {
    const Blocking& blocking = this->blocking_;
    const std::int64_t history = blocking.history(), width = at.width;
    alignas(64) T past[kTimeTile], slopes[kTimeTile], sums[kTimeTile];
    // slopes[j] is the pre-activation gradient of time p - history + j; zero outside [0, steps).
    const std::int64_t first = std::max<std::int64_t>(p - history, 0),
                       last = std::min(p + count, blocking.steps),
                       times = std::max<std::int64_t>(last - first, 0);
    const std::int64_t lead = first - (p - history);
    T* live = slopes + lead * width;
    std::fill_n(slopes, (count + history) * width, T{0});
    if (times > 0) {
      gradients.dy.load(at, first, times, live);
      bound.past.load(at, first, times + history, past);
      if (blocking.silu) {
        this->make_sums(filter, at, times, past, sums);
        slope_(Pointwise{}, live, sums, nullptr, times * width, live);
      }
    }
    std::fill_n(sums, count * width, T{0});
    for (std::int64_t i = 0; i < blocking.taps; ++i)
      this->add_tap(filter, at, i, count, slopes + (history - i) * width, sums);
    const std::int64_t before = std::clamp<std::int64_t>(history - p, 0, count);
    if (has_state_) gradients.state.store(at, p, before, sums);
    gradients.dx.store(at, p + before - history, count - before, sums + before * width);
    // Every time is counted once, in the tile of the position of the same index.
    const std::int64_t from = std::max(first, p);
    if (from < last)
      add_totals(at, last - from, live + (from - first) * width, past + (from - first) * width,
                 totals);
  }

  void add_totals(const Stripe& at, std::int64_t count, const T* slopes, const T* past,
                  Totals& totals) const {
    const RowOps<T>& ops = this->ops_;
    if (at.width == 1) {
      if (has_dw_)
        for (std::int64_t i = 0; i < this->blocking_.taps; ++i)
          totals.w[i] += static_cast<double>(ops.dot(slopes, past + i, count));
      totals.bias[0] += static_cast<double>(ops.fold(Fold::sum, Premap::identity, slopes, count));
      return;
    }
    alignas(64) T sums[kMaxLanes];
    const auto gather = [&](double* target, const auto& add) {
      std::fill_n(sums, at.width, T{0});
      for (std::int64_t t = 0; t < count; ++t) add(t * at.width);
      for (std::int64_t lane = 0; lane < at.width; ++lane)
        target[lane] += static_cast<double>(sums[lane]);
    };
    if (has_dw_)
      for (std::int64_t i = 0; i < this->blocking_.taps; ++i)
        gather(totals.w + i * at.width, [&](std::int64_t offset) {
          ops.dot_into(slopes + offset, past + offset + i * at.width, at.width, sums);
        });
    gather(totals.bias, [&](std::int64_t offset) {
      ops.fold_into(Fold::sum, Premap::identity, slopes + offset, at.width, sums);
    });
  }

  void store_totals(const Totals& totals, const Stripe& at, const KernelContext& context) const {
    alignas(64) T row[kMaxLanes];
    const auto rounded = [&](const double* source) {
      for (std::int64_t lane = 0; lane < at.width; ++lane) row[lane] = static_cast<T>(source[lane]);
      return row;
    };
    if (has_dw_) {
      const auto dw = dw_.bind(context);
      for (std::int64_t i = 0; i < this->blocking_.taps; ++i) {
        const Coords coords{at.channel, i};
        dw.store(coords.data(), at.width, rounded(totals.w + i * at.width));
      }
    }
    if (has_dbias_) {
      const Coords coords{at.channel};
      dbias_.bind(context).store(coords.data(), at.width, rounded(totals.bias));
    }
  }

  PointwiseRow<T> slope_;
  TimeRows<T> dy_, dx_, state_;
  RowProgram<T> dw_, dbias_;
  bool has_state_ = false, has_dw_ = false, has_dbias_ = false;
};

class CausalConvEngine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.causal_conv"; }
  EngineKind kind() const override { return EngineKind::generic_fusion; }
  std::string_view description() const override {
    return "causal depthwise convolution along time, forward and backward";
  }

  Support supports(const Region& region, const DeviceProps&) const override {
    const bool forward = region.anchor_as<CausalConvForward>() != nullptr;
    if (!forward && !region.anchor_as<CausalConvBackward>())
      return Support::other_operation("the anchor is not a causal convolution");
    static_assert(int{CausalConvForward::w} == int{CausalConvBackward::w});
    if (region.anchor->inputs[CausalConvForward::w].dims[1] > kMaxKernelTaps)
      return Support::no("more than {} filter taps", kMaxKernelTaps);
    if (touches_ragged(region)) return Support::no("a tensor is ragged");
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps&) const override {
    return {make_config({}, row_cost(region, 0.5))};
  }

  std::unique_ptr<Kernel> build(const Graph&, const Region& region, const Config&,
                                const DeviceProps&) const override {
    if (region.anchor_as<CausalConvForward>())
      return build_for_precision<CausalConvForwardKernel>(region);
    return build_for_precision<CausalConvBackwardKernel>(region);
  }
};

}  // namespace

const Engine& causal_conv_engine() {
  static const CausalConvEngine engine;
  return engine;
}

}  // namespace ashlar::cpu

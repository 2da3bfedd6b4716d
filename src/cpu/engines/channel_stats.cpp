// Per-channel sums: gen_stats, and the reductions of batch norm backward with the coefficients
// derived from them. Rows are summed in fixed chunks, distributed over all threads.
#include <array>

#include "cpu/box_space.hpp"
#include "cpu/engines/build.hpp"
#include "cpu/engines/engines.hpp"
#include "cpu/threads.hpp"
#include "plan/merge_axes.hpp"

namespace ashlar::cpu {

namespace {

using Bn = BnBackwardWeights;
constexpr std::size_t kMaxOutputs = 5;

struct StatsShape {
  PointwiseProgram x, dy, mean, inv_variance, scale;
  std::array<PointwiseProgram, kMaxOutputs> outputs;
  Dims space, channels;
  int axis;

  explicit StatsShape(const Region& region)
      : x(region.prologues[0]), space(x.space), channels(Dims::filled(space.rank(), 1)) {
    if (region.anchor_as<Bn>()) {
      dy = input_program(region, Bn::dy);
      mean = input_program(region, Bn::mean);
      inv_variance = input_program(region, Bn::inv_variance);
      scale = input_program(region, Bn::scale);
    }
    channels[1] = space[1];
    outputs[0] = region.epilogue;
    for (std::size_t slot = 1; slot < kMaxOutputs; ++slot)
      outputs[slot] = output_program(region.anchor->outputs, static_cast<int>(slot));
    std::vector<PointwiseProgram*> programs = {&x, &dy, &mean, &inv_variance, &scale};
    for (PointwiseProgram& output : outputs) programs.push_back(&output);
    merge_axes(programs, {&space, &channels});
    axis = choose_row_axis(space, {&x, &dy});
  }
};

template <class T>
class ChannelStatsKernel final : public Kernel {
 public:
  explicit ChannelStatsKernel(const Region& region)
      : ChannelStatsKernel(region.anchor_as<Bn>() != nullptr, StatsShape(region)) {}

  void run(const KernelContext& context) const override {
    const Bound bound = bind(context);
    T* partial = context.scratch<T>(scratch_layout_, partial_);
    const std::int64_t size = kSums * space_.max_width();
    parallel_for(space_.items() * splits_, 1, [&](std::int64_t begin, std::int64_t end, int) {
      Rows rows;
      for (std::int64_t chunk = begin; chunk < end; ++chunk)
        sum_chunk(bound, chunk, rows, partial + chunk * size);
    });
    constexpr std::int64_t kItemsPerThread = 64;
    parallel_for(space_.items(), kItemsPerThread, [&](std::int64_t begin, std::int64_t end, int) {
      Rows rows;
      for (std::int64_t item = begin; item < end; ++item)
        finish(bound, item, rows, partial + item * splits_ * size);
    });
  }

 private:
  static constexpr int kSums = 2;  // of x and x^2, or of dy and dy * x_hat

  struct Bound {
    typename RowProgram<T>::Bound x, dy;
    typename Operand<T>::Bound mean, inv_variance, scale;
    std::array<typename Operand<T>::Bound, kMaxOutputs> outputs;
  };
  // Per-thread buffers.
  struct Rows {
    alignas(64) T x[kRowLength], dy[kRowLength];
    alignas(64) T mean[kStripeLength], inv_variance[kStripeLength], scale[kStripeLength];
    alignas(64) T sums[kSums][kStripeLength], line[3][kStripeLength];
  };

  ChannelStatsKernel(bool gradient, const StatsShape& shape)
      : gradient_(gradient),
        ops_(row_ops<T>()),
        space_(shape.space, shape.channels, shape.axis),
        splits_(space_.splits()),
        x_(shape.x, shape.axis) {
    const auto operand = [&](const PointwiseProgram& program) {
      return Operand<T>(program, shape.space, shape.axis);
    };
    if (gradient_) dy_ = RowProgram<T>(shape.dy, shape.axis);
    mean_ = operand(shape.mean);
    inv_variance_ = operand(shape.inv_variance);
    scale_ = operand(shape.scale);
    for (std::size_t slot = 0; slot < kMaxOutputs; ++slot)
      outputs_[slot] = operand(shape.outputs[slot]);
    partial_ =
        scratch_layout_.add("partial sums", space_.items() * splits_ * kSums * space_.max_width() *
                                                static_cast<std::int64_t>(sizeof(T)));
  }

  Bound bind(const KernelContext& context) const {
    Bound bound;
    bound.x = x_.bind(context);
    if (gradient_) bound.dy = dy_.bind(context);
    bound.mean = mean_.bind(context);
    bound.inv_variance = inv_variance_.bind(context);
    bound.scale = scale_.bind(context);
    for (std::size_t slot = 0; slot < kMaxOutputs; ++slot)
      bound.outputs[slot] = outputs_[slot].bind(context);
    return bound;
  }

  void sum_chunk(const Bound& bound, std::int64_t chunk, Rows& rows, T* totals) const {
    static constexpr T kZero = 0, kOne = 1;
    RowArg<T> mean{}, inv_variance{};
    if (gradient_) {
      Coords origin;
      const std::int64_t width = space_.origin(chunk / splits_, origin);
      bound.mean.load(origin, width, rows.mean, nullptr);
      bound.inv_variance.load(origin, width, rows.inv_variance, nullptr);
      mean = {rows.mean, space_.columns()};
      inv_variance = {rows.inv_variance, space_.columns()};
    }
    // Loads a row; for the gradient, x_hat and dy.
    const auto load = [&](const Coords& coords, std::int64_t n) {
      bound.x.load(coords.data(), n, rows.x);
      if (!gradient_) return;
      bound.dy.load(coords.data(), n, rows.dy);
      ops_.normalise(rows.x, mean, inv_variance, {&kOne, false}, {&kZero, false}, n, rows.x);
    };
    fold_boxes<T, kSums>(
        ops_, space_, chunk / splits_, chunk % splits_, splits_, Fold::sum,
        [&](const Coords& coords, std::int64_t n, T(&values)[kSums]) {
          load(coords, n);
          values[0] = ops_.fold(Fold::sum, Premap::identity, gradient_ ? rows.dy : rows.x, n);
          values[1] = ops_.dot(gradient_ ? rows.dy : rows.x, rows.x, n);
        },
        [&](const Coords& coords, std::int64_t n, T*(&sums)[kSums]) {
          load(coords, n);
          ops_.fold_into(Fold::sum, Premap::identity, gradient_ ? rows.dy : rows.x, n, sums[0]);
          ops_.dot_into(gradient_ ? rows.dy : rows.x, rows.x, n, sums[1]);
        },
        totals, space_.max_width());
  }

  void finish(const Bound& bound, std::int64_t item, Rows& rows, const T* partial) const {
    Coords coords;
    const std::int64_t width = space_.origin(item, coords), stride = space_.max_width();
    for (int q = 0; q < kSums; ++q)
      for (std::int64_t i = 0; i < width; ++i) {
        double total = 0;
        for (std::int64_t split = 0; split < splits_; ++split)
          total += static_cast<double>(partial[(split * kSums + q) * stride + i]);
        rows.sums[q][i] = static_cast<T>(total);
      }
    if (!gradient_) {
      for (std::size_t q = 0; q < kSums; ++q) bound.outputs[q].store(coords, width, rows.sums[q]);
      return;
    }
    bound.mean.load(coords, width, rows.mean, nullptr);
    bound.inv_variance.load(coords, width, rows.inv_variance, nullptr);
    bound.scale.load(coords, width, rows.scale, nullptr);
    const T *dbias = rows.sums[0], *dscale = rows.sums[1];
    const auto count = static_cast<T>(space_.box_size());
    for (std::int64_t i = 0; i < width; ++i) {
      const T slope = rows.scale[i] * rows.inv_variance[i];
      const T x_slope = -(slope * rows.inv_variance[i] * (dscale[i] / count));
      rows.line[0][i] = slope;
      rows.line[1][i] = x_slope;
      rows.line[2][i] = -(slope * (dbias[i] / count)) - x_slope * rows.mean[i];
    }
    bound.outputs[Bn::dscale].store(coords, width, dscale);
    bound.outputs[Bn::dbias].store(coords, width, dbias);
    bound.outputs[Bn::eq_dy_scale].store(coords, width, rows.line[0]);
    bound.outputs[Bn::eq_x_scale].store(coords, width, rows.line[1]);
    bound.outputs[Bn::eq_bias].store(coords, width, rows.line[2]);
  }

  bool gradient_;
  const RowOps<T>& ops_;
  BoxSpace space_;
  std::int64_t splits_;
  int partial_;
  RowProgram<T> x_, dy_;
  Operand<T> mean_, inv_variance_, scale_;
  std::array<Operand<T>, kMaxOutputs> outputs_;
};

class ChannelStatsEngine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.channel_stats"; }
  EngineKind kind() const override { return EngineKind::generic_fusion; }
  std::string_view description() const override {
    return "per-channel sums of batch norm, forward and backward";
  }

  Support supports(const Region& region, const DeviceProps&) const override {
    if (!region.anchor_as<GenStats>() && !region.anchor_as<Bn>())
      return Support::other_operation("the anchor is not a per-channel reduction");
    if (touches_ragged(region)) return Support::no("a tensor is ragged");
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps&) const override {
    return {make_config(
        {}, row_cost(region, 0.5),
        build_for_precision<ChannelStatsKernel>(region)->scratch_layout().total_bytes())};
  }

  std::unique_ptr<Kernel> build(const Graph&, const Region& region, const Config&,
                                const DeviceProps&) const override {
    return build_for_precision<ChannelStatsKernel>(region);
  }
};

}  // namespace

const Engine& channel_stats_engine() {
  static const ChannelStatsEngine engine;
  return engine;
}

}  // namespace ashlar::cpu

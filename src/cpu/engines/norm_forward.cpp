#include <cmath>

#include "cpu/box_space.hpp"
#include "cpu/engines/build.hpp"
#include "cpu/engines/norm_kernels.hpp"
#include "cpu/merge_axes.hpp"
#include "cpu/threads.hpp"
#include "graph/norm_shapes.hpp"

namespace ashlar::cpu {

namespace {

using In = NormForward::In;
using Out = NormForward::Out;

// Operands with axes merged, and the walk over the boxes that share a statistic.
struct Shape {
  PointwiseProgram x, scale, bias, mean, inv_variance, running_mean, running_var;
  PointwiseProgram y, out_mean, out_inv_variance, next_mean, next_var;
  Dims space, statistics;
  int axis;

  explicit Shape(const Region& region)
      : x(region.prologues[NormForward::x]),
        scale(input_program(region, In::scale)),
        bias(input_program(region, In::bias)),
        mean(input_program(region, In::mean)),
        inv_variance(input_program(region, In::inv_variance)),
        running_mean(input_program(region, In::running_mean)),
        running_var(input_program(region, In::running_var)),
        y(region.epilogue),
        out_mean(output_program(region.anchor->outputs, Out::out_mean)),
        out_inv_variance(output_program(region.anchor->outputs, Out::out_inv_variance)),
        next_mean(output_program(region.anchor->outputs, Out::next_running_mean)),
        next_var(output_program(region.anchor->outputs, Out::next_running_var)),
        space(x.space) {
    const auto& op = *region.anchor_as<NormForward>();
    statistics = norm_shapes(op.mode, space, op.axes, op.groups).statistics;
    merge_axes({&x, &scale, &bias, &mean, &inv_variance, &running_mean, &running_var, &y, &out_mean,
                &out_inv_variance, &next_mean, &next_var},
               {&space, &statistics});
    axis = choose_row_axis(space, {&x, &y});
  }
};

template <class T>
class NormForwardKernel final : public Kernel {
 public:
  NormForwardKernel(const Region& region, bool split)
      : NormForwardKernel(region, *region.anchor_as<NormForward>(), Shape(region), split) {}

  void run(const KernelContext& context) const override {
    const Bound bound = bind(context);
    if (splits_ > 1 && !given_) return run_in_phases(bound, context);
    // Statistics that are given, or cheap enough to be one thread's work.
    const std::int64_t splits = given_ ? space_.splits() : 1;
    parallel_for(space_.items() * splits, grain_, [&](std::int64_t begin, std::int64_t end, int) {
      alignas(64) T mean[kStripeLength];
      alignas(64) T inv[kStripeLength];
      for (std::int64_t piece = begin; piece < end; ++piece) {
        const std::int64_t item = piece / splits;
        if (given_) {
          load_statistics(bound, item, mean, inv);
        } else if (space_.rows() == 1 && !space_.columns()) {
          one_row(bound, item);
          continue;
        } else {
          sum(bound, item, 0, 1, mean);
          to_mean(item, mean);
          squares(bound, item, 0, 1, mean, inv);
          finish(bound, item, mean, inv);
        }
        normalise(bound, item, piece % splits, splits, mean, inv);
      }
    });
  }

 private:
  struct Bound {
    typename RowProgram<T>::Bound x;
    typename Operand<T>::Bound scale, bias, mean, inv_variance, running_mean, running_var;
    typename Operand<T>::Bound y, out_mean, out_inv_variance, next_mean, next_var;
    T epsilon, momentum;
  };

  NormForwardKernel(const Region& region, const NormForward& op, const Shape& shape, bool split)
      : ops_(row_ops<T>()),
        space_(shape.space, shape.statistics, shape.axis),
        splits_(split ? space_.splits() : 1),
        grain_(items_per_thread(space_.rows() * std::min(kRowLength, space_.box_size()))),
        centred_(op.mode != NormMode::rms),
        given_(op.mode == NormMode::batch && op.phase == NormPhase::inference),
        epsilon_(input_program(region, In::epsilon_tensor), op.epsilon),
        momentum_(input_program(region, In::momentum_tensor), op.momentum),
        count_(static_cast<T>(space_.box_size())),
        x_(shape.x, shape.axis) {
    const auto operand = [&](const PointwiseProgram& program) {
      return Operand<T>(program, shape.space, shape.axis);
    };
    scale_ = operand(shape.scale);
    bias_ = operand(shape.bias);
    mean_ = operand(shape.mean);
    inv_variance_ = operand(shape.inv_variance);
    running_mean_ = operand(shape.running_mean);
    running_var_ = operand(shape.running_var);
    y_ = operand(shape.y);
    out_mean_ = operand(shape.out_mean);
    out_inv_variance_ = operand(shape.out_inv_variance);
    next_mean_ = operand(shape.next_mean);
    next_var_ = operand(shape.next_var);
    if (splits_ > 1 && !given_) {
      const std::int64_t statistics =
          space_.items() * space_.most_width() * static_cast<std::int64_t>(sizeof(T));
      partial_ = scratch_book_.add("partial", statistics * splits_);
      means_ = scratch_book_.add("mean", statistics);
      invs_ = scratch_book_.add("inv_variance", statistics);
    }
  }

  Bound bind(const KernelContext& context) const {
    return {x_.bind(context),
            scale_.bind(context),
            bias_.bind(context),
            mean_.bind(context),
            inv_variance_.bind(context),
            running_mean_.bind(context),
            running_var_.bind(context),
            y_.bind(context),
            out_mean_.bind(context),
            out_inv_variance_.bind(context),
            next_mean_.bind(context),
            next_var_.bind(context),
            epsilon_.load(context),
            momentum_.load(context)};
  }

  void run_in_phases(const Bound& bound, const KernelContext& context) const {
    T* partial = context.scratch<T>(scratch_book_, partial_);
    T* means = context.scratch<T>(scratch_book_, means_);
    T* invs = context.scratch<T>(scratch_book_, invs_);
    const std::int64_t width = space_.most_width();
    const auto over_pieces = [&](auto&& body) {
      parallel_for(space_.items() * splits_, 1, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t piece = begin; piece < end; ++piece)
          body(piece / splits_, piece % splits_);
      });
    };
    const auto gather = [&](std::int64_t item, T* totals) {
      for (std::int64_t i = 0; i < width; ++i) {
        double total = 0;
        for (std::int64_t split = 0; split < splits_; ++split)
          total += static_cast<double>(partial[(item * splits_ + split) * width + i]);
        totals[i] = static_cast<T>(total);
      }
    };
    std::fill(partial, partial + space_.items() * splits_ * width, T{0});
    over_pieces([&](std::int64_t item, std::int64_t split) {
      sum(bound, item, split, splits_, partial + (item * splits_ + split) * width);
    });
    for (std::int64_t item = 0; item < space_.items(); ++item) {
      gather(item, means + item * width);
      to_mean(item, means + item * width);
    }
    over_pieces([&](std::int64_t item, std::int64_t split) {
      squares(bound, item, split, splits_, means + item * width,
              partial + (item * splits_ + split) * width);
    });
    for (std::int64_t item = 0; item < space_.items(); ++item) {
      gather(item, invs + item * width);
      finish(bound, item, means + item * width, invs + item * width);
    }
    over_pieces([&](std::int64_t item, std::int64_t split) {
      normalise(bound, item, split, splits_, means + item * width, invs + item * width);
    });
  }

  // Box and row are one: a single trip through the prologue.
  void one_row(const Bound& bound, std::int64_t item) const {
    space_.for_rows(item, 0, 1, [&](const Coords& coords, std::int64_t count) {
      alignas(64) T row[kRowLength];
      bound.x.load(coords.data(), count, row);
      T mean = centred_ ? ops_.fold(Fold::sum, Premap::identity, row, count) / count_ : T{0};
      T inv = ops_.squares_about(row, mean, count);
      finish(bound, item, &mean, &inv);
      emit(bound, coords, count, row, {&mean, false}, {&inv, false});
    });
  }

  void sum(const Bound& bound, std::int64_t item, std::int64_t split, std::int64_t splits,
           T* totals) const {
    if (!centred_) return std::fill(totals, totals + space_.most_width(), T{0});
    alignas(64) T row[kRowLength];
    fold_boxes<T, 1>(
        ops_, space_, item, split, splits, Fold::sum,
        [&](const Coords& coords, std::int64_t count, T(&values)[1]) {
          bound.x.load(coords.data(), count, row);
          values[0] = ops_.fold(Fold::sum, Premap::identity, row, count);
        },
        [&](const Coords& coords, std::int64_t count, T*(&accumulators)[1]) {
          bound.x.load(coords.data(), count, row);
          ops_.fold_into(Fold::sum, Premap::identity, row, count, accumulators[0]);
        },
        totals, 0);
  }

  void squares(const Bound& bound, std::int64_t item, std::int64_t split, std::int64_t splits,
               const T* mean, T* totals) const {
    alignas(64) T row[kRowLength];
    fold_boxes<T, 1>(
        ops_, space_, item, split, splits, Fold::sum,
        [&](const Coords& coords, std::int64_t count, T(&values)[1]) {
          bound.x.load(coords.data(), count, row);
          values[0] = ops_.squares_about(row, *mean, count);
        },
        [&](const Coords& coords, std::int64_t count, T*(&accumulators)[1]) {
          bound.x.load(coords.data(), count, row);
          ops_.squares_about_into(row, mean, count, accumulators[0]);
        },
        totals, 0);
  }

  void to_mean(std::int64_t item, T* totals) const {
    Coords coords;
    const std::int64_t width = space_.origin(item, coords);
    for (std::int64_t i = 0; i < width; ++i) totals[i] /= count_;
  }

  // Turns sums of squares into 1 / sqrt(variance + epsilon) and writes the statistics that are
  // asked for.
  void finish(const Bound& bound, std::int64_t item, const T* mean, T* squares_to_inv) const {
    Coords coords;
    const std::int64_t width = space_.origin(item, coords);
    bound.out_mean.store(coords, width, mean);
    if (bound.next_mean.present()) {
      alignas(64) T running[kStripeLength], next[kStripeLength];
      bound.running_mean.load(coords, width, running, nullptr);
      for (std::int64_t i = 0; i < width; ++i)
        next[i] = (1 - bound.momentum) * running[i] + bound.momentum * mean[i];
      bound.next_mean.store(coords, width, next);
    }
    if (bound.next_var.present()) {
      alignas(64) T running[kStripeLength], next[kStripeLength];
      bound.running_var.load(coords, width, running, nullptr);
      const T unbiased = count_ > 1 ? count_ - 1 : count_;
      for (std::int64_t i = 0; i < width; ++i)
        next[i] =
            (1 - bound.momentum) * running[i] + bound.momentum * (squares_to_inv[i] / unbiased);
      bound.next_var.store(coords, width, next);
    }
    for (std::int64_t i = 0; i < width; ++i)
      squares_to_inv[i] = 1 / std::sqrt(squares_to_inv[i] / count_ + bound.epsilon);
    bound.out_inv_variance.store(coords, width, squares_to_inv);
  }

  void load_statistics(const Bound& bound, std::int64_t item, T* mean, T* inv) const {
    Coords coords;
    const std::int64_t width = space_.origin(item, coords);
    if (bound.mean.present()) {
      bound.mean.load(coords, width, mean, nullptr);
      bound.inv_variance.load(coords, width, inv, nullptr);
      return;
    }
    bound.running_mean.load(coords, width, mean, nullptr);
    bound.running_var.load(coords, width, inv, nullptr);
    for (std::int64_t i = 0; i < width; ++i) inv[i] = 1 / std::sqrt(inv[i] + bound.epsilon);
  }

  void normalise(const Bound& bound, std::int64_t item, std::int64_t split, std::int64_t splits,
                 const T* mean, const T* inv) const {
    alignas(64) T row[kRowLength];
    space_.for_rows(item, split, splits, [&](const Coords& coords, std::int64_t count) {
      bound.x.load(coords.data(), count, row);
      emit(bound, coords, count, row, {mean, space_.columns()}, {inv, space_.columns()});
    });
  }

  void emit(const Bound& bound, const Coords& coords, std::int64_t count, T* row, RowArg<T> mean,
            RowArg<T> inv) const {
    // Adding -0 changes nothing, not even the sign of a zero.
    static constexpr T kNoBias = -T{0}, kOne = 1;
    alignas(64) T scale_row[kRowLength];
    alignas(64) T bias_row[kRowLength];
    const RowArg<T> scale = bound.scale.load(coords, count, scale_row, &kOne);
    const RowArg<T> bias = bound.bias.load(coords, count, bias_row, &kNoBias);
    ops_.normalise(row, mean, inv, scale, bias, count, row);
    bound.y.store(coords, count, row);
  }

  const RowOps<T>& ops_;
  BoxSpace space_;
  std::int64_t splits_, grain_;
  bool centred_;  // rms norm takes the mean as 0
  bool given_;    // statistics come as operands
  Single<T> epsilon_, momentum_;
  T count_;
  int partial_ = -1, means_ = -1, invs_ = -1;
  RowProgram<T> x_;
  Operand<T> scale_, bias_, mean_, inv_variance_, running_mean_, running_var_;
  Operand<T> y_, out_mean_, out_inv_variance_, next_mean_, next_var_;
};

}  // namespace

std::unique_ptr<Kernel> build_norm_forward(const Region& region, bool split) {
  return build_for_precision<NormForwardKernel>(region, split);
}

}  // namespace ashlar::cpu

// Forward of all norms: statistics over boxes of x, then the normalised result.
#include <cmath>

#include "cpu/box_space.hpp"
#include "cpu/columns.hpp"
#include "cpu/engines/build.hpp"
#include "cpu/engines/norm_kernels.hpp"
#include "cpu/kernels/norm_rows.hpp"
#include "cpu/kernels/stream.hpp"
#include "cpu/store_to.hpp"
#include "cpu/threads.hpp"
#include "graph/norm_shapes.hpp"
#include "plan/merge_axes.hpp"

namespace ashlar::cpu {

namespace {

using NormIn = NormForward::In;
using NormOut = NormForward::Out;

constexpr std::int64_t kPrefetchElements = 1024;   // elements
constexpr std::int64_t kNormPrefetchBytes = 1024;  // bytes that fit the line-fill buffers

// Operands with axes merged, and the loop over the boxes that share a statistic.
struct NormShape {
  PointwiseProgram x, scale, bias, mean, inv_variance, running_mean, running_var;
  PointwiseProgram y, out_mean, out_inv_variance, next_mean, next_var;
  Dims space, statistics;
  int axis;

  explicit NormShape(const Region& region)
      : x(region.prologues[NormForward::x]),
        scale(input_program(region, NormIn::scale)),
        bias(input_program(region, NormIn::bias)),
        mean(input_program(region, NormIn::mean)),
        inv_variance(input_program(region, NormIn::inv_variance)),
        running_mean(input_program(region, NormIn::running_mean)),
        running_var(input_program(region, NormIn::running_var)),
        y(region.epilogue),
        out_mean(output_program(region.anchor->outputs, NormOut::out_mean)),
        out_inv_variance(output_program(region.anchor->outputs, NormOut::out_inv_variance)),
        next_mean(output_program(region.anchor->outputs, NormOut::next_running_mean)),
        next_var(output_program(region.anchor->outputs, NormOut::next_running_var)),
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
  NormForwardKernel(const Region& region, bool split, StoreTo store_to)
      : NormForwardKernel(region, *region.anchor_as<NormForward>(), NormShape(region), split,
                          store_to) {}

  void run(const KernelContext& context) const override {
    const Bound bound = bind(context);
    if (columns_.width > 0) return run_columns(bound, context);
    if (block_rows_ > 0) return run_blocks(bound, context);
    if (splits_ > 1 && !given_) return run_in_phases(bound, context);
    // Statistics that are operands, or cheap enough for one thread each.
    const std::int64_t splits = given_ ? space_.splits() : 1;
    parallel_for(space_.items() * splits, grain_, [&](std::int64_t begin, std::int64_t end, int) {
      alignas(64) T mean[kStripeLength];
      alignas(64) T inv[kStripeLength];
      for (std::int64_t chunk = begin; chunk < end; ++chunk) {
        const std::int64_t item = chunk / splits;
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
        normalise(bound, item, chunk % splits, splits, mean, inv);
      }
    });
  }

 private:
  struct Bound {
    typename RowProgram<T>::Bound x, last_x;
    typename Operand<T>::Bound scale, bias, mean, inv_variance, running_mean, running_var;
    typename Operand<T>::Bound y, out_mean, out_inv_variance, next_mean, next_var;
    T epsilon, momentum;
  };

  NormForwardKernel(const Region& region, const NormForward& op, const NormShape& shape, bool split,
                    StoreTo store_to)
      : ops_(row_ops<T>()),
        rows_(norm_rows<T>()),
        space_(shape.space, shape.statistics, shape.axis, kLongRow),
        splits_(split ? space_.splits() : 1),
        grain_(items_per_thread(space_.rows() * std::min(kLongRow, space_.box_size()))),
        centred_(op.mode != NormMode::rms),
        given_(op.mode == NormMode::batch && op.phase == NormPhase::inference),
        epsilon_(input_program(region, NormIn::epsilon_tensor), op.epsilon),
        momentum_(input_program(region, NormIn::momentum_tensor), op.momentum),
        count_(static_cast<T>(space_.box_size())),
        x_(without_stores(shape.x), shape.axis),
        last_x_(shape.x, shape.axis) {
    const auto operand = [&](const PointwiseProgram& program) {
      return Operand<T>(program, shape.space, shape.axis);
    };
    scale_ = operand(shape.scale);
    bias_ = operand(shape.bias);
    mean_ = operand(shape.mean);
    inv_variance_ = operand(shape.inv_variance);
    running_mean_ = operand(shape.running_mean);
    running_var_ = operand(shape.running_var);
    y_ = Operand<T>(shape.y, shape.space, shape.axis, store_to);
    out_mean_ = operand(shape.out_mean);
    out_inv_variance_ = operand(shape.out_inv_variance);
    next_mean_ = operand(shape.next_mean);
    next_var_ = operand(shape.next_var);
    if (split)
      plan_columns(shape, store_to);
    else
      plan_blocks(shape, store_to);
    if (columns_.width > 0) {
      const std::int64_t channels =
          space_.items() * space_.max_width() * static_cast<std::int64_t>(sizeof(T));
      partial_ = scratch_layout_.add("partial", columns_.chunks * 2 * channels);
      means_ = scratch_layout_.add("mean", channels);
      invs_ = scratch_layout_.add("inv_variance", channels);
      factors_ = scratch_layout_.add("factor", 2 * channels);
    } else if (splits_ > 1 && !given_) {
      const std::int64_t statistics =
          space_.items() * space_.max_width() * static_cast<std::int64_t>(sizeof(T));
      partial_ = scratch_layout_.add("partial", statistics * splits_);
      means_ = scratch_layout_.add("mean", statistics);
      invs_ = scratch_layout_.add("inv_variance", statistics);
    }
  }

  Bound bind(const KernelContext& context) const {
    return {x_.bind(context),
            last_x_.bind(context),
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
    T* partial = context.scratch<T>(scratch_layout_, partial_);
    T* means = context.scratch<T>(scratch_layout_, means_);
    T* invs = context.scratch<T>(scratch_layout_, invs_);
    const std::int64_t width = space_.max_width();
    const auto over_chunks = [&](auto&& body) {
      parallel_for(space_.items() * splits_, 1, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t chunk = begin; chunk < end; ++chunk)
          body(chunk / splits_, chunk % splits_);
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
    over_chunks([&](std::int64_t item, std::int64_t split) {
      sum(bound, item, split, splits_, partial + (item * splits_ + split) * width);
    });
    for (std::int64_t item = 0; item < space_.items(); ++item) {
      gather(item, means + item * width);
      to_mean(item, means + item * width);
    }
    over_chunks([&](std::int64_t item, std::int64_t split) {
      squares(bound, item, split, splits_, means + item * width,
              partial + (item * splits_ + split) * width);
    });
    for (std::int64_t item = 0; item < space_.items(); ++item) {
      gather(item, invs + item * width);
      finish(bound, item, means + item * width, invs + item * width);
    }
    over_chunks([&](std::int64_t item, std::int64_t split) {
      normalise(bound, item, split, splits_, means + item * width, invs + item * width);
    });
  }

  // Channels last: statistics of blocks of whole rows, merged chunk by chunk, then a second pass
  // over memory, backwards, so that the end of the first pass is still cached.
  void run_columns(const Bound& bound, const KernelContext& context) const {
    const std::int64_t width = columns_.width;
    T* partial = context.scratch<T>(scratch_layout_, partial_);
    T* means = context.scratch<T>(scratch_layout_, means_);
    T* invs = context.scratch<T>(scratch_layout_, invs_);
    T* factors = context.scratch<T>(scratch_layout_, factors_);
    T* biases = factors + width;
    const std::int64_t grain = items_per_thread(columns_.rows / columns_.chunks * width);
    const auto x = flat_x_.bind(context), last_x = flat_last_x_.bind(context);
    const auto y = flat_y_.bind(context);
    if (!given_)
      parallel_for(columns_.chunks, grain, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t chunk = begin; chunk < end; ++chunk)
          column_moments(x, chunk, partial + chunk * 2 * width, partial + (chunk * 2 + 1) * width);
      });
    for (std::int64_t item = 0; item < space_.items(); ++item) {
      Coords coords;
      const std::int64_t boxes = space_.origin(item, coords), first = item * space_.max_width();
      if (given_) {
        load_statistics(bound, item, means + first, invs + first);
      } else {
        gather_moments(partial, first, boxes, means + first, invs + first);
        finish(bound, item, means + first, invs + first);
      }
      static constexpr T kNoBias = -T{0}, kOne = 1;
      alignas(64) T buffer[kStripeLength];
      const RowArg<T> scale = bound.scale.view(coords, boxes, buffer, &kOne);
      ops_.multiply(invs + first, scale, boxes, factors + first);
      const RowArg<T> bias = bound.bias.view(coords, boxes, buffer, &kNoBias);
      for (std::int64_t i = 0; i < boxes; ++i)
        biases[first + i] = bias.data[bias.per_element ? i : 0];
    }
    parallel_for(columns_.chunks, grain, [&](std::int64_t begin, std::int64_t end, int) {
      alignas(64) T buffer[kColumnsBlock];
      for (std::int64_t chunk = end; chunk-- > begin;)
        columns_.for_blocks_backwards(chunk, [&](std::int64_t row, std::int64_t rows) {
          const std::int64_t at = row * width, count = rows * width;
          const T* values = last_x.view(&at, count, buffer);
          const auto place = y.place(&at);
          rows_.normalise_columns(
              values, rows, width, means, factors, biases,
              place.memory != nullptr ? place.memory : buffer,
              {values == buffer ? nullptr : values + kPrefetchElements, place.stream});
          if (place.memory == nullptr) y.store(&at, count, buffer);
        });
    });
  }

  void plan_columns(const NormShape& shape, StoreTo store_to) {
    columns_ = Columns::of(shape.space, shape.statistics, shape.axis);
    PointwiseProgram x = shape.x, y = shape.y;
    const auto per_column = [&](const PointwiseProgram& parameter) {
      return parameter.empty() || element_count(parameter.space) == parameter.space[shape.axis];
    };
    if (columns_.width > 0 &&
        !(per_column(shape.scale) && per_column(shape.bias) && flatten({&x, &y}, shape.axis)))
      columns_ = {};
    if (columns_.width == 0) return;
    flat_x_ = RowProgram<T>(without_stores(x), 0);
    flat_last_x_ = RowProgram<T>(x, 0);
    flat_y_ = RowProgram<T>(y, 0, nullptr, 1, store_to);
  }

  // Dense rows with one statistic each and parameters shared by all: blocks of whole rows.
  void plan_blocks(const NormShape& shape, StoreTo store_to) {
    const std::int64_t width = shape.space[shape.axis];
    const auto shared = [&](const PointwiseProgram& program) {
      return program.empty() ||
             (element_count(program.space) == width && program.space[shape.axis] == width);
    };
    PointwiseProgram x = shape.x, y = shape.y, mean = shape.out_mean, inv = shape.out_inv_variance;
    if (space_.columns() || space_.rows() != 1 || space_.box_size() != width || width > kLongRow ||
        space_.items() == 0 || given_ || !shared(shape.scale) || !shared(shape.bias) ||
        !shape.next_mean.empty() || !shape.next_var.empty() || !flatten({&x, &y}, shape.axis) ||
        (!mean.empty() && !flatten({&mean}, shape.axis)) ||
        (!inv.empty() && !flatten({&inv}, shape.axis)))
      return;
    block_rows_ = kLongRow / width;
    flat_last_x_ = RowProgram<T>(x, 0);
    flat_y_ = RowProgram<T>(y, 0, nullptr, 1, store_to);
    if (!mean.empty()) flat_mean_ = RowProgram<T>(mean, 0);
    if (!inv.empty()) flat_inv_ = RowProgram<T>(inv, 0);
  }

  void run_blocks(const Bound& bound, const KernelContext& context) const {
    const std::int64_t width = space_.box_size();
    const auto x = flat_last_x_.bind(context), y = flat_y_.bind(context);
    typename RowProgram<T>::Bound out_mean, out_inv;
    if (out_mean_.present()) out_mean = flat_mean_.bind(context);
    if (out_inv_variance_.present()) out_inv = flat_inv_.bind(context);
    const std::int64_t blocks = (space_.items() + block_rows_ - 1) / block_rows_;
    parallel_for(blocks, items_per_thread(block_rows_ * width),
                 [&](std::int64_t begin, std::int64_t end, int) {
                   alignas(64) T buffer[kLongRow], scale[kLongRow], bias[kLongRow];
                   alignas(64) T means[kLongRow], invs[kLongRow];
                   std::fill(scale, scale + width, T{1});
                   // Adding -0 changes nothing, not even the sign of a zero.
                   std::fill(bias, bias + width, -T{0});
                   if (bound.scale.present()) bound.scale.load({}, width, scale, nullptr);
                   if (bound.bias.present()) bound.bias.load({}, width, bias, nullptr);
                   for (std::int64_t block = begin; block < end; ++block) {
                     const std::int64_t first = block * block_rows_, at = first * width;
                     const std::int64_t rows = std::min(block_rows_, space_.items() - first);
                     const T* values = x.view(&at, rows * width, buffer);
                     const auto place = y.place(&at);
                     rows_.norm_block(values, rows, width, centred_, bound.epsilon, scale, bias,
                                      means, invs, place.memory != nullptr ? place.memory : buffer,
                                      {values == buffer ? nullptr : values + width, place.stream});
                     if (place.memory == nullptr) y.store(&at, rows * width, buffer);
                     if (out_mean_.present()) out_mean.store(&first, rows, means);
                     if (out_inv_variance_.present()) out_inv.store(&first, rows, invs);
                   }
                 });
  }

  // Merges the chunks' moments of columns [first, first + count).
  void gather_moments(const T* partial, std::int64_t first, std::int64_t count, T* means,
                      T* squares) const {
    for (std::int64_t i = 0; i < count; ++i) {
      double mean = 0, square = 0;
      for (std::int64_t chunk = 0; chunk < columns_.chunks; ++chunk) {
        const T* of_piece = partial + chunk * 2 * columns_.width + first + i;
        merge_moments(columns_.first_row(chunk), &mean, &square, columns_.rows_of(chunk), of_piece,
                      of_piece + columns_.width, 1);
      }
      means[i] = static_cast<T>(mean);
      squares[i] = static_cast<T>(square);
    }
  }

  // Mean and sum of squared deviations of every column of a chunk.
  void column_moments(const typename RowProgram<T>::Bound& x, std::int64_t chunk, T* means,
                      T* squares) const {
    const std::int64_t width = columns_.width;
    alignas(64) T buffer[kColumnsBlock];
    alignas(64) T mean[kMaxColumns], square[kMaxColumns];
    std::fill(means, means + width, T{0});
    std::fill(squares, squares + width, T{0});
    std::int64_t seen = 0;
    columns_.for_blocks(chunk, [&](std::int64_t row, std::int64_t rows) {
      const std::int64_t at = row * width;
      const T* values = x.view(&at, rows * width, buffer);
      std::fill(mean, mean + width, T{0});
      std::fill(square, square + width, T{0});
      rows_.add_columns(values, rows, width, mean);
      const T inverse = T{1} / static_cast<T>(rows);
      ops_.multiply(mean, {&inverse, false}, width, mean);
      rows_.add_column_squares(values, rows, width, mean, square);
      merge_moments(seen, means, squares, rows, mean, square, width);
      seen += rows;
    });
  }

  // A box is one row: a single pass through the prologue.
  void one_row(const Bound& bound, std::int64_t item) const {
    space_.for_rows(item, 0, 1, [&](const Coords& coords, std::int64_t count) {
      alignas(64) T buffer[kLongRow];
      const T* row = bound.last_x.view(coords.data(), count, buffer);
      // Rows are mostly contiguous: prefetches the next one.
      const T* prefetch = row == buffer ? nullptr : row + count;
      if (prefetch != nullptr) prefetch_to_l1(prefetch, kNormPrefetchBytes);
      T mean = centred_ ? ops_.fold(Fold::sum, Premap::identity, row, count) / count_ : T{0};
      if (prefetch != nullptr)
        prefetch_to_l1(prefetch + kNormPrefetchBytes / sizeof(T), kNormPrefetchBytes);
      T inv = ops_.squares_about(row, mean, count);
      finish(bound, item, &mean, &inv);
      emit(bound, coords, count, row, {&mean, false}, {&inv, false}, buffer, prefetch);
    });
  }

  void sum(const Bound& bound, std::int64_t item, std::int64_t split, std::int64_t splits,
           T* totals) const {
    if (!centred_) return std::fill(totals, totals + space_.max_width(), T{0});
    alignas(64) T buffer[kLongRow];
    fold_boxes<T, 1>(
        ops_, space_, item, split, splits, Fold::sum,
        [&](const Coords& coords, std::int64_t count, T(&values)[1]) {
          const T* row = bound.x.view(coords.data(), count, buffer);
          values[0] = ops_.fold(Fold::sum, Premap::identity, row, count);
        },
        [&](const Coords& coords, std::int64_t count, T*(&accumulators)[1]) {
          const T* row = bound.x.view(coords.data(), count, buffer);
          ops_.fold_into(Fold::sum, Premap::identity, row, count, accumulators[0]);
        },
        totals, 0);
  }

  void squares(const Bound& bound, std::int64_t item, std::int64_t split, std::int64_t splits,
               const T* mean, T* totals) const {
    alignas(64) T buffer[kLongRow];
    fold_boxes<T, 1>(
        ops_, space_, item, split, splits, Fold::sum,
        [&](const Coords& coords, std::int64_t count, T(&values)[1]) {
          const T* row = bound.x.view(coords.data(), count, buffer);
          values[0] = ops_.squares_about(row, *mean, count);
        },
        [&](const Coords& coords, std::int64_t count, T*(&accumulators)[1]) {
          const T* row = bound.x.view(coords.data(), count, buffer);
          ops_.squares_about_into(row, mean, count, accumulators[0]);
        },
        totals, 0);
  }

  void to_mean(std::int64_t item, T* totals) const {
    Coords coords;
    const std::int64_t width = space_.origin(item, coords);
    for (std::int64_t i = 0; i < width; ++i) totals[i] /= count_;
  }

  // Turns sums of squares into 1 / sqrt(variance + epsilon) and stores the requested statistics.
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
    alignas(64) T buffer[kLongRow];
    space_.for_rows(item, split, splits, [&](const Coords& coords, std::int64_t count) {
      const T* row = bound.last_x.view(coords.data(), count, buffer);
      emit(bound, coords, count, row, {mean, space_.columns()}, {inv, space_.columns()}, buffer,
           nullptr);
    });
  }

  void emit(const Bound& bound, const Coords& coords, std::int64_t count, const T* row,
            RowArg<T> mean, RowArg<T> inv, T* buffer, const void* prefetch) const {
    // Adding -0 changes nothing, not even the sign of a zero.
    static constexpr T kNoBias = -T{0}, kOne = 1;
    alignas(64) T scale_row[kLongRow];
    alignas(64) T bias_row[kLongRow];
    const RowArg<T> scale = bound.scale.view(coords, count, scale_row, &kOne);
    const RowArg<T> bias = bound.bias.view(coords, count, bias_row, &kNoBias);
    const auto place = bound.y.place(coords);
    T* y = place.memory != nullptr ? place.memory : buffer;
    rows_.normalise(row, mean, inv, scale, bias, count, y, {prefetch, place.stream});
    if (place.memory == nullptr) bound.y.store(coords, count, buffer);
  }

  const RowOps<T>& ops_;
  const NormRows<T>& rows_;
  BoxSpace space_;
  std::int64_t splits_, grain_;
  bool centred_;  // RMS norm has mean 0
  bool given_;    // statistics are operands
  Single<T> epsilon_, momentum_;
  T count_;
  int partial_ = -1, means_ = -1, invs_ = -1, factors_ = -1;
  Columns columns_;
  std::int64_t block_rows_ = 0;                                         // 0: not in blocks of rows
  RowProgram<T> flat_x_, flat_last_x_, flat_y_, flat_mean_, flat_inv_;  // as one dense row
  RowProgram<T> x_, last_x_;
  Operand<T> scale_, bias_, mean_, inv_variance_, running_mean_, running_var_;
  Operand<T> y_, out_mean_, out_inv_variance_, next_mean_, next_var_;
};

}  // namespace

std::unique_ptr<Kernel> build_norm_forward(const Region& region, bool split,
                                           const DeviceProps& device) {
  return build_for_precision<NormForwardKernel>(region, split, store_to(region.epilogue, device));
}

}  // namespace ashlar::cpu

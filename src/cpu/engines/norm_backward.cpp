// Gradients of all norms: sums over the boxes that share a statistic, then dx and the parameters.
#include <cmath>

#include "cpu/box_space.hpp"
#include "cpu/columns.hpp"
#include "cpu/engines/build.hpp"
#include "cpu/engines/norm_backward_shape.hpp"
#include "cpu/engines/norm_kernels.hpp"
#include "cpu/kernels/norm_rows.hpp"
#include "cpu/store_to.hpp"
#include "cpu/threads.hpp"

namespace ashlar::cpu {

namespace {

using GradientIn = NormBackward::In;

using GradientShape = NormBackwardShape;

// One value per statistic, in scratch, the row axis fastest.
class StatisticsGrid {
 public:
  StatisticsGrid() = default;
  StatisticsGrid(const Dims& space, const Dims& statistics, int axis)
      : rank_(space.rank()), axis_(axis) {
    std::int64_t step = statistics[axis];
    for (int a = rank_ - 1; a >= 0; --a) {
      const auto i = static_cast<std::size_t>(a);
      ratio_[i] = std::max<std::int64_t>(space[a] / std::max<std::int64_t>(statistics[a], 1), 1);
      stride_[i] = a == axis ? 1 : step;
      if (a != axis) step *= statistics[a];
    }
  }
  std::int64_t position(const Coords& coords) const {
    std::int64_t result = 0;
    for (std::size_t a = 0; a < static_cast<std::size_t>(rank_); ++a)
      result += coords[a] / ratio_[a] * stride_[a];
    return result;
  }
  // The values of a row; `buffer` is used if a row crosses boxes wider than one element.
  template <class T>
  RowArg<T> row(const T* values, const Coords& coords, std::int64_t count, T* buffer) const {
    const T* first = values + position(coords);
    const std::int64_t ratio = ratio_[static_cast<std::size_t>(axis_)];
    if (ratio == 1) return {first, true};
    const std::int64_t within = coords[static_cast<std::size_t>(axis_)] % ratio;
    if (within + count <= ratio) return {first, false};
    for (std::int64_t i = 0; i < count; ++i) buffer[i] = first[(within + i) / ratio];
    return {buffer, true};
  }

 private:
  int rank_ = 0, axis_ = 0;
  Coords ratio_{}, stride_{};
};

template <class T>
class NormBackwardKernel final : public Kernel {
 public:
  NormBackwardKernel(const Region& region, bool split, StoreTo store_to)
      : NormBackwardKernel(region, *region.anchor_as<NormBackward>(), GradientShape(region), split,
                           store_to) {}

  void run(const KernelContext& context) const override {
    Run run{context, *this};
    run.find_statistics();
    if (columns_.width > 0) return run.gradients_of_columns();
    if (run.dx.present()) run.input_gradient();
    const bool wanted = run.dscale.present() || run.dbias.present();
    if (wanted && !(shared_ && run.dx.present())) run.parameter_gradients();
  }

 private:
  static constexpr T kZero = 0, kOne = 1;

  NormBackwardKernel(const Region& region, const NormBackward& op, const GradientShape& shape,
                     bool split, StoreTo store_to)
      : ops_(row_ops<T>()),
        row_kernels_(norm_rows<T>()),
        boxes_(shape.space, shape.statistics, shape.axis),
        parameters_(shape.space, shape.parameters, shape.axis),
        grid_(shape.space, shape.statistics, shape.axis),
        splits_(split ? boxes_.splits() : 1),
        parameter_splits_(split ? parameters_.splits() : 1),
        shared_(shape.statistics == shape.parameters),
        centred_(op.mode != NormMode::rms),
        epsilon_(input_program(region, GradientIn::epsilon_tensor), op.epsilon),
        count_(static_cast<T>(boxes_.box_size())),
        x_(shape.x, shape.axis),
        dy_(without_stores(shape.dy), shape.axis),
        dy_written_(shape.dy, shape.axis) {
    const auto operand = [&](const PointwiseProgram& program) {
      return Operand<T>(program, shape.space, shape.axis);
    };
    scale_ = operand(shape.scale);
    mean_ = operand(shape.mean);
    inv_variance_ = operand(shape.inv_variance);
    dx_ = Operand<T>(shape.dx, shape.space, shape.axis, store_to);
    dscale_ = operand(shape.dscale);
    dbias_ = operand(shape.dbias);

    constexpr auto kSize = static_cast<std::int64_t>(sizeof(T));
    const std::int64_t statistics = element_count(shape.statistics) * kSize;
    means_ = scratch_layout_.add("mean", statistics);
    invs_ = scratch_layout_.add("inv_variance", statistics);
    gradients_ = scratch_layout_.add("mean of g", statistics);
    products_ = scratch_layout_.add("mean of g x_hat", statistics);
    const auto chunks = [](const BoxSpace& space, std::int64_t splits) {
      return 2 * space.items() * splits * space.max_width();
    };
    if (split && shared_ && dx_.present()) plan_columns(shape, store_to);
    partial_ = scratch_layout_.add(
        "partial sums",
        kSize * std::max({chunks(boxes_, splits_), chunks(parameters_, parameter_splits_),
                          2 * columns_.chunks * columns_.width}));
    if (columns_.width > 0) factors_ = scratch_layout_.add("factor", statistics);
  }

  void plan_columns(const GradientShape& shape, StoreTo store_to) {
    columns_ = Columns::of(shape.space, shape.statistics, shape.axis);
    PointwiseProgram x = shape.x, dy = shape.dy, dx = shape.dx;
    if (columns_.width > 0 && !flatten({&x, &dy, &dx}, shape.axis)) columns_ = {};
    if (columns_.width == 0) return;
    flat_x_ = RowProgram<T>(x, 0);
    flat_dy_ = RowProgram<T>(without_stores(dy), 0);
    flat_dy_written_ = RowProgram<T>(dy, 0);
    flat_dx_ = RowProgram<T>(dx, 0, nullptr, 1, store_to);
  }

  // Pointers of one run, and the phases of the work.
  struct Run {
    const KernelContext& context;
    const NormBackwardKernel& kernel;
    const RowOps<T>& ops = kernel.ops_;
    typename RowProgram<T>::Bound x = kernel.x_.bind(context), dy = kernel.dy_.bind(context),
                                  dy_written = kernel.dy_written_.bind(context);
    typename Operand<T>::Bound scale = kernel.scale_.bind(context),
                               mean = kernel.mean_.bind(context),
                               inv_variance = kernel.inv_variance_.bind(context),
                               dx = kernel.dx_.bind(context), dscale = kernel.dscale_.bind(context),
                               dbias = kernel.dbias_.bind(context);
    T epsilon = kernel.epsilon_.load(context);
    T* means = context.scratch<T>(kernel.scratch_layout_, kernel.means_);
    T* invs = context.scratch<T>(kernel.scratch_layout_, kernel.invs_);
    T* gradients = context.scratch<T>(kernel.scratch_layout_, kernel.gradients_);
    T* products = context.scratch<T>(kernel.scratch_layout_, kernel.products_);
    T* partial = context.scratch<T>(kernel.scratch_layout_, kernel.partial_);

    // Per-thread buffers.
    struct Rows {
      alignas(64) T x_hat[kRowLength], gradient[kRowLength],
          statistics[2][kRowLength], parameter[kRowLength];
    };

    void find_statistics() const {
      const BoxSpace& boxes = kernel.boxes_;
      parallel_for(boxes.items(), 1, [&](std::int64_t begin, std::int64_t end, int) {
        Rows rows;
        for (std::int64_t item = begin; item < end; ++item) {
          Coords coords;
          const std::int64_t width = boxes.origin(item, coords);
          T* item_mean = means + kernel.grid_.position(coords);
          T* item_inv = invs + kernel.grid_.position(coords);
          std::fill(item_mean, item_mean + width, T{0});
          if (inv_variance.present()) {
            inv_variance.load(coords, width, item_inv, nullptr);
            if (mean.present()) mean.load(coords, width, item_mean, nullptr);
            continue;
          }
          if (kernel.centred_) {
            fold(
                boxes, item, 0, 1, item_mean, rows.x_hat,
                [&](const T* row, std::int64_t n) {
                  return ops.fold(Fold::sum, Premap::identity, row, n);
                },
                [&](const T* row, std::int64_t n, T* sums) {
                  ops.fold_into(Fold::sum, Premap::identity, row, n, sums);
                });
            for (std::int64_t i = 0; i < width; ++i) item_mean[i] /= kernel.count_;
          }
          fold(
              boxes, item, 0, 1, item_inv, rows.x_hat,
              [&](const T* row, std::int64_t n) { return ops.squares_about(row, *item_mean, n); },
              [&](const T* row, std::int64_t n, T* sums) {
                ops.squares_about_into(row, item_mean, n, sums);
              });
          for (std::int64_t i = 0; i < width; ++i)
            item_inv[i] = 1 / std::sqrt(item_inv[i] / kernel.count_ + epsilon);
        }
      });
    }

    template <class ByRow, class ByColumn>
    void fold(const BoxSpace& space, std::int64_t item, std::int64_t split, std::int64_t splits,
              T* totals, T* row, ByRow&& by_row, ByColumn&& by_column) const {
      fold_boxes<T, 1>(
          ops, space, item, split, splits, Fold::sum,
          [&](const Coords& coords, std::int64_t n, T(&values)[1]) {
            values[0] = by_row(x.view(coords.data(), n, row), n);
          },
          [&](const Coords& coords, std::int64_t n, T*(&sums)[1]) {
            by_column(x.view(coords.data(), n, row), n, sums[0]);
          },
          totals, 0);
    }

    // x_hat and, if `scaled`, g = gradient * scale (else the gradient) of one row. Returns g.
    const T* load_rows(const typename RowProgram<T>::Bound& gradient, const Coords& coords,
                       std::int64_t n, bool scaled, Rows& rows) const {
      const T* x_row = x.view(coords.data(), n, rows.x_hat);
      const T* g = gradient.view(coords.data(), n, rows.gradient);
      const RowArg<T> m = kernel.grid_.row(means, coords, n, rows.statistics[0]);
      const RowArg<T> inv = kernel.grid_.row(invs, coords, n, rows.statistics[1]);
      ops.normalise(x_row, m, inv, {&kOne, false}, {&kZero, false}, n, rows.x_hat);
      if (!scaled || !scale.present()) return g;
      ops.multiply(g, scale.view(coords, n, rows.parameter, &kOne), n, rows.gradient);
      return rows.gradient;
    }

    // Sums of the gradient and of gradient * x_hat over one chunk, into partial.
    void sum_chunk(const BoxSpace& space, std::int64_t chunk, std::int64_t splits, bool scaled,
                   Rows& rows) const {
      const std::int64_t width = space.max_width();
      fold_boxes<T, 2>(
          ops, space, chunk / splits, chunk % splits, splits, Fold::sum,
          [&](const Coords& coords, std::int64_t n, T(&values)[2]) {
            const T* g = load_rows(dy, coords, n, scaled, rows);
            values[0] = ops.fold(Fold::sum, Premap::identity, g, n);
            values[1] = ops.dot(g, rows.x_hat, n);
          },
          [&](const Coords& coords, std::int64_t n, T*(&sums)[2]) {
            const T* g = load_rows(dy, coords, n, scaled, rows);
            ops.fold_into(Fold::sum, Premap::identity, g, n, sums[0]);
            ops.dot_into(g, rows.x_hat, n, sums[1]);
          },
          partial + chunk * 2 * width, width);
    }

    // Totals of quantity q (0: gradients, 1: gradient * x_hat) over an item's chunks.
    void gather(const BoxSpace& space, std::int64_t item, std::int64_t splits, int q,
                std::int64_t boxes, T* totals) const {
      const std::int64_t width = space.max_width();
      for (std::int64_t i = 0; i < boxes; ++i) {
        double total = 0;
        for (std::int64_t split = 0; split < splits; ++split)
          total += static_cast<double>(partial[((item * splits + split) * 2 + q) * width + i]);
        totals[i] = static_cast<T>(total);
      }
    }

    void input_gradient() const {
      const BoxSpace& boxes = kernel.boxes_;
      const std::int64_t splits = kernel.splits_;
      const auto finish = [&](std::int64_t item) {
        Coords coords;
        const std::int64_t width = boxes.origin(item, coords);
        T* g = gradients + kernel.grid_.position(coords);
        T* gx = products + kernel.grid_.position(coords);
        gather(boxes, item, splits, 0, width, g);
        gather(boxes, item, splits, 1, width, gx);
        if (kernel.shared_) {
          dbias.store(coords, width, g);
          dscale.store(coords, width, gx);
          alignas(64) T buffer[kStripeLength];
          const RowArg<T> factor = scale.view(coords, width, buffer, &kOne);
          ops.multiply(g, factor, width, g);
          ops.multiply(gx, factor, width, gx);
        }
        for (std::int64_t i = 0; i < width; ++i) {
          g[i] = kernel.centred_ ? g[i] / kernel.count_ : T{0};
          gx[i] /= kernel.count_;
        }
      };
      const auto emit = [&](std::int64_t chunk, Rows& rows) {
        boxes.for_rows(
            chunk / splits, chunk % splits, splits, [&](const Coords& coords, std::int64_t n) {
              const T* row = load_rows(dy_written, coords, n, true, rows);
              const RowArg<T> g = kernel.grid_.row(gradients, coords, n, rows.statistics[0]);
              const RowArg<T> gx = kernel.grid_.row(products, coords, n, rows.statistics[0]);
              const RowArg<T> inv = kernel.grid_.row(invs, coords, n, rows.statistics[1]);
              const auto place = dx.place(coords);
              kernel.row_kernels_.gradient(row, rows.x_hat, g, gx, inv, n,
                                           place.memory != nullptr ? place.memory : rows.gradient,
                                           {nullptr, place.stream});
              if (place.memory == nullptr) dx.store(coords, n, rows.gradient);
            });
      };
      if (splits == 1) {
        parallel_for(boxes.items(), 1, [&](std::int64_t begin, std::int64_t end, int) {
          Rows rows;
          for (std::int64_t item = begin; item < end; ++item) {
            sum_chunk(boxes, item, 1, !kernel.shared_, rows);
            finish(item);
            emit(item, rows);
          }
        });
        return;
      }
      over_chunks(boxes, splits, [&](std::int64_t chunk, Rows& rows) {
        sum_chunk(boxes, chunk, splits, !kernel.shared_, rows);
      });
      for (std::int64_t item = 0; item < boxes.items(); ++item) finish(item);
      over_chunks(boxes, splits, emit);
    }

    void parameter_gradients() const {
      const BoxSpace& space = kernel.parameters_;
      const std::int64_t splits = kernel.parameter_splits_;
      over_chunks(space, splits, [&](std::int64_t chunk, Rows& rows) {
        sum_chunk(space, chunk, splits, false, rows);
      });
      alignas(64) T totals[kStripeLength];
      for (std::int64_t item = 0; item < space.items(); ++item) {
        Coords coords;
        const std::int64_t width = space.origin(item, coords);
        gather(space, item, splits, 0, width, totals);
        dbias.store(coords, width, totals);
        gather(space, item, splits, 1, width, totals);
        dscale.store(coords, width, totals);
      }
    }

    // Channels last: sums over blocks of whole rows, then dx in a second pass over memory,
    // backwards, so that the end of the first pass is still cached.
    void gradients_of_columns() const {
      const Columns& columns = kernel.columns_;
      const NormRows<T>& blocks = kernel.row_kernels_;
      const std::int64_t width = columns.width;
      const std::int64_t grain = items_per_thread(columns.rows / columns.chunks * width);
      T* factors = context.scratch<T>(kernel.scratch_layout_, kernel.factors_);
      const auto flat_x = kernel.flat_x_.bind(context), flat_dy = kernel.flat_dy_.bind(context),
                 flat_dy_written = kernel.flat_dy_written_.bind(context),
                 flat_dx = kernel.flat_dx_.bind(context);
      parallel_for(columns.chunks, grain, [&](std::int64_t begin, std::int64_t end, int) {
        alignas(64) T x_buffer[kColumnsBlock], dy_buffer[kColumnsBlock];
        alignas(64) T sums[kMaxColumns], dots[kMaxColumns];
        for (std::int64_t chunk = begin; chunk < end; ++chunk) {
          T *chunk_sums = partial + chunk * 2 * width, *chunk_dots = chunk_sums + width;
          std::fill(chunk_sums, chunk_sums + 2 * width, T{0});
          columns.for_blocks(chunk, [&](std::int64_t row, std::int64_t rows) {
            const std::int64_t at = row * width, count = rows * width;
            std::fill(sums, sums + width, T{0});
            std::fill(dots, dots + width, T{0});
            blocks.add_column_products(flat_dy.view(&at, count, dy_buffer),
                                       flat_x.view(&at, count, x_buffer), rows, width, means, invs,
                                       sums, dots);
            ops.fold_into(Fold::sum, Premap::identity, sums, width, chunk_sums);
            ops.fold_into(Fold::sum, Premap::identity, dots, width, chunk_dots);
          });
        }
      });
      const auto total = [&](std::int64_t channel, std::int64_t q) {
        double sum = 0;
        for (std::int64_t chunk = 0; chunk < columns.chunks; ++chunk)
          sum += static_cast<double>(partial[(chunk * 2 + q) * width + channel]);
        return static_cast<T>(sum);
      };
      for (std::int64_t item = 0; item < kernel.boxes_.items(); ++item) {
        Coords coords;
        const std::int64_t boxes = kernel.boxes_.origin(item, coords);
        const std::int64_t first = kernel.grid_.position(coords);
        T *g = gradients + first, *gx = products + first;
        for (std::int64_t i = 0; i < boxes; ++i) {
          g[i] = total(first + i, 0);
          gx[i] = total(first + i, 1);
        }
        dbias.store(coords, boxes, g);
        dscale.store(coords, boxes, gx);
        alignas(64) T buffer[kStripeLength];
        const RowArg<T> scales = scale.view(coords, boxes, buffer, &kOne);
        ops.multiply(invs + first, scales, boxes, factors + first);
        for (std::int64_t i = 0; i < boxes; ++i) {
          g[i] /= kernel.count_;
          gx[i] /= kernel.count_;
        }
      }
      parallel_for(columns.chunks, grain, [&](std::int64_t begin, std::int64_t end, int) {
        alignas(64) T x_buffer[kColumnsBlock], dy_buffer[kColumnsBlock];
        for (std::int64_t chunk = end; chunk-- > begin;)
          columns.for_blocks_backwards(chunk, [&](std::int64_t row, std::int64_t rows) {
            const std::int64_t at = row * width, count = rows * width;
            const T* dy_values = flat_dy_written.view(&at, count, dy_buffer);
            const T* x_values = flat_x.view(&at, count, x_buffer);
            const auto place = flat_dx.place(&at);
            blocks.column_gradient(
                dy_values, x_values, rows, width, means, invs, gradients, products, factors,
                place.memory != nullptr ? place.memory : dy_buffer, {nullptr, place.stream});
            if (place.memory == nullptr) flat_dx.store(&at, count, dy_buffer);
          });
      });
    }

    template <class Body>
    void over_chunks(const BoxSpace& space, std::int64_t splits, Body&& body) const {
      parallel_for(space.items() * splits, 1, [&](std::int64_t begin, std::int64_t end, int) {
        Rows rows;
        for (std::int64_t chunk = begin; chunk < end; ++chunk) body(chunk, rows);
      });
    }
  };

  const RowOps<T>& ops_;
  const NormRows<T>& row_kernels_;
  BoxSpace boxes_, parameters_;
  StatisticsGrid grid_;
  std::int64_t splits_, parameter_splits_;
  bool shared_;   // a statistic per parameter: the sums for dx are the parameter gradients
  bool centred_;  // RMS norm has mean 0
  Single<T> epsilon_;
  T count_;
  int means_, invs_, gradients_, products_, partial_;
  int factors_ = -1;
  Columns columns_;
  RowProgram<T> x_, dy_, dy_written_;
  RowProgram<T> flat_x_, flat_dy_, flat_dy_written_, flat_dx_;  // as [positions, channels] matrices
  Operand<T> scale_, mean_, inv_variance_, dx_, dscale_, dbias_;
};

}  // namespace

std::unique_ptr<Kernel> build_norm_backward(const Region& region, bool split,
                                            const DeviceProps& device) {
  if (auto kernel = build_norm_backward_rows(region, device)) return kernel;
  return build_for_precision<NormBackwardKernel>(region, split, store_to(region.epilogue, device));
}

}  // namespace ashlar::cpu

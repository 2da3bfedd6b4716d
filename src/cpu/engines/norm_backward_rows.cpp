// Backward of norms with a statistic per row and parameters shared by all rows (layer norm, RMS
// norm) in one pass over memory: blocks of rows yield dx and partial parameter gradients while in
// cache.
#include <cmath>

#include "cpu/columns.hpp"
#include "cpu/engines/build.hpp"
#include "cpu/engines/norm_backward_shape.hpp"
#include "cpu/engines/norm_kernels.hpp"
#include "cpu/kernels/norm_rows.hpp"
#include "cpu/store_to.hpp"

namespace ashlar::cpu {

namespace {

constexpr std::int64_t kBlock = 8192;  // elements of a block of rows, and maximum row length
constexpr std::int64_t kStripe = 512;  // parameters at once
// partials of the sums over rows; independent of the thread count
constexpr std::int64_t kMaxPieces = 32;

template <class T>
class NormBackwardRowsKernel final : public Kernel {
 public:
  NormBackwardRowsKernel(const Region& region, const NormBackwardShape& shape, StoreTo store_to)
      : ops_(row_ops<T>()),
        kernels_(norm_rows<T>()),
        width_(shape.space[shape.axis]),
        rows_(element_count(shape.space) / width_),
        block_rows_(kBlock / width_),
        chunks_(std::clamp<std::int64_t>(rows_ / block_rows_, 1, kMaxPieces)),
        centred_(region.anchor_as<NormBackward>()->mode != NormMode::rms),
        epsilon_(input_program(region, NormBackward::epsilon_tensor),
                 region.anchor_as<NormBackward>()->epsilon),
        x_(flat(shape.x, shape.axis), 0),
        dy_(flat(shape.dy, shape.axis), 0),
        dx_(flat(shape.dx, shape.axis), 0, nullptr, 1, store_to),
        scale_(shape.scale, shape.space, shape.axis),
        dscale_(shape.dscale, shape.space, shape.axis),
        dbias_(shape.dbias, shape.space, shape.axis),
        axis_(static_cast<std::size_t>(shape.axis)) {
    if (!shape.mean.empty()) mean_ = RowProgram<T>(flat(shape.mean, shape.axis), 0);
    if (!shape.inv_variance.empty()) inv_ = RowProgram<T>(flat(shape.inv_variance, shape.axis), 0);
    has_mean_ = !shape.mean.empty();
    has_inv_ = !shape.inv_variance.empty();
    partial_ = scratch_layout_.add("partial sums",
                                   chunks_ * 2 * width_ * static_cast<std::int64_t>(sizeof(T)));
  }

  // Whether the layout of the tensors suits this kernel.
  static bool fits(const NormBackwardShape& shape) {
    const std::int64_t elements = element_count(shape.space);
    if (shape.dx.empty() || elements == 0) return false;
    const std::int64_t width = shape.space[shape.axis];
    const auto is_shared = [&](const Dims& dims) {
      return element_count(dims) == width && dims[shape.axis] == width;
    };
    if (width > kBlock || element_count(shape.statistics) * width != elements ||
        shape.statistics[shape.axis] != 1 || !is_shared(shape.parameters))
      return false;
    PointwiseProgram x = shape.x, dy = shape.dy, dx = shape.dx, mean = shape.mean,
                     inv = shape.inv_variance;
    return flatten({&x, &dy, &dx}, shape.axis) && (mean.empty() || flatten({&mean}, shape.axis)) &&
           (inv.empty() || flatten({&inv}, shape.axis));
  }

  void run(const KernelContext& context) const override {
    const Bound bound{x_.bind(context),
                      dy_.bind(context),
                      dx_.bind(context),
                      has_mean_ ? mean_.bind(context) : typename RowProgram<T>::Bound(),
                      has_inv_ ? inv_.bind(context) : typename RowProgram<T>::Bound(),
                      epsilon_.load(context)};
    const auto scale = scale_.bind(context);
    T* partial = context.scratch<T>(scratch_layout_, partial_);
    parallel_for(chunks_, items_per_thread(rows_ / chunks_ * width_),
                 [&](std::int64_t begin, std::int64_t end, int) {
                   alignas(64) T scales[kBlock];
                   std::fill(scales, scales + width_, T{1});
                   if (scale.present()) scale.load({}, width_, scales, nullptr);
                   for (std::int64_t chunk = begin; chunk < end; ++chunk)
                     run_chunk(bound, scales, chunk, partial + chunk * 2 * width_);
                 });
    const auto dscale = dscale_.bind(context), dbias = dbias_.bind(context);
    if (!dscale.present() && !dbias.present()) return;
    parallel_for((width_ + kStripe - 1) / kStripe, items_per_thread(kStripe * chunks_),
                 [&](std::int64_t begin, std::int64_t end, int) {
                   for (std::int64_t stripe = begin; stripe < end; ++stripe) {
                     store_total(dbias, partial, stripe * kStripe);
                     store_total(dscale, partial + width_, stripe * kStripe);
                   }
                 });
  }

 private:
  struct Bound {
    typename RowProgram<T>::Bound x, dy, dx, mean, inv;
    T epsilon;
  };

  static PointwiseProgram flat(PointwiseProgram program, int axis) {
    flatten({&program}, axis);
    return program;
  }

  // dx of the chunk's rows, and the sums of dy and dy * x_hat over them.
  void run_chunk(const Bound& bound, const T* scales, std::int64_t chunk, T* sums) const {
    alignas(64) T x_buffer[kBlock], dy_buffer[kBlock];
    alignas(64) T means[kBlock], invs[kBlock];  // rows may be one element long
    std::fill(sums, sums + 2 * width_, T{0});
    const std::int64_t end = rows_ * (chunk + 1) / chunks_;
    for (std::int64_t row = rows_ * chunk / chunks_; row < end; row += block_rows_) {
      const std::int64_t rows = std::min(block_rows_, end - row);
      const std::int64_t at = row * width_, count = rows * width_;
      const T* x = bound.x.view(&at, count, x_buffer);
      const T* dy = bound.dy.view(&at, count, dy_buffer);
      find_statistics(bound, x, row, rows, means, invs);
      kernels_.add_row_products(dy, x, rows, width_, means, invs, sums, sums + width_);
      const auto place = bound.dx.place(&at);
      T* const target = place.memory != nullptr ? place.memory : dy_buffer;
      kernels_.gradient_block(dy, x, rows, width_, centred_, scales, means, invs, target,
                              {x == x_buffer ? nullptr : x + count, place.stream});
      if (place.memory == nullptr) bound.dx.store(&at, count, target);
    }
  }

  void find_statistics(const Bound& bound, const T* x, std::int64_t row, std::int64_t rows,
                       T* means, T* invs) const {
    std::fill(means, means + rows, T{0});
    if (has_inv_) {
      if (has_mean_) bound.mean.load(&row, rows, means);
      return bound.inv.load(&row, rows, invs);
    }
    const T count = static_cast<T>(width_);
    for (std::int64_t i = 0; i < rows; ++i, x += width_) {
      if (centred_) means[i] = ops_.fold(Fold::sum, Premap::identity, x, width_) / count;
      invs[i] = 1 / std::sqrt(ops_.squares_about(x, means[i], width_) / count + bound.epsilon);
    }
  }

  // Sums over all chunks for the stripe's parameters.
  void store_total(const typename Operand<T>::Bound& to, const T* partial,
                   std::int64_t first) const {
    if (!to.present()) return;
    alignas(64) double totals[kStripe] = {};
    alignas(64) T rounded[kStripe];
    const std::int64_t count = std::min(kStripe, width_ - first);
    for (std::int64_t chunk = 0; chunk < chunks_; ++chunk)
      for (std::int64_t i = 0; i < count; ++i)
        totals[i] += static_cast<double>(partial[chunk * 2 * width_ + first + i]);
    for (std::int64_t i = 0; i < count; ++i) rounded[i] = static_cast<T>(totals[i]);
    Coords coords{};
    coords[axis_] = first;
    to.store(coords, count, rounded);
  }

  const RowOps<T>& ops_;
  const NormRows<T>& kernels_;
  std::int64_t width_, rows_, block_rows_, chunks_;
  bool centred_;  // RMS norm has mean 0
  bool has_mean_ = false, has_inv_ = false;
  Single<T> epsilon_;
  RowProgram<T> x_, dy_, dx_, mean_, inv_;
  Operand<T> scale_, dscale_, dbias_;
  std::size_t axis_;
  int partial_ = -1;
};

}  // namespace

std::unique_ptr<Kernel> build_norm_backward_rows(const Region& region, const DeviceProps& device) {
  const NormBackwardShape shape(region);
  if (!NormBackwardRowsKernel<float>::fits(shape)) return nullptr;
  return build_for_precision<NormBackwardRowsKernel>(region, shape,
                                                     store_to(region.epilogue, device));
}

}  // namespace ashlar::cpu

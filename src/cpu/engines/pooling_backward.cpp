// Pooling backward as a gather: every element of dx sums over the windows that cover it, so that no
// two threads write the same element.
#include "cpu/engines/build.hpp"
#include "cpu/engines/pooling_windows.hpp"
#include "cpu/threads.hpp"
#include "plan/merge_axes.hpp"

namespace ashlar::cpu {

namespace {

constexpr std::int64_t kGradientSegment =
    kPoolingRow + kPoolingSegment;  // maximum elements of dy read for a row of dx

template <class T>
class PoolingBackwardKernel final : public Kernel {
 public:
  explicit PoolingBackwardKernel(const Region& region)
      : PoolingBackwardKernel(region, pooling_backward_shape(region)) {}

  void run(const KernelContext& context) const override {
    const auto dy = dy_.bind(context), index = index_.bind(context);
    const auto dx = dx_.bind(context);
    if (find_maxima_) find_maxima(context);
    parallel_for(rows_.count(), grain_, [&](std::int64_t begin, std::int64_t end, int) {
      alignas(64) T sums[kPoolingRow];
      for (std::int64_t row = begin; row < end; ++row) {
        Coords in;
        const std::int64_t count = rows_.locate(row, in);
        std::fill(sums, sums + count, T{0});
        const auto load_winners = [&](const Coords& out, std::int64_t n, T* where) {
          if (!find_maxima_) return index.load(out, n, where, nullptr).data;
          return static_cast<const T*>(context.scratch<T>(scratch_layout_, winners_)) +
                 position(out);
        };
        for_places(in, shape_.along() ? shape_.spatial() - 1 : shape_.spatial(),
                   [&](const Coords& place) {
                     if (shape_.along())
                       gather_along(dy, load_winners, place, count, sums);
                     else
                       gather_across(dy, load_winners, place, count, sums);
                   });
        dx.store(in, count, sums);
      }
    });
  }

 private:
  PoolingBackwardKernel(const Region& region, const PoolingShape& shape)
      : shape_(shape),
        windows_(shape, false),
        ops_(row_ops<T>()),
        rows_{shape.x, shape.axis, kPoolingRow},
        dy_(region.prologues[ResampleBackward::dy], shape.y, shape.axis),
        index_(input_program(region, ResampleBackward::index), shape.y, shape.axis),
        dx_(region.epilogue, shape.x, shape.axis) {
    std::int64_t window = 1;
    for (std::int64_t extent : shape.op.window) window *= extent;
    grain_ = items_per_thread(std::min(rows_.length, shape.x[shape.axis]) * window);
    find_maxima_ = shape.is_maximum() && !index_.present();
    if (!find_maxima_) return;
    x_ = RowProgram<T>(region.prologues[ResampleBackward::x], shape.axis);
    winners_ = scratch_layout_.add(
        "winners", checked_mul(element_count(shape.y), static_cast<std::int64_t>(sizeof(T))));
  }

  // Position in the argmax table: row-major over y, the row axis fastest.
  std::int64_t position(const Coords& out) const {
    std::int64_t result = 0;
    for (int a = 0; a < shape_.y.rank(); ++a)
      if (a != shape_.axis) result = result * shape_.y[a] + out[static_cast<std::size_t>(a)];
    return result * shape_.y[shape_.axis] + out[static_cast<std::size_t>(shape_.axis)];
  }

  void find_maxima(const KernelContext& context) const {
    const auto x = x_.bind(context);
    T* winners = context.scratch<T>(scratch_layout_, winners_);
    const RowLoop rows{shape_.y, shape_.axis, pooling_row_length(shape_)};
    parallel_for(rows.count(), grain_, [&](std::int64_t begin, std::int64_t end, int) {
      alignas(64) T result[kPoolingRow];
      for (std::int64_t row = begin; row < end; ++row) {
        Coords out;
        const std::int64_t count = rows.locate(row, out);
        windows_.row(x, out, count, result, winners + position(out));
      }
    });
  }

  bool has_edges() const {
    return shape_.op.padding_mode == PaddingMode::edge && shape_.is_maximum();
  }

  // Calls body(place) for the coordinates of the first `axes` spatial axes at which windows read
  // the element `in`: its own and, with edge padding, those in the padding.
  template <class Body>
  void for_places(const Coords& in, int axes, Body&& body) const {
    if (!has_edges()) return body(in);
    Coords first = in, last = in;
    for (int s = 0; s < axes; ++s) {
      const auto a = static_cast<std::size_t>(s + 2);
      if (in[a] == 0) first[a] = -shape_.op.padding[s];
      if (in[a] == shape_.x[s + 2] - 1)
        last[a] = std::max(in[a], shape_.start(s, shape_.y[s + 2] - 1) + shape_.op.window[s] - 1);
    }
    Coords place = first;
    for (bool more = true; more;) {
      body(place);
      more = false;
      for (int s = axes - 1; s >= 0 && !more; --s) {
        const auto a = static_cast<std::size_t>(s + 2);
        more = ++place[a] <= last[a];
        if (!more) place[a] = first[a];
      }
    }
  }

  // The output whose window position k covers element i on spatial axis s, or -1.
  std::int64_t output_of(int s, std::int64_t i, std::int64_t k) const {
    const std::int64_t shifted = i + shape_.op.padding[s] - k;
    if (shifted < 0 || shifted % shape_.op.stride[s] != 0) return -1;
    const std::int64_t o = shifted / shape_.op.stride[s];
    return o < shape_.y[s + 2] ? o : -1;
  }
  // The same on the first `axes` axes.
  bool outputs_of(const Coords& in, const Coords& k, int axes, Coords& out) const {
    out = in;
    for (int s = 0; s < axes; ++s) {
      const auto a = static_cast<std::size_t>(s + 2);
      out[a] = output_of(s, in[a], k[static_cast<std::size_t>(s)]);
      if (out[a] < 0) return false;
    }
    return true;
  }

  template <class Winners>
  void gather_across(const typename Operand<T>::Bound& dy, Winners&& load_winners, const Coords& in,
                     std::int64_t count, T* sums) const {
    alignas(64) T gradient[kPoolingRow];
    alignas(64) T where_row[kPoolingRow];
    shape_.for_window(shape_.spatial(), [&](const Coords& k, std::int64_t window_position) {
      Coords out;
      if (!outputs_of(in, k, shape_.spatial(), out)) return;
      dy.load(out, count, gradient, nullptr);
      if (shape_.is_maximum())
        ops_.add_where(gradient, load_winners(out, count, where_row),
                       static_cast<T>(window_position), count, sums);
      else
        ops_.axpy(1 / static_cast<T>(shape_.divisor(out, shape_.spatial())), gradient, count, sums);
    });
  }

  template <class Winners>
  void gather_along(const typename Operand<T>::Bound& dy, Winners&& load_winners, const Coords& in,
                    std::int64_t count, T* sums) const {
    const int last = shape_.spatial() - 1;
    const auto axis = static_cast<std::size_t>(shape_.axis);
    const std::int64_t window = shape_.op.window[last], stride = shape_.op.stride[last],
                       padding = shape_.op.padding[last];
    // Outputs [low, high) read elements [first, first + count).
    const std::int64_t first = in[axis], reach = first + padding - window + 1;
    const std::int64_t low = reach <= 0 ? 0 : (reach + stride - 1) / stride;
    const std::int64_t high =
        std::min(shape_.y[shape_.axis], (first + count - 1 + padding) / stride + 1);
    if (low >= high) return;
    alignas(64) T gradient[kGradientSegment];
    alignas(64) T where_row[kGradientSegment];
    shape_.for_window(last, [&](const Coords& k, std::int64_t outer_position) {
      Coords out;
      if (!outputs_of(in, k, last, out)) return;
      out[axis] = low;
      dy.load(out, high - low, gradient, nullptr);
      const T* where = shape_.is_maximum() ? load_winners(out, high - low, where_row) : nullptr;
      const std::int64_t outer_divisor = shape_.divisor(out, last);
      for (std::int64_t o = low; o < high; ++o) {
        const std::int64_t start = shape_.start(last, o) - first;  // relative to the accumulators
        const T value = gradient[o - low];
        if (where != nullptr) {
          const std::int64_t kw =
              static_cast<std::int64_t>(where[o - low]) - outer_position * window;
          std::int64_t winner = start + kw;
          if (has_edges())
            winner = std::clamp<std::int64_t>(winner, -first, shape_.x[shape_.axis] - 1 - first);
          if (kw >= 0 && kw < window && winner >= 0 && winner < count) sums[winner] += value;
          continue;
        }
        const std::int64_t covered = shape_.op.mode == ResampleMode::avgpool_include_padding
                                         ? window
                                         : shape_.covered(last, o);
        const T share = value / static_cast<T>(outer_divisor * covered);
        const std::int64_t end = std::min(start + window, count);
        for (std::int64_t i = std::max<std::int64_t>(start, 0); i < end; ++i) sums[i] += share;
      }
    });
  }

  PoolingShape shape_;
  PoolingWindows<T> windows_;
  const RowOps<T>& ops_;
  RowLoop rows_;
  std::int64_t grain_;
  bool find_maxima_ = false;
  int winners_ = -1;
  Operand<T> dy_, index_, dx_;
  RowProgram<T> x_;
};

}  // namespace

PoolingShape pooling_backward_shape(const Region& region) {
  PoolingShape shape{*region.anchor_as<ResampleBackward>(), region.epilogue.space,
                     region.prologues[0].space};
  const int last = shape.x.rank() - 1;
  const int best = choose_row_axis(shape.x, {&region.epilogue});
  shape.axis = best <= 1 && shape.x[best] >= 8 ? best : last;
  return shape;
}

std::unique_ptr<Kernel> build_pooling_backward(const Region& region) {
  return build_for_precision<PoolingBackwardKernel>(region);
}

}  // namespace ashlar::cpu

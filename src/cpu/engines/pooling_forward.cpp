// Max and average pooling forward.
#include "cpu/engines/build.hpp"
#include "cpu/engines/pooling_rows.hpp"
#include "cpu/engines/pooling_windows.hpp"
#include "cpu/threads.hpp"
#include "plan/merge_axes.hpp"

namespace ashlar::cpu {

namespace {

template <class T>
class PoolingForwardKernel final : public Kernel {
 public:
  explicit PoolingForwardKernel(const Region& region)
      : PoolingForwardKernel(region, pooling_forward_shape(region)) {}

  void run(const KernelContext& context) const override {
    const auto x = x_.bind(context);
    const auto y = y_.bind(context), index = index_.bind(context);
    parallel_for(rows_.count(), grain_, [&](std::int64_t begin, std::int64_t end, int) {
      alignas(64) T result[kPoolingRow];
      alignas(64) T where[kPoolingRow];
      for (std::int64_t row = begin; row < end; ++row) {
        Coords out;
        const std::int64_t count = rows_.locate(row, out);
        T* const memory = y.place(out).memory;
        T* const target = memory != nullptr ? memory : result;
        if (index.present() || !in_place_.row(x, out, count, target))
          windows_.row(x, out, count, target, index.present() ? where : nullptr);
        if (memory == nullptr) y.store(out, count, result);
        index.store(out, count, where);
      }
    });
  }

 private:
  PoolingForwardKernel(const Region& region, const PoolingShape& shape)
      : windows_(shape, !is_floating(region.anchor->compute)),
        in_place_(shape, region.prologues[0], !is_floating(region.anchor->compute)),
        rows_{shape.y, shape.axis, pooling_row_length(shape)},
        x_(region.prologues[0], shape.axis),
        y_(region.epilogue, shape.y, shape.axis),
        index_(output_program(region.anchor->outputs, ResampleForward::index), shape.y,
               shape.axis) {
    std::int64_t window = 1;
    for (std::int64_t extent : shape.op.window) window *= extent;
    grain_ = items_per_thread(std::min(rows_.length, shape.y[shape.axis]) * window);
  }

  PoolingWindows<T> windows_;
  PoolingRows<T> in_place_;
  RowLoop rows_;
  std::int64_t grain_;
  RowProgram<T> x_;
  Operand<T> y_, index_;
};

}  // namespace

std::int64_t pooling_row_length(const PoolingShape& shape) {
  if (!shape.along()) return kPoolingRow;
  const int last = shape.spatial() - 1;
  return std::clamp<std::int64_t>(
      (kPoolingSegment - shape.op.window[last]) / shape.op.stride[last] + 1, 1, kPoolingRow);
}

PoolingShape pooling_forward_shape(const Region& region) {
  PoolingShape shape{*region.anchor_as<ResampleForward>(), region.prologues[0].space,
                     region.epilogue.space};
  const int last = shape.x.rank() - 1;
  // Windows along rows gather element by element, so rows across windows are faster unless they are
  // short.
  const int best = choose_row_axis(shape.x, {&region.prologues[0]});
  shape.axis = best <= 1 && shape.x[best] >= 8 ? best : last;
  return shape;
}

std::unique_ptr<Kernel> build_pooling_forward(const Region& region) {
  return build_for_precision<PoolingForwardKernel>(region);
}

}  // namespace ashlar::cpu

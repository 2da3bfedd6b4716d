// Backward of grid sampling. dx is a scatter: a thread owns the channels it adds to, in a fixed
// order, so that results are reproducible. dgrid sums over channels independently for every
// position.
#include "cpu/engines/build.hpp"
#include "cpu/engines/grid_sampling.hpp"

namespace ashlar::cpu {

namespace {

using SampleIn = GridSampleBackward::In;
using SampleOut = GridSampleBackward::Out;

constexpr std::int64_t kChannelBlock = 32;  // channels per task, across channels

template <class T>
class GridSampleBackwardKernel final : public Kernel {
 public:
  explicit GridSampleBackwardKernel(const Region& region)
      : sampler_(*region.anchor_as<GridSampleBackward>(), region.epilogue.space),
        dims_(region.epilogue.space),
        across_(samples_across_channels(region.prologues[SampleIn::x])),
        ops_(row_ops<T>()),
        gather_(gather_sum<T>()),
        grid_(region.prologues[SampleIn::grid], sampler_.spatial()),
        dy_(region.prologues[SampleIn::dy], across_ ? 1 : sampler_.spatial() + 1),
        dx_(region.epilogue, across_ ? 1 : sampler_.spatial() + 1) {
    const PointwiseProgram dgrid = output_program(region.anchor->outputs, SampleOut::dgrid);
    has_dgrid_ = !dgrid.empty();
    if (has_dgrid_) {
      dgrid_ = RowProgram<T>(dgrid, sampler_.spatial());
      if (across_)
        x_ = RowProgram<T>(region.prologues[SampleIn::x], 1);
      else
        planes_ = Planes<T>(region.prologues[SampleIn::x], scratch_layout_);
    }
    std::int64_t step = across_ ? dims_[1] : 1;
    for (int s = sampler_.spatial() - 1; s >= 0; --s) {
      strides_[static_cast<std::size_t>(s)] = step;
      step = checked_mul(step, dims_[s + 2]);
    }
    sums_ = scratch_layout_.add(
        "sums", checked_mul(element_count(dims_), static_cast<std::int64_t>(sizeof(T))));
  }

  void run(const KernelContext& context) const override {
    T* sums = context.scratch<T>(scratch_layout_, sums_);
    if (element_count(dims_) > 0)
      across_ ? input_gradient_across(context, sums) : input_gradient_along(context, sums);
    if (!has_dgrid_ || element_count(grid_.loop().dims) == 0) return;
    across_ ? grid_gradient_across(context) : grid_gradient_along(context);
  }

 private:
  static constexpr T kZero = 0, kOne = 1;  // adding 0 removes -0

  std::int64_t plane_size() const {
    std::int64_t size = 1;
    for (int s = 0; s < sampler_.spatial(); ++s) size *= dims_[s + 2];
    return size;
  }
  // Grid rows per image.
  std::int64_t rows_per_image() const { return grid_.loop().count() / dims_[0]; }

  // --- dx along planes: a thread owns planes
  void input_gradient_along(const KernelContext& context, T* sums) const {
    const auto dy = dy_.bind(context), dx = dx_.bind(context), grid = grid_.bind(context);
    const std::int64_t plane = plane_size(),
                       blocks = (dims_[1] + kChannelBlock - 1) / kChannelBlock;
    // A block of channels shares the tap tables of its image.
    parallel_for(dims_[0] * blocks, 1, [&](std::int64_t begin, std::int64_t end, int) {
      TapTable<T> table;
      alignas(64) T gradient[kGridChunk];
      for (std::int64_t item = begin; item < end; ++item) {
        const std::int64_t n = item / blocks, first = item % blocks * kChannelBlock,
                           last = std::min(first + kChannelBlock, dims_[1]);
        T* block = sums + (n * dims_[1] + first) * plane;
        std::fill(block, block + (last - first) * plane, T{0});
        for (std::int64_t row = n * rows_per_image(); row < (n + 1) * rows_per_image(); ++row) {
          Coords at;
          const std::int64_t count = grid_.loop().locate(row, at);
          grid_.for_positions(grid, at, count, [&](std::int64_t p, const T* position) {
            table.set(sampler_, p, sampler_.at(position), strides_, false);
          });
          for (std::int64_t c = first; c < last; ++c) {
            dy.load(GridRows<T>::in_result(at, c).data(), count, gradient);
            scatter(table, gradient, count, block + (c - first) * plane);
          }
        }
        for (std::int64_t c = first; c < last; ++c)
          emit_plane(dx, n, c, block + (c - first) * plane);
      }
    });
  }
  void scatter(const TapTable<T>& table, const T* gradient, std::int64_t count, T* plane) const {
    for (int k = 0; k < sampler_.taps(); ++k) {
      const T* weight = table.weight + k * kGridChunk;
      const GatherIndex<T>* index = table.index + k * kGridChunk;
      for (std::int64_t p = 0; p < count; ++p)
        if (hands_back(weight[p])) plane[index[p]] += weight[p] * gradient[p];
    }
  }
  // False outside x and for NaN positions.
  static bool hands_back(T weight) { return weight != T{0} && !std::isnan(weight); }

  void emit_plane(const typename RowProgram<T>::Bound& dx, std::int64_t n, std::int64_t c,
                  const T* plane) const {
    const int last = dims_.rank() - 1;
    Dims outer = dims_;
    outer[0] = outer[1] = outer[last] = 1;
    const std::int64_t rows = element_count(outer);
    for (std::int64_t row = 0; row < rows; ++row) {
      Coords at{};
      std::int64_t rest = row;
      for (int a = last - 1; a >= 2; --a) {
        at[static_cast<std::size_t>(a)] = rest % dims_[a];
        rest /= dims_[a];
      }
      at[0] = n;
      at[1] = c;
      dx.store(at.data(), dims_[last], plane + row * dims_[last]);
    }
  }

  // --- dx across channels: a thread owns blocks of channels
  void input_gradient_across(const KernelContext& context, T* sums) const {
    const auto dy = dy_.bind(context), dx = dx_.bind(context), grid = grid_.bind(context);
    const std::int64_t plane = plane_size(),
                       blocks = (dims_[1] + kChannelBlock - 1) / kChannelBlock;
    parallel_for(dims_[0] * blocks, 1, [&](std::int64_t begin, std::int64_t end, int) {
      alignas(64) T gradient[kChannelBlock];
      for (std::int64_t item = begin; item < end; ++item) {
        const std::int64_t n = item / blocks, c = item % blocks * kChannelBlock,
                           width = std::min(kChannelBlock, dims_[1] - c);
        T* image = sums + n * plane * dims_[1] + c;
        for (std::int64_t i = 0; i < plane; ++i)
          std::fill(image + i * dims_[1], image + i * dims_[1] + width, T{0});
        for (std::int64_t row = n * rows_per_image(); row < (n + 1) * rows_per_image(); ++row) {
          Coords at;
          const std::int64_t count = grid_.loop().locate(row, at);
          grid_.for_positions(grid, at, count, [&](std::int64_t p, const T* position) {
            const PointTaps<T> taps = sampler_.at(position);
            Coords here = at;
            here[static_cast<std::size_t>(grid_.loop().axis)] += p;
            const T* values = dy.view(GridRows<T>::in_result(here, c).data(), width, gradient);
            for (int k = 0; k < sampler_.taps(); ++k) {
              const T weight = taps.weight[static_cast<std::size_t>(k)];
              if (!hands_back(weight)) continue;
              std::int64_t to = 0;
              for (int s = 0; s < sampler_.spatial(); ++s)
                to += taps.coordinate(k, s) * strides_[static_cast<std::size_t>(s)];
              ops_.axpy(weight, values, width, image + to);
            }
          });
        }
        for (std::int64_t i = 0; i < plane; ++i) {
          Coords at{};
          std::int64_t rest = i;
          for (int a = dims_.rank() - 1; a >= 2; --a) {
            at[static_cast<std::size_t>(a)] = rest % dims_[a];
            rest /= dims_[a];
          }
          at[0] = n;
          at[1] = c;
          dx.store(at.data(), width, image + i * dims_[1]);
        }
      }
    });
  }

  // --- dgrid
  std::int64_t grain() const {
    return items_per_thread(std::min(kGridChunk, grid_.loop().dims[grid_.loop().axis]) *
                            std::max<std::int64_t>(dims_[1], 1) * sampler_.taps());
  }
  void emit_positions(const typename RowProgram<T>::Bound& dgrid, Coords at, std::int64_t count,
                      int axis, const T* values) const {
    at[static_cast<std::size_t>(sampler_.spatial() + 1)] = sampler_.spatial() - 1 - axis;
    dgrid.store(at.data(), count, values);
  }

  void grid_gradient_along(const KernelContext& context) const {
    const auto dy = dy_.bind(context), dgrid = dgrid_.bind(context), grid = grid_.bind(context);
    const T* x = planes_.prepare(context, scratch_layout_);
    parallel_for(grid_.loop().count(), grain(), [&](std::int64_t begin, std::int64_t end, int) {
      TapTable<T> table;
      alignas(64) T gradient[kGridChunk], change[kGridChunk], totals[3][kGridChunk];
      for (std::int64_t item = begin; item < end; ++item) {
        Coords at;
        const std::int64_t count = grid_.loop().locate(item, at);
        grid_.for_positions(grid, at, count, [&](std::int64_t p, const T* position) {
          table.set(sampler_, p, sampler_.at(position), planes_.strides(), true);
        });
        for (auto& total : totals) std::fill(total, total + count, T{0});
        for (std::int64_t c = 0; c < dims_[1] && !sampler_.nearest(); ++c) {
          dy.load(GridRows<T>::in_result(at, c).data(), count, gradient);
          for (int j = 0; j < sampler_.spatial(); ++j) {
            gather_(planes_.plane(x, at[0], c), table.index, table.change[j], sampler_.taps(),
                    kGridChunk, count, change);
            ops_.dot_into(gradient, change, count, totals[j]);
          }
        }
        for (int j = 0; j < sampler_.spatial(); ++j) {
          if (!sampler_.nearest())
            ops_.normalise(totals[j], {&kZero, false}, {table.slope[j], true}, {&kOne, false},
                           {&kZero, false}, count, totals[j]);
          emit_positions(dgrid, at, count, j, totals[j]);
        }
      }
    });
  }

  void grid_gradient_across(const KernelContext& context) const {
    const auto dy = dy_.bind(context), dgrid = dgrid_.bind(context), grid = grid_.bind(context);
    const auto x = x_.bind(context);
    parallel_for(grid_.loop().count(), grain(), [&](std::int64_t begin, std::int64_t end, int) {
      alignas(64) T gradient[kChannelRow], buffer[kChannelRow], totals[3][kGridChunk];
      for (std::int64_t item = begin; item < end; ++item) {
        Coords at;
        const std::int64_t count = grid_.loop().locate(item, at);
        for (auto& total : totals) std::fill(total, total + count, T{0});
        if (!sampler_.nearest())
          grid_.for_positions(grid, at, count, [&](std::int64_t p, const T* position) {
            const PointTaps<T> taps = sampler_.at(position);
            Coords here = at;
            here[static_cast<std::size_t>(grid_.loop().axis)] += p;
            for (std::int64_t c = 0; c < dims_[1]; c += kChannelRow) {
              const std::int64_t width = std::min(kChannelRow, dims_[1] - c);
              const T* values = dy.view(GridRows<T>::in_result(here, c).data(), width, gradient);
              for (int k = 0; k < sampler_.taps(); ++k) {
                if (!sampler_.sees(taps, k)) continue;
                Coords from = {at[0], c};
                for (int s = 0; s < sampler_.spatial(); ++s)
                  from[static_cast<std::size_t>(s + 2)] = taps.coordinate(k, s);
                const T product = ops_.dot(values, x.view(from.data(), width, buffer), width);
                for (int j = 0; j < sampler_.spatial(); ++j) {
                  const T change =
                      taps.change[static_cast<std::size_t>(j)][static_cast<std::size_t>(k)];
                  if (change != T{0}) totals[j][p] += change * product;
                }
              }
            }
            for (int j = 0; j < sampler_.spatial(); ++j)
              totals[j][p] = totals[j][p] * taps.slope[static_cast<std::size_t>(j)] + kZero;
          });
        for (int j = 0; j < sampler_.spatial(); ++j) emit_positions(dgrid, at, count, j, totals[j]);
      }
    });
  }

  GridSampler<T> sampler_;
  Dims dims_;  // of x
  bool across_, has_dgrid_ = false;
  const RowOps<T>& ops_;
  GatherSum<T> gather_;
  GridRows<T> grid_;
  RowProgram<T> dy_, dx_, dgrid_, x_;
  Planes<T> planes_;
  std::array<std::int64_t, 3> strides_{};  // of the accumulators, by spatial axis
  int sums_ = -1;
};

}  // namespace

std::unique_ptr<Kernel> build_grid_sample_backward(const Region& region) {
  return build_for_precision<GridSampleBackwardKernel>(region);
}

}  // namespace ashlar::cpu

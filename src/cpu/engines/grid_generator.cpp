// Affine sampling grids and their gradient, row by row along the last spatial axis: a grid
// coordinate is affine in x (a + b x), and its gradient needs the sums of dgrid and x dgrid.
#include "cpu/engines/build.hpp"
#include "cpu/engines/engines.hpp"
#include "cpu/operand.hpp"
#include "cpu/threads.hpp"

namespace ashlar::cpu {

namespace {

constexpr std::int64_t kGridRow = 1024;  // positions at once

// Normalised coordinates in [-1, 1] along every spatial axis, the last axis (x) first.
template <class T>
class BaseCoordinates {
 public:
  BaseCoordinates(const Dims& size, bool align_corners) : spatial_(size.rank()) {
    for (int k = 0; k < spatial_; ++k) {
      std::vector<T> axis;
      const std::int64_t extent = size[spatial_ - 1 - k];
      const auto n = static_cast<double>(extent);
      for (std::int64_t i = 0; i < extent; ++i) {
        const auto at = static_cast<double>(i);
        const double value = extent == 1     ? 0.0
                             : align_corners ? 2.0 * at / (n - 1.0) - 1.0
                                             : (2.0 * at + 1.0) / n - 1.0;
        axis.push_back(static_cast<T>(value));
      }
      values_.push_back(std::move(axis));
    }
  }
  int spatial() const { return spatial_; }
  const T* row() const { return values_[0].data(); }
  // Coordinate k > 0 of the row at `at`, a grid index.
  T of_row(const Coords& at, int k) const {
    return values_[static_cast<std::size_t>(k)]
                  [static_cast<std::size_t>(at[static_cast<std::size_t>(spatial_ - k)])];
  }

 private:
  int spatial_;
  std::vector<std::vector<T>> values_;
};

// [N, size..., d] with extent 1 along the last spatial axis: the rows of a grid.
struct GeneratedRows {
  Dims dims;
  std::int64_t length;
  explicit GeneratedRows(const Dims& grid) : dims(grid), length(grid[grid.rank() - 2]) {
    dims[dims.rank() - 2] = 1;
  }
  std::int64_t count() const { return element_count(dims); }
  Coords locate(std::int64_t row) const {
    Coords at{};
    for (int a = dims.rank() - 1; a >= 0; --a) {
      at[static_cast<std::size_t>(a)] = row % dims[a];
      row /= dims[a];
    }
    return at;
  }
};

template <class T>
class GeneratorForwardKernel final : public Kernel {
 public:
  explicit GeneratorForwardKernel(const Region& region)
      : base_(region.anchor_as<GridGeneratorForward>()->size,
              region.anchor_as<GridGeneratorForward>()->align_corners),
        rows_(region.epilogue.space),
        ops_(row_ops<T>()),
        theta_(region.prologues[0], 2),
        grid_(region.epilogue, rows_.dims.rank() - 2) {}

  void run(const KernelContext& context) const override {
    const auto theta = theta_.bind(context), grid = grid_.bind(context);
    const int d = base_.spatial();
    const auto x_axis = static_cast<std::size_t>(d);
    parallel_for(rows_.count(), items_per_thread(rows_.length),
                 [&](std::int64_t begin, std::int64_t end, int) {
                   alignas(64) T row[kGridRow];
                   for (std::int64_t item = begin; item < end; ++item) {
                     Coords at = rows_.locate(item);
                     const Coords from = {at[0], at[x_axis + 1], 0};
                     T coefficients[4];
                     theta.load(from.data(), d + 1, coefficients);
                     T constant = coefficients[d] + T{0};  // avoids -0
                     for (int k = 1; k < d; ++k) constant += coefficients[k] * base_.of_row(at, k);
                     for (std::int64_t first = 0; first < rows_.length; first += kGridRow) {
                       const std::int64_t count = std::min(kGridRow, rows_.length - first);
                       std::fill(row, row + count, constant);
                       ops_.axpy(coefficients[0], base_.row() + first, count, row);
                       at[x_axis] = first;
                       grid.store(at.data(), count, row);
                     }
                   }
                 });
  }

 private:
  BaseCoordinates<T> base_;
  GeneratedRows rows_;
  const RowOps<T>& ops_;
  RowProgram<T> theta_, grid_;
};

template <class T>
class GeneratorBackwardKernel final : public Kernel {
 public:
  explicit GeneratorBackwardKernel(const Region& region)
      : base_(region.anchor_as<GridGeneratorBackward>()->size,
              region.anchor_as<GridGeneratorBackward>()->align_corners),
        rows_(region.prologues[0].space),
        ops_(row_ops<T>()),
        dgrid_(region.prologues[0], rows_.dims.rank() - 2),
        dtheta_(region.epilogue, 2) {}

  void run(const KernelContext& context) const override {
    const auto dgrid = dgrid_.bind(context), dtheta = dtheta_.bind(context);
    const int d = base_.spatial();
    Dims outer = rows_.dims;  // the rows of one image and coordinate
    outer[0] = outer[d + 1] = 1;
    const std::int64_t rows = element_count(outer);
    // One task per row of theta, so that its sums have a fixed order.
    parallel_for(
        rows_.dims[0] * d, items_per_thread(rows * rows_.length),
        [&](std::int64_t begin, std::int64_t end, int) {
          alignas(64) T buffer[kGridRow];
          for (std::int64_t item = begin; item < end; ++item) {
            double sums[4] = {};
            for (std::int64_t row = 0; row < rows; ++row) {
              Coords at{};
              std::int64_t rest = row;
              for (int a = d; a >= 1; --a) {
                at[static_cast<std::size_t>(a)] = rest % outer[a];
                rest /= outer[a];
              }
              at[0] = item / d;
              at[static_cast<std::size_t>(d + 1)] = item % d;
              double total = 0, moment = 0;
              for (std::int64_t first = 0; first < rows_.length; first += kGridRow) {
                const std::int64_t count = std::min(kGridRow, rows_.length - first);
                at[static_cast<std::size_t>(d)] = first;
                dgrid.load(at.data(), count, buffer);
                total += static_cast<double>(ops_.fold(Fold::sum, Premap::identity, buffer, count));
                moment += static_cast<double>(ops_.dot(buffer, base_.row() + first, count));
              }
              sums[0] += moment;
              for (int k = 1; k < d; ++k)
                sums[k] += total * static_cast<double>(base_.of_row(at, k));
              sums[d] += total;
            }
            T results[4];
            for (int k = 0; k <= d; ++k) results[k] = static_cast<T>(sums[k]);
            const Coords to = {item / d, item % d, 0};
            dtheta.store(to.data(), d + 1, results);
          }
        });
  }

 private:
  BaseCoordinates<T> base_;
  GeneratedRows rows_;
  const RowOps<T>& ops_;
  RowProgram<T> dgrid_, dtheta_;
};

class GridGeneratorEngine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.grid_generator"; }
  EngineKind kind() const override { return EngineKind::generic_fusion; }
  std::string_view description() const override {
    return "affine sampling grids, forward and backward";
  }

  Support supports(const Region& region, const DeviceProps&) const override {
    if (!region.anchor_as<GridGeneratorForward>() && !region.anchor_as<GridGeneratorBackward>())
      return Support::other_operation("the anchor is not a grid generator");
    if (touches_ragged(region)) return Support::no("a tensor is ragged");
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps&) const override {
    return {make_config({}, row_cost(region, 0.2))};
  }

  std::unique_ptr<Kernel> build(const Graph&, const Region& region, const Config&,
                                const DeviceProps&) const override {
    if (region.anchor_as<GridGeneratorForward>())
      return build_for_precision<GeneratorForwardKernel>(region);
    return build_for_precision<GeneratorBackwardKernel>(region);
  }
};

}  // namespace

const Engine& grid_generator_engine() {
  static const GridGeneratorEngine engine;
  return engine;
}

}  // namespace ashlar::cpu

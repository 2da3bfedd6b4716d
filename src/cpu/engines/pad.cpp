// Padding as row copies, and its gradient as sums of rows. Along a row, x and its images around it
// are runs of elements, ascending or (reflected) descending.
#include <array>

#include "cpu/engines/build.hpp"
#include "cpu/engines/engines.hpp"
#include "cpu/engines/pooling.hpp"
#include "cpu/store_to.hpp"
#include "plan/merge_axes.hpp"

namespace ashlar::cpu {

namespace {

constexpr std::int64_t kPadRow = 4096;  // elements of a row at once

// Pads, or the gradient of a mode that only copies: y[i] = x[i - before].
struct Padding {
  PadMode mode;
  Dims before, x, y;
  double value = 0.0;
  int axis;  // of rows

  explicit Padding(const Region& region)
      : x(region.prologues[0].space),
        y(region.epilogue.space),
        axis(choose_row_axis(y, {&region.epilogue, &region.prologues[0]})) {
    if (const auto* pad = region.anchor_as<Pad>()) {
      mode = pad->mode;
      before = pad->before;
      value = pad->value;
      return;
    }
    const PadBackward& op = *region.anchor_as<PadBackward>();
    mode = op.mode;
    before = op.before;
    if (mode != PadMode::constant) return;
    for (std::int64_t& count : before) count = -count;
  }

  // The position in x of position i of y; -1: none.
  std::int64_t source(int a, std::int64_t i) const {
    i -= before[a];
    if (i >= 0 && i < x[a]) return i;
    switch (mode) {
      case PadMode::constant: break;
      case PadMode::reflect: return i < 0 ? -i : 2 * (x[a] - 1) - i;
      case PadMode::edge: return i < 0 ? 0 : x[a] - 1;
      case PadMode::circular: return i < 0 ? i + x[a] : i - x[a];
    }
    return -1;
  }
};

template <class T>
class PadKernel final : public Kernel {
 public:
  PadKernel(const Region& region, StoreTo store_to)
      : padding_(region),
        rows_{padding_.y, padding_.axis, kPadRow},
        value_(static_cast<T>(padding_.value)),
        x_(region.prologues[0], padding_.axis),
        y_(region.epilogue, padding_.axis, nullptr, 1, store_to) {}

  void run(const KernelContext& context) const override {
    const auto x = x_.bind(context), y = y_.bind(context);
    const std::int64_t grain = items_per_thread(std::min(kPadRow, padding_.y[padding_.axis]));
    parallel_for(rows_.count(), grain, [&](std::int64_t begin, std::int64_t end, int) {
      alignas(64) T buffer[kPadRow];
      for (std::int64_t item = begin; item < end; ++item) {
        Coords at;
        const std::int64_t count = rows_.locate(item, at);
        const auto place = y.place(at.data());
        const bool direct = place.memory != nullptr && !place.stream;
        fill_row(x, at, count, direct ? place.memory : buffer);
        if (!direct) y.store(at.data(), count, buffer);
      }
    });
  }

 private:
  using Bound = typename RowProgram<T>::Bound;

  void fill_row(const Bound& x, const Coords& at, std::int64_t count, T* row) const {
    Coords from;
    const int axis = padding_.axis;
    for (int a = 0; a < padding_.y.rank(); ++a) {
      const auto index = static_cast<std::size_t>(a);
      if (a == axis) continue;
      from[index] = padding_.source(a, at[index]);
      if (from[index] < 0) return std::fill(row, row + count, value_), void();
    }
    // Runs before, inside and behind x.
    const auto row_index = static_cast<std::size_t>(axis);
    const std::int64_t first = at[row_index] - padding_.before[axis], extent = padding_.x[axis];
    const std::int64_t low = std::clamp<std::int64_t>(-first, 0, count);
    const std::int64_t high = std::clamp<std::int64_t>(extent - first, low, count);
    fill_outside(x, from, first, low, row);
    if (high > low) {
      from[row_index] = first + low;
      x.load(from.data(), high - low, row + low);
    }
    fill_outside(x, from, first + high, count - high, row + high);
  }

  // Positions [first, first + count) relative to x, all before it or all behind it.
  void fill_outside(const Bound& x, Coords from, std::int64_t first, std::int64_t count,
                    T* row) const {
    if (count <= 0) return;
    const auto axis = static_cast<std::size_t>(padding_.axis);
    const std::int64_t extent = padding_.x[padding_.axis];
    const bool behind = first >= 0;
    switch (padding_.mode) {
      case PadMode::constant: std::fill(row, row + count, value_); return;
      case PadMode::edge:
        from[axis] = behind ? extent - 1 : 0;
        x.load(from.data(), 1, row);
        std::fill(row + 1, row + count, row[0]);
        return;
      case PadMode::circular:
        from[axis] = behind ? first - extent : first + extent;
        x.load(from.data(), count, row);
        return;
      case PadMode::reflect:
        from[axis] = (behind ? 2 * (extent - 1) : 0) - (first + count - 1);
        x.load(from.data(), count, row);
        std::reverse(row, row + count);
    }
  }

  Padding padding_;
  RowLoop rows_;
  T value_;
  RowProgram<T> x_, y_;
};

// dx of the modes that repeat elements: sums in a fixed order.
template <class T>
class PadGradientKernel final : public Kernel {
 public:
  explicit PadGradientKernel(const Region& region)
      : mode_(region.anchor_as<PadBackward>()->mode),
        before_(region.anchor_as<PadBackward>()->before),
        dy_dims_(region.prologues[0].space),
        dx_dims_(region.epilogue.space),
        axis_(choose_row_axis(dx_dims_, {&region.epilogue, &region.prologues[0]})),
        rows_{dx_dims_, axis_, kPadRow},
        ops_(row_ops<T>()),
        dy_(region.prologues[0], axis_),
        dx_(region.epilogue, axis_) {}

  void run(const KernelContext& context) const override {
    const auto dy = dy_.bind(context), dx = dx_.bind(context);
    const std::int64_t grain = items_per_thread(2 * std::min(kPadRow, dx_dims_[axis_]));
    parallel_for(rows_.count(), grain, [&](std::int64_t begin, std::int64_t end, int) {
      alignas(64) T sum[kPadRow];
      for (std::int64_t item = begin; item < end; ++item) {
        Coords at, from{};
        const std::int64_t count = rows_.locate(item, at);
        bool is_first = true;
        add_rows(dy, 0, at, from, count, is_first, sum);
        dx.store(at.data(), count, sum);
      }
    });
  }

 private:
  using Bound = typename RowProgram<T>::Bound;
  struct Range {
    std::int64_t begin = 0, end = 0;
  };

  // The positions of dy that read position i of x: before, inside and behind x.
  std::array<Range, 3> readers(int a, std::int64_t i) const {
    const std::int64_t before = before_[a], extent = dx_dims_[a], padded = dy_dims_[a];
    const auto one = [](std::int64_t at, std::int64_t end) {
      return at >= 0 && at < end ? Range{at, at + 1} : Range{};
    };
    const bool is_first = i == 0, is_last = i == extent - 1;
    const std::int64_t end = before + extent;
    const Range inside{before + i, before + i + 1};
    if (mode_ == PadMode::edge)
      return {is_first ? Range{0, before} : Range{}, inside,
              is_last ? Range{end, padded} : Range{}};
    if (mode_ == PadMode::circular)
      return {one(before + i - extent, before), inside, one(end + i, padded)};
    return {is_first ? Range{} : one(before - i, before), inside,
            is_last ? Range{} : one(end + extent - 2 - i, padded)};
  }

  // Adds the rows of dy that read the row of x at `at`, over the axes from `a` on.
  void add_rows(const Bound& dy, int a, const Coords& at, Coords& from, std::int64_t count,
                bool& is_first, T* sum) const {
    if (a == dx_dims_.rank()) {
      add_row(dy, at, from, count, is_first, sum);
      is_first = false;
      return;
    }
    if (a == axis_) return add_rows(dy, a + 1, at, from, count, is_first, sum);
    const auto index = static_cast<std::size_t>(a);
    if (dx_dims_[a] == dy_dims_[a]) {
      from[index] = at[index];
      return add_rows(dy, a + 1, at, from, count, is_first, sum);
    }
    for (const Range& range : readers(a, at[index]))
      for (from[index] = range.begin; from[index] < range.end; ++from[index])
        add_rows(dy, a + 1, at, from, count, is_first, sum);
  }

  void add_row(const Bound& dy, const Coords& at, Coords from, std::int64_t count, bool is_first,
               T* sum) const {
    alignas(64) T buffer[kPadRow];
    const auto axis = static_cast<std::size_t>(axis_);
    const std::int64_t first = at[axis], end = first + count, before = before_[axis_],
                       extent = dx_dims_[axis_], padded = dy_dims_[axis_];
    const std::int64_t behind = before + extent, after = padded - behind;
    from[axis] = before + first;
    if (is_first)
      dy.load(from.data(), count, sum);
    else
      ops_.axpy(T{1}, dy.view(from.data(), count, buffer), count, sum);
    // Adds dy[position + (i - low)], or descending dy[position - (i - low)], to x's [low, high).
    const auto add = [&](std::int64_t low, std::int64_t high, std::int64_t position, bool reflect) {
      const std::int64_t skipped = std::max<std::int64_t>(first - low, 0);
      const std::int64_t length = std::min(high, end) - (low + skipped);
      if (length <= 0) return;
      from[axis] = reflect ? position - skipped - (length - 1) : position + skipped;
      const T* row = dy.view(from.data(), length, buffer);
      T* const to = sum + (low + skipped - first);
      for (std::int64_t i = 0; i < length; ++i) to[i] += row[reflect ? length - 1 - i : i];
    };
    const auto add_all = [&](std::int64_t low, std::int64_t high, std::int64_t i) {
      if (i < first || i >= end || low == high) return;
      auto total = static_cast<double>(sum[i - first]);
      for (std::int64_t p = low; p < high; p += kPadRow) {
        const std::int64_t length = std::min(kPadRow, high - p);
        from[axis] = p;
        const T* row = dy.view(from.data(), length, buffer);
        total += static_cast<double>(ops_.fold(Fold::sum, Premap::identity, row, length));
      }
      sum[i - first] = static_cast<T>(total);
    };
    if (mode_ == PadMode::reflect) {
      add(1, 1 + before, before - 1, true);
      add(extent - 1 - after, extent - 1, padded - 1, true);
    } else if (mode_ == PadMode::circular) {
      add(extent - before, extent, 0, false);
      add(0, after, behind, false);
    } else {
      add_all(0, before, 0);
      add_all(behind, padded, extent - 1);
    }
  }

  PadMode mode_;
  Dims before_, dy_dims_, dx_dims_;
  int axis_;
  RowLoop rows_;
  const RowOps<T>& ops_;
  RowProgram<T> dy_, dx_;
};

class PadEngine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.pad"; }
  EngineKind kind() const override { return EngineKind::generic_fusion; }
  std::string_view description() const override { return "padding, cropping and their gradients"; }

  Support supports(const Region& region, const DeviceProps&) const override {
    if (!region.anchor_as<Pad>() && !region.anchor_as<PadBackward>())
      return Support::other_operation("the anchor is not a pad");
    if (touches_ragged(region)) return Support::no("a tensor is ragged");
    if (region.epilogue.space.empty()) return Support::no("the tensors have no axes");
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps&) const override {
    return {make_config({{"axis", Padding(region).axis}}, row_cost(region, 0.5))};
  }

  std::unique_ptr<Kernel> build(const Graph&, const Region& region, const Config&,
                                const DeviceProps& device) const override {
    const auto* backward = region.anchor_as<PadBackward>();
    if (backward && backward->mode != PadMode::constant)
      return build_for_precision<PadGradientKernel>(region);
    return build_for_precision<PadKernel>(region, store_to(region.epilogue, device));
  }
};

}  // namespace

const Engine& pad_engine() {
  static const PadEngine engine;
  return engine;
}

}  // namespace ashlar::cpu

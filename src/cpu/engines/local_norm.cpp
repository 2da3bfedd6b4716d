// LRN and divisive normalisation, forward and backward; formulas in reference/local_norm.cpp.
// Without means, window sums are computed in two steps: element-wise over the neighbouring rows of
// the window, then along the row if the window spans it. With means a term depends on both ends, so
// each neighbour is processed separately.
#include <array>
#include <cmath>

#include "cpu/box_space.hpp"
#include "cpu/engines/build.hpp"
#include "cpu/engines/engines.hpp"
#include "cpu/kernels/local_norm.hpp"
#include "cpu/threads.hpp"
#include "plan/merge_axes.hpp"

namespace ashlar::cpu {

namespace {

constexpr std::int64_t kMaxHalo = 1024;  // maximum halo of a window along rows, both ends

const LocalNormAttributes* attributes_of(const Region& region) {
  if (const auto* op = region.anchor_as<LrnForward>()) return op;
  if (const auto* op = region.anchor_as<LrnBackward>()) return op;
  if (const auto* op = region.anchor_as<DivisiveNormForward>()) return op;
  return region.anchor_as<DivisiveNormBackward>();
}
bool is_divisive(const Region& region) {
  return region.anchor_as<DivisiveNormForward>() || region.anchor_as<DivisiveNormBackward>();
}
bool is_backward(const Region& region) {
  return region.anchor_as<LrnBackward>() || region.anchor_as<DivisiveNormBackward>();
}

// Operands with axes merged, and the reach of the window along each axis.
struct WindowShape {
  PointwiseProgram x, dy, means, result, dmeans;
  Dims space;
  Dims below, above;  // 0 on axes outside the window
  int axis;
  double factor;  // alpha / window^axes

  explicit WindowShape(const Region& region)
      : x(region.prologues[0]), result(region.epilogue), space(x.space) {
    const LocalNormAttributes& op = *attributes_of(region);
    const bool divisive = is_divisive(region);
    if (is_backward(region)) {
      dy = region.prologues[1];
      dmeans = output_program(region.anchor->outputs, DivisiveNormBackward::dmeans);
    }
    if (divisive)
      means = input_program(region, is_backward(region) ? int{DivisiveNormBackward::means}
                                                        : int{DivisiveNormForward::means});
    const int first = divisive ? 2 : 1, last = divisive ? space.rank() : 2;
    factor = op.alpha;
    // Extra views that prevent merging the window's axes with each other and with the rest.
    std::vector<Dims> marks;
    for (int a = first; a < last; ++a) {
      factor /= static_cast<double>(op.window);
      marks.push_back(Dims::filled(space.rank(), 1));
      marks.back()[a] = space[a];
      marks.push_back(space);
      marks.back()[a] = 1;
    }
    std::vector<Dims*> shapes = {&space};
    for (Dims& mark : marks) shapes.push_back(&mark);
    merge_axes({&x, &dy, &means, &result, &dmeans}, shapes);
    below = above = Dims::filled(space.rank(), 0);
    const std::int64_t down = (op.window - 1) / 2, up = op.window - 1 - down;
    for (std::size_t mark = 0; mark < marks.size(); mark += 2)
      for (int a = 0; a < space.rank(); ++a)
        if (marks[mark][a] > 1) {
          below[a] = std::min(down, space[a] - 1);
          above[a] = std::min(up, space[a] - 1);
        }
    axis = choose_row_axis(space, {&x, &dy, &means, &result, &dmeans});
  }
  std::int64_t halo() const { return below[axis] + above[axis]; }
};

template <class T>
class LocalNormKernel final : public Kernel {
 public:
  explicit LocalNormKernel(const Region& region)
      : LocalNormKernel(*attributes_of(region), is_backward(region), WindowShape(region)) {}

  void run(const KernelContext& context) const override {
    const Bound bound = bind(context);
    over_rows([&](const Coords& coords, std::int64_t n, Rows& rows) {
      T* sums =
          has_means_ ? centred_squares(bound, coords, n, rows) : squares(bound, coords, n, rows);
      if (!backward_) {
        divided_by_(sums, k_, factor_, beta_, n, sums, nullptr);
        const T* x = bound.x.view(coords.data(), n, rows.loaded);
        ops_.multiply(x, {sums, true}, n, sums);
        bound.result.store(coords.data(), n, sums);
        return;
      }
      const std::int64_t place = position(coords);
      T* back = bound.gradient_share + place;
      divided_by_(sums, k_, factor_, beta_, n, bound.powers + place, back);
      const T* x = bound.x.view(coords.data(), n, rows.loaded);
      const T* dy = bound.dy.view(coords.data(), n, rows.other);
      ops_.multiply(back, {x, true}, n, back);
      ops_.multiply(back, {dy, true}, n, back);
      if (!has_dmeans_) return;
      ops_.multiply(rows.reached, {back, true}, n, rows.reached);
      ops_.multiply(rows.reached, {&slope_, false}, n, rows.reached);
      bound.dmeans.store(coords.data(), n, rows.reached);
    });
    if (backward_) input_gradient(bound);
  }

 private:
  struct Bound {
    typename RowProgram<T>::Bound x, dy, means, result, dmeans;
    T* powers;          // s^-beta, per element
    T* gradient_share;  // dy x s^(-beta - 1), per element
  };
  // Per-thread buffers.
  struct Rows {
    alignas(64) T loaded[kRowLength + kMaxHalo], other[kRowLength + kMaxHalo];
    alignas(64) T reached[kRowLength + kMaxHalo], sums[kRowLength];
  };

  LocalNormKernel(const LocalNormAttributes& op, bool backward, const WindowShape& shape)
      : backward_(backward),
        has_means_(!shape.means.empty()),
        has_dmeans_(!shape.dmeans.empty()),
        ops_(row_ops<T>()),
        divided_by_(local_norm_row<T>()),
        space_(shape.space),
        below_(shape.below),
        above_(shape.above),
        axis_(shape.axis),
        k_(static_cast<T>(op.k)),
        beta_(static_cast<T>(op.beta)),
        factor_(static_cast<T>(shape.factor)),
        slope_(static_cast<T>(2.0 * op.beta * shape.factor)),
        x_(shape.x, shape.axis),
        result_(shape.result, shape.axis) {
    if (has_means_) means_ = RowProgram<T>(shape.means, axis_);
    if (has_dmeans_) dmeans_ = RowProgram<T>(shape.dmeans, axis_);
    if (!backward_) return;
    dy_ = RowProgram<T>(shape.dy, axis_);
    std::int64_t step = space_[axis_];
    strides_ = Dims::filled(space_.rank(), 1);
    for (int a = space_.rank() - 1; a >= 0; --a) {
      if (a == axis_) continue;
      strides_[a] = step;
      step *= space_[a];
    }
    const std::int64_t bytes = element_count(space_) * static_cast<std::int64_t>(sizeof(T));
    powers_ = scratch_layout_.add("s^-beta", bytes);
    handed_back_ = scratch_layout_.add("dy x s^(-beta - 1)", bytes);
  }

  Bound bind(const KernelContext& context) const {
    Bound bound{};
    bound.x = x_.bind(context);
    bound.result = result_.bind(context);
    if (has_means_) bound.means = means_.bind(context);
    if (has_dmeans_) bound.dmeans = dmeans_.bind(context);
    if (!backward_) return bound;
    bound.dy = dy_.bind(context);
    bound.powers = context.scratch<T>(scratch_layout_, powers_);
    bound.gradient_share = context.scratch<T>(scratch_layout_, handed_back_);
    return bound;
  }

  // Offset of an element in scratch: packed, rows contiguous.
  std::int64_t position(const Coords& coords) const {
    std::int64_t result = 0;
    for (int a = 0; a < space_.rank(); ++a)
      result += coords[static_cast<std::size_t>(a)] * strides_[a];
    return result;
  }

  // Calls body(coords, n, rows) for all rows, in parallel.
  template <class Body>
  void over_rows(Body&& body) const {
    const std::int64_t length = space_[axis_];
    if (element_count(space_) == 0) return;
    const std::int64_t chunks = (length + kRowLength - 1) / kRowLength;
    const std::int64_t count = element_count(space_) / length * chunks;
    const std::int64_t grain = items_per_thread(4 * std::min(length, kRowLength));
    parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end, int) {
      Rows rows;
      for (std::int64_t row = begin; row < end; ++row) {
        Coords coords;
        std::int64_t rest = row;
        for (int a = space_.rank() - 1; a >= 0; --a) {
          const std::int64_t extent = a == axis_ ? chunks : space_[a];
          coords[static_cast<std::size_t>(a)] = rest % extent * (a == axis_ ? kRowLength : 1);
          rest /= extent;
        }
        body(coords, std::min(kRowLength, length - coords[static_cast<std::size_t>(axis_)]), rows);
      }
    });
  }

  // Sums over the window from `down` below to `up` above each element of a row, in one of the
  // buffers. add(coords, count, sums) adds a row of terms to sums.
  template <class Add>
  T* window_sums(const Coords& coords, std::int64_t n, const Dims& down, const Dims& up, Rows& rows,
                 Add&& add) const {
    const auto row = static_cast<std::size_t>(axis_);
    const std::int64_t first = coords[row];
    const std::int64_t from = std::max<std::int64_t>(first - down[axis_], 0);
    const std::int64_t to = std::min(first + n + up[axis_], space_[axis_]);
    std::fill(rows.reached, rows.reached + (to - from), T{0});
    // The rows of the window along the other axes.
    Coords begin, end, at;
    for (int a = 0; a < space_.rank(); ++a) {
      const auto i = static_cast<std::size_t>(a);
      begin[i] = a == axis_ ? from : std::max<std::int64_t>(coords[i] - down[a], 0);
      end[i] = a == axis_ ? from + 1 : std::min(coords[i] + up[a] + 1, space_[a]);
      at[i] = begin[i];
    }
    for (bool more = true; more;) {
      add(at, to - from, rows.reached);
      more = false;
      for (int a = space_.rank() - 1; a >= 0 && !more; --a) {
        const auto i = static_cast<std::size_t>(a);
        more = ++at[i] < end[i];
        if (!more) at[i] = begin[i];
      }
    }
    if (down[axis_] + up[axis_] == 0) return rows.reached;
    std::fill(rows.sums, rows.sums + n, T{0});
    for (std::int64_t shift = -down[axis_]; shift <= up[axis_]; ++shift) {
      // Elements i of the row whose neighbour at `shift` is inside the tensor.
      const std::int64_t low = std::max<std::int64_t>(0, from - first - shift);
      const std::int64_t high = std::min(n, to - first - shift);
      if (low < high)
        ops_.fold_into(Fold::sum, Premap::identity, rows.reached + (first + low + shift - from),
                       high - low, rows.sums + low);
    }
    return rows.sums;
  }

  // Calls body(at, from, count) for every offset of the window: the neighbours of elements [from,
  // from + count) of the row start at `at`.
  template <class Body>
  void for_each_neighbour(const Coords& coords, std::int64_t n, const Dims& down, const Dims& up,
                          Body&& body) const {
    const auto row = static_cast<std::size_t>(axis_);
    Coords begin, end, at;
    for (int a = 0; a < space_.rank(); ++a) {
      const auto i = static_cast<std::size_t>(a);
      begin[i] = a == axis_ ? coords[i] - down[a] : std::max<std::int64_t>(coords[i] - down[a], 0);
      end[i] = a == axis_ ? coords[i] + up[a] + 1 : std::min(coords[i] + up[a] + 1, space_[a]);
      at[i] = begin[i];
    }
    for (bool more = true; more;) {
      const std::int64_t from = std::max<std::int64_t>(0, -at[row]);
      const std::int64_t to = std::min(n, space_[axis_] - at[row]);
      Coords start = at;
      start[row] += from;
      if (from < to) body(start, from, to - from);
      more = false;
      for (int a = space_.rank() - 1; a >= 0 && !more; --a) {
        const auto i = static_cast<std::size_t>(a);
        more = ++at[i] < end[i];
        if (!more) at[i] = begin[i];
      }
    }
  }

  // Sums of squares of x over the window.
  T* squares(const Bound& bound, const Coords& coords, std::int64_t n, Rows& rows) const {
    return window_sums(coords, n, below_, above_, rows,
                       [&](const Coords& at, std::int64_t count, T* totals) {
                         const T* x = bound.x.view(at.data(), count, rows.loaded);
                         ops_.dot_into(x, x, count, totals);
                       });
  }

  // Window sums of (x - mean)^2 with the mean at the window's centre; rows.reached receives the
  // sums of x - mean.
  T* centred_squares(const Bound& bound, const Coords& coords, std::int64_t n, Rows& rows) const {
    const T* means = bound.means.view(coords.data(), n, rows.other);
    std::fill(rows.sums, rows.sums + n, T{0});
    std::fill(rows.reached, rows.reached + n, T{0});
    for_each_neighbour(
        coords, n, below_, above_, [&](const Coords& at, std::int64_t from, std::int64_t count) {
          bound.x.load(at.data(), count, rows.loaded);
          ops_.axpy(T{-1}, means + from, count, rows.loaded);
          ops_.dot_into(rows.loaded, rows.loaded, count, rows.sums + from);
          ops_.fold_into(Fold::sum, Premap::identity, rows.loaded, count, rows.reached + from);
        });
    return rows.sums;
  }

  // Gradient contributions to an element from the windows that contain it, divided by slope_: x
  // times a sum, or with means sums of products.
  T* gradient_share(const Bound& bound, const Coords& coords, std::int64_t n, Rows& rows) const {
    const T* x = bound.x.view(coords.data(), n, rows.other);
    if (!has_means_) {
      T* sums = window_sums(coords, n, above_, below_, rows,
                            [&](const Coords& at, std::int64_t count, T* totals) {
                              ops_.fold_into(Fold::sum, Premap::identity,
                                             bound.gradient_share + position(at), count, totals);
                            });
      ops_.multiply(sums, {x, true}, n, sums);
      return sums;
    }
    std::fill(rows.sums, rows.sums + n, T{0});
    for_each_neighbour(
        coords, n, above_, below_, [&](const Coords& at, std::int64_t from, std::int64_t count) {
          std::copy(x + from, x + from + count, rows.loaded);
          ops_.axpy(T{-1}, bound.means.view(at.data(), count, rows.reached), count, rows.loaded);
          ops_.dot_into(rows.loaded, bound.gradient_share + position(at), count, rows.sums + from);
        });
    return rows.sums;
  }

  void input_gradient(const Bound& bound) const {
    over_rows([&](const Coords& coords, std::int64_t n, Rows& rows) {
      const T* back = gradient_share(bound, coords, n, rows);
      const T* dy = bound.dy.view(coords.data(), n, rows.loaded);
      ops_.multiply(dy, {bound.powers + position(coords), true}, n, rows.loaded);
      ops_.axpy(-slope_, back, n, rows.loaded);
      bound.result.store(coords.data(), n, rows.loaded);
    });
  }

  bool backward_, has_means_, has_dmeans_;
  const RowOps<T>& ops_;
  LocalNormRow<T> divided_by_;
  Dims space_, below_, above_, strides_;
  int axis_;
  T k_, beta_, factor_, slope_;
  int powers_ = -1, handed_back_ = -1;
  RowProgram<T> x_, dy_, means_, result_, dmeans_;
};

class LocalNormEngine final : public Engine {
 public:
  std::string_view id() const override { return "cpu.local_norm"; }
  EngineKind kind() const override { return EngineKind::generic_fusion; }
  std::string_view description() const override {
    return "local response and divisive normalisation, forward and backward";
  }

  Support supports(const Region& region, const DeviceProps&) const override {
    if (!attributes_of(region))
      return Support::other_operation("the anchor is not a local normalisation");
    if (touches_ragged(region)) return Support::no("a tensor is ragged");
    const std::int64_t halo = WindowShape(region).halo();
    if (halo > kMaxHalo)
      return Support::no(
          "the window has a halo of {} elements along a row, at most {} are supported", halo,
          kMaxHalo);
    return Support::yes();
  }

  std::vector<Config> configs(const Region& region, const DeviceProps&) const override {
    const auto kernel = build_for_precision<LocalNormKernel>(region);
    return {make_config({}, row_cost(region, is_backward(region) ? 0.1 : 0.2),
                        kernel->scratch_layout().total_bytes())};
  }

  std::unique_ptr<Kernel> build(const Graph&, const Region& region, const Config&,
                                const DeviceProps&) const override {
    return build_for_precision<LocalNormKernel>(region);
  }
};

}  // namespace

const Engine& local_norm_engine() {
  static const LocalNormEngine engine;
  return engine;
}

}  // namespace ashlar::cpu

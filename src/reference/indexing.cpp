// Gather and scatter.
#include <algorithm>
#include <numeric>

#include "reference/evaluate.hpp"
#include "reference/uncertainty.hpp"

namespace ashlar::reference {

namespace {

// --- positions read from an index, which is untrusted data

inline double error_of(double) { return 0.0; }
template <Arithmetic A>
double error_of(Approx<A> x) {
  return x.error;
}

// A position along the axis; -1 or `extent`: outside. Uncertain if a computed index may also select
// another element.
struct Position {
  std::int64_t at = -1;
  bool is_certain = true;

  template <class Scalar>
  Position(Scalar index, std::int64_t extent) {
    at = clamped(nominal(index), extent);
    is_certain = clamped(nominal(index) - error_of(index), extent) ==
                 clamped(nominal(index) + error_of(index), extent);
  }
  // Clamped before the conversion, which is undefined for doubles outside the range of int64.
  static std::int64_t clamped(double index, std::int64_t extent) {
    if (!(index >= 0.0)) return -1;
    return index >= real(extent) ? extent : static_cast<std::int64_t>(index);
  }
};

// Splits coordinates of the selection (y of gather, source of scatter) into those of the index and
// those of the tensor that it selects from; coordinate `axis` of the latter is the index's value.
struct Selection {
  bool slices;
  int axis, index_rank;

  template <class Op>
  Selection(const Op& op, int rank, int index_axes)
      : slices(op.mode == IndexMode::slices),
        axis(static_cast<int>(op.axis < 0 ? op.axis + rank : op.axis)),
        index_rank(index_axes) {}

  Index of_index(const Index& at) const {
    if (!slices) return at;
    Index result;
    for (int a = 0; a < index_rank; ++a) result.push_back(at[axis + a]);
    return result;
  }
  Index of_whole(const Index& at, std::int64_t position) const {
    Index result = at;
    if (slices) {
      result = {};
      for (int a = 0; a <= axis; ++a) result.push_back(a < axis ? at[a] : 0);
      for (int a = axis + index_rank; a < at.rank(); ++a) result.push_back(at[a]);
    }
    result[axis] = position;
    return result;
  }
  // The inverse: `where` indexes the index.
  Index of_selection(const Index& whole, const Index& where) const {
    if (!slices) return where;
    Index result;
    for (int a = 0; a < axis; ++a) result.push_back(whole[a]);
    for (const std::int64_t i : where) result.push_back(i);
    for (int a = axis + 1; a < whole.rank(); ++a) result.push_back(whole[a]);
    return result;
  }
};

}  // namespace

template <class Operands>
void evaluate(const Gather& op, const Operands& operands) {
  using Op = Gather;
  using Scalar = typename Operands::Scalar;
  const auto x = operands.input(Op::x), index = operands.input(Op::index);
  const auto y = operands.output(Op::y);
  const Selection selection(op, x.dims().rank(), index.dims().rank());
  const std::int64_t extent = x.dims()[selection.axis];

  for_each(y.dims(), [&](const Index& at) {
    const Position found(index.load(selection.of_index(at)), extent);
    std::int64_t position = found.at;
    if (op.out_of_range == OutOfRange::clamp)
      position = std::clamp<std::int64_t>(position, 0, std::max<std::int64_t>(extent - 1, 0));
    const bool inside = position >= 0 && position < extent;
    const Scalar value = inside ? x.load(selection.of_whole(at, position)) : Scalar(0.0);
    y.store(at, unknown_unless(found.is_certain, value));
  });
}

namespace {

// The contributions to one element of y, combined in row-major order of source.
template <class Scalar>
class Combination {
 public:
  Combination(ScatterMode mode, Scalar base) : mode_(mode), value_(base) { sum_.add(base); }
  void add(Scalar term) {
    switch (mode_) {
      case ScatterMode::set: value_ = term; break;
      case ScatterMode::add: sum_.add(term); break;
      case ScatterMode::mul: value_ = value_ * term; break;
      case ScatterMode::min: value_ = minimum(value_, term); break;
      case ScatterMode::max: value_ = maximum(value_, term); break;
    }
  }
  Scalar result() const { return mode_ == ScatterMode::add ? sum_.total() : value_; }

 private:
  ScatterMode mode_;
  Scalar value_;
  Accumulator<Scalar> sum_;
};

// With slices all elements of a slice share the index: its positions, and the order that sorts
// them.
ScratchNeed scatter_need(const Scatter& op, const InputDims& dims) {
  if (op.mode == IndexMode::elements) return {};
  return {.numbers = 0, .integers = checked_mul(2, element_count(dims(Scatter::index)))};
}

}  // namespace

template <class Operands>
void evaluate(const Scatter& op, const Operands& operands) {
  using Op = Scatter;
  using Scalar = typename Operands::Scalar;
  const auto source = operands.input(Op::source), index = operands.input(Op::index);
  const auto y = operands.output(Op::y);
  const Selection selection(op, y.dims().rank(), index.dims().rank());
  const int axis = selection.axis;
  const std::int64_t extent = y.dims()[axis];
  const auto combination = [&](const Index& at) {
    return Combination<Scalar>(
        op.combine, operands.has_input(Op::base) ? operands.input(Op::base).load(at) : Scalar(0.0));
  };

  if (op.mode == IndexMode::elements) {
    for_each(y.dims(), [&](const Index& at) {
      Combination<Scalar> result = combination(at);
      bool is_certain = true;
      Index from = at;
      for (from[axis] = 0; from[axis] < index.dims()[axis]; ++from[axis]) {
        const Position to(index.load(from), extent);
        is_certain = is_certain && to.is_certain;
        if (to.at == at[axis]) result.add(source.load(from));
      }
      y.store(at, unknown_unless(is_certain, result.result()));
    });
    return;
  }

  const std::int64_t count = element_count(index.dims());
  Scratch<Operands> scratch(
      operands, scatter_need(op, [&](int slot) { return operands.input(slot).dims(); }));
  std::int64_t *target = scratch.integers(), *order = target + count;
  bool is_certain = true;
  for (std::int64_t p = 0; p < count; ++p) {
    const Position to(index.load(unflatten(index.dims(), p)), extent);
    is_certain = is_certain && to.is_certain;
    target[p] = to.at;
  }
  std::iota(order, order + count, std::int64_t{0});
  std::sort(order, order + count, [&](std::int64_t a, std::int64_t b) {
    return target[a] != target[b] ? target[a] < target[b] : a < b;
  });
  for_each(y.dims(), [&](const Index& at) {
    Combination<Scalar> result = combination(at);
    const std::int64_t* next =
        std::lower_bound(order, order + count, at[axis],
                         [&](std::int64_t p, std::int64_t slice) { return target[p] < slice; });
    for (; next != order + count && target[*next] == at[axis]; ++next)
      result.add(source.load(selection.of_selection(at, unflatten(index.dims(), *next))));
    y.store(at, unknown_unless(is_certain, result.result()));
  });
}

ASHLAR_REFERENCE(Gather);
ASHLAR_REFERENCE_WITH_SCRATCH(Scatter, scatter_need);

}  // namespace ashlar::reference

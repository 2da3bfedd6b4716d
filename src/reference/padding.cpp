// Padding along any axes, and its gradient.
#include <array>

#include "reference/evaluate.hpp"

namespace ashlar::reference {

namespace {

// The position in x of element i of y on one axis of x with this extent; -1: none.
std::int64_t source_position(PadMode mode, std::int64_t i, std::int64_t before,
                             std::int64_t extent) {
  i -= before;
  if (i >= 0 && i < extent) return i;
  switch (mode) {
    case PadMode::constant: break;
    case PadMode::reflect: return i < 0 ? -i : 2 * (extent - 1) - i;
    case PadMode::edge: return i < 0 ? 0 : extent - 1;
    case PadMode::circular: return i < 0 ? i + extent : i - extent;
  }
  return -1;
}

struct Range {
  std::int64_t begin = 0, end = 0;
};
Range one_position(std::int64_t i, std::int64_t extent) {
  return i >= 0 && i < extent ? Range{i, i + 1} : Range{};
}

// The positions of y, of `padded` elements, that read element i of x: before, inside and behind it.
std::array<Range, 3> readers(PadMode mode, std::int64_t i, std::int64_t before, std::int64_t extent,
                             std::int64_t padded) {
  const std::int64_t end = before + extent;  // of x in y
  const Range inside = one_position(i + before, padded);
  switch (mode) {
    case PadMode::constant: break;
    case PadMode::reflect:
      return {i == 0 ? Range{} : one_position(before - i, before), inside,
              i == extent - 1 ? Range{} : one_position(end + extent - 2 - i, padded)};
    case PadMode::edge:
      return {i == 0 ? Range{0, before} : Range{}, inside,
              i == extent - 1 ? Range{end, padded} : Range{}};
    case PadMode::circular:
      return {one_position(before + i - extent, before), inside, one_position(end + i, padded)};
  }
  return {Range{}, inside, Range{}};
}

}  // namespace

template <class Operands>
void evaluate(const Pad& op, const Operands& operands) {
  using Scalar = typename Operands::Scalar;
  const auto x = operands.input(Pad::x);
  const auto y = operands.output(Pad::y);
  for_each(y.dims(), [&](const Index& at) {
    Index from = at;
    bool inside = true;
    for (int axis = 0; axis < at.rank(); ++axis) {
      from[axis] = source_position(op.mode, at[axis], per_axis(op.before, axis, 0), x.dims()[axis]);
      inside = inside && from[axis] >= 0;
    }
    y.store(at, inside ? x.load(from) : Scalar(op.value));
  });
}

template <class Operands>
void evaluate(const PadBackward& op, const Operands& operands) {
  using Scalar = typename Operands::Scalar;
  const auto dy = operands.input(PadBackward::dy);
  const auto dx = operands.output(PadBackward::dx);
  const int rank = dx.dims().rank();
  std::int64_t choices = 1;  // one of three ranges per axis
  for (int axis = 0; axis < rank; ++axis) choices *= 3;
  for_each(dx.dims(), [&](const Index& at) {
    Accumulator<Scalar> sum;
    for (std::int64_t choice = 0; choice < choices; ++choice) {
      Box box = Box::all(dy.dims());
      std::int64_t rest = choice;
      for (int axis = rank - 1; axis >= 0; --axis) {
        const Range range = readers(op.mode, at[axis], per_axis(op.before, axis, 0),
                                    dx.dims()[axis], dy.dims()[axis])[rest % 3];
        rest /= 3;
        box.begin[axis] = range.begin;
        box.end[axis] = range.end;
      }
      for_each_in(box, [&](const Index& from) { sum.add(dy.load(from)); });
    }
    dx.store(at, sum.total());
  });
}

ASHLAR_REFERENCE(Pad);
ASHLAR_REFERENCE(PadBackward);

}  // namespace ashlar::reference

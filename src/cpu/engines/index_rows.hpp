// What gather and scatter share: where an index selects, and rows of an index as positions.
#pragma once

#include <cstdint>

#include "base/element.hpp"
#include "cpu/operand.hpp"

namespace ashlar::cpu {

// Indices as positions along an axis: untrusted data, checked against its extent.
class IndexRows {
 public:
  IndexRows() = default;
  IndexRows(DType dtype, std::int64_t extent, bool clamps)
      : dtype_(dtype), extent_(extent), clamps_(clamps && extent > 0) {}

  // Reads `count` indices, `stride` elements apart; -1: outside.
  void load(const void* data, std::int64_t element, std::int64_t stride, std::int64_t count,
            std::int64_t* positions) const {
    if (dtype_ == i64)
      return convert(static_cast<const std::int64_t*>(data) + element, stride, count, positions);
    if (dtype_ == i32)
      return convert(static_cast<const std::int32_t*>(data) + element, stride, count, positions);
    for (std::int64_t i = 0; i < count; ++i)
      positions[i] =
          position(static_cast<std::int64_t>(load_element(dtype_, data, element + i * stride)));
  }
  std::int64_t load_one(const void* data, std::int64_t element) const {
    std::int64_t position;
    load(data, element, 0, 1, &position);
    return position;
  }

 private:
  template <class Integer>
  void convert(const Integer* data, std::int64_t stride, std::int64_t count,
               std::int64_t* positions) const {
    for (std::int64_t i = 0; i < count; ++i) positions[i] = position(data[i * stride]);
  }
  std::int64_t position(std::int64_t index) const {
    if (clamps_) return std::clamp<std::int64_t>(index, 0, extent_ - 1);
    return index >= 0 && index < extent_ ? index : -1;
  }

  DType dtype_ = i64;
  std::int64_t extent_ = 0;
  bool clamps_ = false;
};

// Axes of the selection (y of gather, source of scatter), of the index, and of the whole tensor
// that is selected from or combined into.
struct SelectedAxes {
  bool slices;
  int axis, index_rank;

  template <class Op>
  SelectedAxes(const Op& op, int index_axes)
      : slices(op.mode == IndexMode::slices),
        axis(static_cast<int>(op.axis)),
        index_rank(index_axes) {}

  bool is_index_axis(int a) const { return slices ? a >= axis && a < axis + index_rank : true; }
  // The axis of the index or of the whole tensor along which axis `a` of the selection runs; -1:
  // none.
  int of_index(int a) const { return !is_index_axis(a) ? -1 : slices ? a - axis : a; }
  int of_whole(int a) const {
    if (!slices) return a == axis ? -1 : a;
    return a < axis ? a : a < axis + index_rank ? -1 : a - index_rank + 1;
  }
  // The axis of the selection that runs along axis `a` of the whole tensor, not `axis` itself.
  int of_selection(int a) const { return !slices || a < axis ? a : a - 1 + index_rank; }

  // A view of the index, or of the whole tensor without its `axis`, over a selection of these
  // extents.
  View index_over(const Dims& selection, const View& index) const {
    return over(selection, index, [&](int a) { return of_index(a); });
  }
  View whole_over(const Dims& selection, const View& whole) const {
    return over(selection, whole, [&](int a) { return of_whole(a); });
  }

 private:
  template <class AxisOf>
  static View over(const Dims& dims, View view, const AxisOf& axis_of) {
    const Dims strides = view.strides;
    view.dims = dims;
    view.strides = Dims::filled(dims.rank(), 0);
    for (int a = 0; a < dims.rank(); ++a)
      if (const int from = axis_of(a); from >= 0) view.strides[a] = strides[from];
    return view;
  }
};

// The element of a view at these coordinates.
inline std::int64_t element_at(const View& view, const Coords& at) {
  std::int64_t element = view.offset;
  for (int a = 0; a < view.strides.rank(); ++a)
    element += at[static_cast<std::size_t>(a)] * view.strides[a];
  return element;
}

// A plain load without rounding.
inline bool is_raw(const PointwiseProgram& program) {
  if (!program.is_plain_load()) return false;
  const auto& round_to = program.steps[0].round_to;
  return !round_to || *round_to == program.steps[0].view.dtype;
}

}  // namespace ashlar::cpu

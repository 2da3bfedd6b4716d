// Views: broadcasts, reshapes and inverse movements as strides.
#include "plan/view.hpp"

namespace ashlar {

View view_of(const Graph& graph, TensorId id) {
  const Tensor& tensor = graph.tensor(id);
  return {id, 0, tensor.dtype, tensor.dims, tensor.strides, tensor.ragged_offset};
}

View broadcast_to(View view, const Dims& space) {
  for (int axis = 0; axis < space.rank(); ++axis)
    if (view.dims[axis] == 1 && space[axis] != 1) view.strides[axis] = 0;
  view.dims = space;
  return view;
}

std::optional<Dims> reshaped_strides(const View& view, const Dims& dims) {
  if (element_count(dims) == 0) return row_major.strides_for(dims);
  Dims strides = Dims::filled(dims.rank(), 0);
  int old_axis = view.dims.rank() - 1, new_axis = dims.rank() - 1;
  while (new_axis >= 0) {
    // Groups of old and new axes with equal element counts; the old axes of a group must be
    // mergeable.
    while (old_axis >= 0 && view.dims[old_axis] == 1) --old_axis;
    if (dims[new_axis] == 1) {
      strides[new_axis--] = 0;
      continue;
    }
    std::int64_t old_count = view.dims[old_axis], new_count = dims[new_axis];
    const std::int64_t step = view.strides[old_axis];
    int old_first = old_axis;
    std::int64_t span = old_count;
    strides[new_axis] = step;
    while (old_count != new_count) {
      if (new_count < old_count) {
        --new_axis;
        strides[new_axis] = step * new_count;
        new_count *= dims[new_axis];
      } else {
        --old_first;
        if (view.dims[old_first] != 1 && view.strides[old_first] != step * span)
          return std::nullopt;
        span *= view.dims[old_first];
        old_count *= view.dims[old_first];
      }
    }
    old_axis = old_first - 1;
    --new_axis;
  }
  return strides;
}

std::optional<Op> inverse_movement(const Op& op, const Dims& source_dims) {
  if (const auto* transpose = std::get_if<Transpose>(&op)) {
    Transpose back{transpose->permutation};
    for (int axis = 0; axis < back.permutation.rank(); ++axis)
      back.permutation[static_cast<int>(transpose->permutation[axis])] = axis;
    return back;
  }
  if (std::holds_alternative<Reshape>(op)) return Reshape{source_dims};
  return std::nullopt;
}

bool is_packed_row_major(const Dims& dims, const Dims& strides) {
  std::int64_t expected = 1;
  for (int axis = dims.rank() - 1; axis >= 0; --axis) {
    if (dims[axis] != 1 && strides[axis] != expected) return false;
    expected *= dims[axis];
  }
  return true;
}

}  // namespace ashlar

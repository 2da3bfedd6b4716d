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

bool is_packed_row_major(const Dims& dims, const Dims& strides) {
  std::int64_t expected = 1;
  for (int axis = dims.rank() - 1; axis >= 0; --axis) {
    if (dims[axis] != 1 && strides[axis] != expected) return false;
    expected *= dims[axis];
  }
  return true;
}

}  // namespace ashlar

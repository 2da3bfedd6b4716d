#include "core/tensor_spec.hpp"

namespace ashlar::cudnn {

VectorShape vector_shape(const TensorSpec& spec) {
  VectorShape shape;
  const int rank = spec.dims.rank();
  for (int axis = 0; axis < rank; ++axis) {
    const bool is_vectors = axis == spec.vector_axis;
    const std::int64_t extent = is_vectors ? spec.dims[axis] / spec.vector : spec.dims[axis];
    shape.dims.push_back(extent);
    shape.strides.push_back(spec.strides[axis]);
    shape.split.push_back(extent);
    shape.to_logical.push_back(axis);
    if (is_vectors) {
      shape.split.push_back(spec.vector);
      shape.to_logical.push_back(rank);
    }
    shape.from_logical.push_back(axis <= spec.vector_axis ? axis : axis + 1);
  }
  shape.dims.push_back(spec.vector);
  shape.strides.push_back(1);
  shape.from_logical.push_back(spec.vector_axis + 1);
  return shape;
}

void add_to_key(PlanKey& key, const TensorSpec& spec) {
  key.add(spec.dtype).add(spec.dims).add(spec.strides).add(spec.vector).add(spec.vector_axis);
}

Value add_input(Graph& graph, std::string name, const TensorSpec& spec) {
  if (spec.vector == 1) return graph.input(std::move(name), spec.dims, spec.dtype, spec.strides);
  const VectorShape shape = vector_shape(spec);
  const Value memory = graph.input(std::move(name), shape.dims, spec.dtype, shape.strides);
  return graph.reshape(graph.transpose(memory, shape.to_logical), spec.dims);
}

namespace {

// Whether the tensor has these strides; strides of axes with extent 1 are ignored.
bool is_laid_out(const Tensor& tensor, const Dims& strides) {
  for (int axis = 0; axis < strides.rank(); ++axis)
    if (tensor.dims[axis] > 1 && tensor.strides[axis] != strides[axis]) return false;
  return true;
}

}  // namespace

Value add_output(Graph& graph, std::string name, Value value, const TensorSpec& spec) {
  OutputSpec result;
  if (spec.vector == 1) {
    // Set only where they differ: to change an output that is not its node's first one costs a
    // copy.
    if (value.dtype() != spec.dtype) result.dtype = spec.dtype;
    if (!is_laid_out(value.tensor(), spec.strides)) result.layout = Layout(spec.strides);
    return graph.output(std::move(name), value, result);
  }
  result.dtype = spec.dtype;
  const VectorShape shape = vector_shape(spec);
  result.layout = Layout(shape.strides);
  const Value memory = graph.transpose(graph.reshape(value, shape.split), shape.from_logical);
  return graph.output(std::move(name), memory, result);
}

}  // namespace ashlar::cudnn

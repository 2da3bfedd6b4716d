#include "legacy/graph_helpers.hpp"

#include <array>

#include "core/failure.hpp"

namespace ashlar::cudnn {

DType compute_of(DType data) {
  return data == f64 || data == i32 || data == u32 || data == i64 ? f64 : f32;
}

OutputSpec in(DType type) {
  OutputSpec spec;
  spec.dtype = spec.compute = type;
  return spec;
}

Value unary(Graph& graph, PointwiseMode mode, Value x, DType type) {
  return graph.pointwise(mode, std::array{x}, {}, in(type));
}

Value binary(Graph& graph, PointwiseMode mode, Value a, Value b, DType type) {
  return graph.pointwise(mode, std::array{a, b}, {}, in(type));
}

Value constant_like(Graph& graph, double number, Value like, DType type) {
  return graph.constant(number, type, like.dims().rank());
}

Value select(Graph& graph, Value predicate, Value x, Value otherwise, DType type) {
  return graph.pointwise(PointwiseMode::binary_select, std::array{x, otherwise, predicate}, {},
                         in(type));
}

Value without_nan(Graph& graph, Value x, Value instead, DType type) {
  return select(graph, graph.pointwise(PointwiseMode::cmp_eq, std::array{x, x}), x, instead, type);
}

Value filled_like(Graph& graph, Value like, Value single, const OutputSpec& spec) {
  const Value index = graph.pointwise(PointwiseMode::gen_index, std::array{like});
  const Value everywhere = graph.pointwise(PointwiseMode::cmp_ge,
                                           std::array{index, constant_like(graph, 0.0, like, i32)});
  return graph.pointwise(PointwiseMode::binary_select, std::array{single, single, everywhere}, {},
                         spec);
}

TensorSpec broadcast_spec(TensorSpec spec, const Dims& dims, const char* parameter) {
  const Dims provided = spec.dims;
  bool fits = provided.rank() == dims.rank();
  for (int axis = 0; fits && axis < dims.rank(); ++axis) {
    if (provided[axis] == dims[axis]) continue;
    fits = provided[axis] == 1;
    spec.dims[axis] = dims[axis];
    spec.strides[axis] = 0;
  }
  if (!fits)
    fail(CUDNN_STATUS_BAD_PARAM, "{}.dims: got {}, expected dims that broadcast to {}", parameter,
         to_string(provided), to_string(dims));
  return spec;
}

}  // namespace ashlar::cudnn

// Graph-building helpers shared by legacy calls.
#pragma once

#include <cudnn.h>

#include "core/tensor_spec.hpp"

namespace ashlar::cudnn {

// The compute type of calls without a type parameter: f32, or f64 for data that f32 cannot
// represent.
DType compute_of(DType data);
// An OutputSpec with this storage and compute type.
OutputSpec in(DType type);

Value unary(Graph& graph, PointwiseMode mode, Value x, DType type);
Value binary(Graph& graph, PointwiseMode mode, Value a, Value b, DType type);
Value constant_like(Graph& graph, double number, Value like, DType type);
// predicate ? x : otherwise, element-wise.
Value select(Graph& graph, Value predicate, Value x, Value otherwise, DType type);
// x with NaN replaced by `instead`.
Value without_nan(Graph& graph, Value x, Value instead, DType type);
// `single` broadcast to the dims of `like`, whose elements are not used.
Value filled_like(Graph& graph, Value like, Value single, const OutputSpec& spec = {});

// The spec broadcast to `dims` (stride 0); throws Failure(BAD_PARAM) that names the parameter when
// it does not broadcast.
TensorSpec broadcast_spec(TensorSpec spec, const Dims& dims, const char* parameter);

}  // namespace ashlar::cudnn

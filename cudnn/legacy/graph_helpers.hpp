// Small pieces the graphs of several older calls are made of.
#pragma once

#include <cudnn.h>

#include "core/tensor_spec.hpp"

namespace ashlar::cudnn {

// What calls compute in that are told no type: f32, or f64 for data that f32 does not hold.
DType compute_of(DType data);
// A result stored and computed in this type.
Result in(DType type);

Value unary(Graph& graph, PointwiseMode mode, Value x, DType type);
Value binary(Graph& graph, PointwiseMode mode, Value a, Value b, DType type);
Value constant_like(Graph& graph, double number, Value like, DType type);
// The first operand where the predicate holds, else the second.
Value select(Graph& graph, Value predicate, Value x, Value otherwise, DType type);
// Another value in place of NaN.
Value without_nan(Graph& graph, Value x, Value instead, DType type);
// `single` repeated along its axes of extent 1 up to the extents of `like`, whose elements do not
// matter.
Value filled_like(Graph& graph, Value like, Value single, const Result& result = {});

// The tensor repeated along its axes of extent 1 up to `dims`; throws Failure(BAD_PARAM) naming the
// parameter when the extents do not allow it.
TensorSpec broadcast_spec(TensorSpec spec, const Dims& dims, const char* parameter);

}  // namespace ashlar::cudnn

// Element types, cuDNN's and ours.
#pragma once

#include <cudnn_graph.h>

#include <ashlar/dtype.hpp>
#include <optional>

namespace ashlar::cudnn {

// Elements of memory: INT8x4 is i8 (its fours are a matter of layout). Nothing for a number that is
// no data type, and for FAST_FLOAT_FOR_FP8, which is no type of memory.
std::optional<DType> dtype_of(cudnnDataType_t type);
// A type to compute in: FAST_FLOAT_FOR_FP8 is f32.
std::optional<DType> compute_dtype_of(cudnnDataType_t type);
// 4 and 32 for the x4 and x32 types, else 1.
int vector_width(cudnnDataType_t type);
cudnnDataType_t data_type_of(DType dtype);
// "CUDNN_DATA_HALF"; never null.
const char* data_type_name(cudnnDataType_t type);

// The same, throwing Failure(NOT_SUPPORTED_DATA_TYPE / BAD_PARAM) that names the parameter.
DType require_dtype(cudnnDataType_t type, const char* parameter);

}  // namespace ashlar::cudnn

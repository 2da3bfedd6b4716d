// Conversion between cudnnDataType_t and ashlar::DType.
#pragma once

#include <cudnn_graph.h>

#include <ashlar/dtype.hpp>
#include <optional>

namespace ashlar::cudnn {

// The element type in memory. INT8x4 is i8: its vectors are part of the layout. Empty for an
// invalid enumerator, and for FAST_FLOAT_FOR_FP8, which is a compute type only.
std::optional<DType> dtype_of(cudnnDataType_t type);
// As a compute type: FAST_FLOAT_FOR_FP8 is f32.
std::optional<DType> compute_dtype_of(cudnnDataType_t type);
// 4 and 32 for the x4 and x32 types, else 1.
int vector_width(cudnnDataType_t type);
cudnnDataType_t data_type_of(DType dtype);
// "CUDNN_DATA_HALF"; never null.
const char* data_type_name(cudnnDataType_t type);

// dtype_of(), or a Failure(NOT_SUPPORTED_DATA_TYPE or BAD_PARAM) that names the parameter.
DType require_dtype(cudnnDataType_t type, const char* parameter);

}  // namespace ashlar::cudnn

#include "core/data_type.hpp"

#include <array>

#include "core/failure.hpp"

namespace ashlar::cudnn {

namespace {

struct Row {
  cudnnDataType_t type;
  const char* name;
  std::optional<DType> dtype;
  int vector = 1;
};
#define ASHLAR_TYPE(type, ...) \
  Row { type, #type, __VA_ARGS__ }
constexpr std::array kRows = {
    ASHLAR_TYPE(CUDNN_DATA_FLOAT, f32),
    ASHLAR_TYPE(CUDNN_DATA_DOUBLE, f64),
    ASHLAR_TYPE(CUDNN_DATA_HALF, f16),
    ASHLAR_TYPE(CUDNN_DATA_INT8, i8),
    ASHLAR_TYPE(CUDNN_DATA_INT32, i32),
    ASHLAR_TYPE(CUDNN_DATA_INT8x4, i8, 4),
    ASHLAR_TYPE(CUDNN_DATA_UINT8, u8),
    ASHLAR_TYPE(CUDNN_DATA_UINT8x4, u8, 4),
    ASHLAR_TYPE(CUDNN_DATA_INT8x32, i8, 32),
    ASHLAR_TYPE(CUDNN_DATA_BFLOAT16, bf16),
    ASHLAR_TYPE(CUDNN_DATA_INT64, i64),
    ASHLAR_TYPE(CUDNN_DATA_BOOLEAN, boolean),
    ASHLAR_TYPE(CUDNN_DATA_FP8_E4M3, e4m3),
    ASHLAR_TYPE(CUDNN_DATA_FP8_E5M2, e5m2),
    ASHLAR_TYPE(CUDNN_DATA_FAST_FLOAT_FOR_FP8, {}),
    ASHLAR_TYPE(CUDNN_DATA_FP8_E8M0, e8m0),
    ASHLAR_TYPE(CUDNN_DATA_FP4_E2M1, e2m1),
    ASHLAR_TYPE(CUDNN_DATA_INT4, i4),
    ASHLAR_TYPE(CUDNN_DATA_UINT4, u4),
    ASHLAR_TYPE(CUDNN_DATA_UINT32, u32),
    ASHLAR_TYPE(CUDNN_DATA_COMPLEX_FP32, complex_f32),
    ASHLAR_TYPE(CUDNN_DATA_COMPLEX_FP64, complex_f64),
};
#undef ASHLAR_TYPE

const Row* find(cudnnDataType_t type) {
  for (const Row& row : kRows)
    if (row.type == type) return &row;
  return nullptr;
}

}  // namespace

std::optional<DType> dtype_of(cudnnDataType_t type) {
  const Row* row = find(type);
  return row != nullptr ? row->dtype : std::nullopt;
}

std::optional<DType> compute_dtype_of(cudnnDataType_t type) {
  return type == CUDNN_DATA_FAST_FLOAT_FOR_FP8 ? f32 : dtype_of(type);
}

int vector_width(cudnnDataType_t type) {
  const Row* row = find(type);
  return row != nullptr ? row->vector : 1;
}

cudnnDataType_t data_type_of(DType dtype) {
  for (const Row& row : kRows)
    if (row.dtype == dtype && row.vector == 1) return row.type;
  return CUDNN_DATA_FLOAT;
}

const char* data_type_name(cudnnDataType_t type) {
  const Row* row = find(type);
  return row != nullptr ? row->name : "no data type";
}

DType require_dtype(cudnnDataType_t type, const char* parameter) {
  if (const auto dtype = dtype_of(type)) return *dtype;
  if (find(type) != nullptr)
    fail(CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "{}: got {}, expected a storage type", parameter,
         data_type_name(type));
  fail(CUDNN_STATUS_BAD_PARAM, "{}: got {}, expected a cudnnDataType_t", parameter,
       static_cast<int>(type));
}

}  // namespace ashlar::cudnn

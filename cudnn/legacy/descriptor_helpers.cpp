#include "legacy/descriptor_helpers.hpp"

#include <bit>
#include <cstdint>

#include "core/data_type.hpp"
#include "core/failure.hpp"

namespace ashlar::cudnn {

DType require_floating(cudnnDataType_t type, const char* parameter) {
  const DType dtype = require_dtype(type, parameter);
  if (dtype != f64 && dtype != f32 && dtype != f16 && dtype != bf16)
    fail(CUDNN_STATUS_NOT_SUPPORTED, "{}: got {}, expected DOUBLE, FLOAT, HALF or BFLOAT16",
         parameter, data_type_name(type));
  return dtype;
}

void require_countable(const char* what, std::initializer_list<double> factors) {
  constexpr double kMaxElements = 0x1p56;
  double count = 1.0;
  for (double factor : factors) count *= factor;
  if (count > kMaxElements)
    fail(CUDNN_STATUS_BAD_PARAM, "{}: got {} elements, expected at most {}", what, count,
         kMaxElements);
}

std::int64_t bytes_of(DType dtype, std::int64_t count) { return count * bit_width(dtype) / 8; }

std::size_t element_bytes(cudnnDataType_t type) {
  return static_cast<std::size_t>(bytes_of(require_floating(type, "dataType"), 1));
}

void* offset_address(const void* base, std::int64_t bytes) {
  return std::bit_cast<void*>(std::bit_cast<std::uintptr_t>(base) +
                              static_cast<std::uintptr_t>(bytes));
}

TensorSpec row_major_spec(DType dtype, const Dims& dims) {
  TensorSpec spec;
  spec.dtype = dtype;
  spec.dims = dims;
  spec.strides = row_major.strides_for(dims);
  return spec;
}

}  // namespace ashlar::cudnn

// Helpers shared by the RNN and attention descriptors.
#pragma once

#include <cudnn.h>

#include <initializer_list>

#include "core/tensor_spec.hpp"

namespace ashlar::cudnn {

// Throws Failure unless the type is DOUBLE, FLOAT, HALF or BFLOAT16.
DType require_floating(cudnnDataType_t type, const char* parameter);

// Throws Failure when the byte size of (product of `factors`) elements may overflow.
void require_countable(const char* what, std::initializer_list<double> factors);

// Bytes of `count` elements of a type.
std::int64_t bytes_of(DType dtype, std::int64_t count);

// Bytes of one element of a floating type; throws as require_floating does.
std::size_t element_bytes(cudnnDataType_t type);

// `base` + `bytes`. With a null `base` the result is the offset as a pointer.
void* offset_address(const void* base, std::int64_t bytes);

// A row-major tensor.
TensorSpec row_major_spec(DType dtype, const Dims& dims);

// Writes an optional output parameter; null is ignored.
template <class T>
void write_optional(T* out, const T& value) {
  if (out != nullptr) *out = value;
}

}  // namespace ashlar::cudnn

// Small steps that descriptors of sequences and of networks on them share.
#pragma once

#include <cudnn.h>

#include <initializer_list>

#include "core/tensor_spec.hpp"

namespace ashlar::cudnn {

// Throws Failure unless the type is DOUBLE, FLOAT, HALF or BFLOAT16.
DType require_floating(cudnnDataType_t type, const char* parameter);

// Throws Failure unless the product of the factors is small enough to count the bytes of that many
// elements.
void require_countable(const char* what, std::initializer_list<double> factors);

// Bytes of `count` elements of a type.
std::int64_t bytes_of(DType dtype, std::int64_t count);

// Bytes of one element of a floating type; throws as require_floating does.
std::size_t element_bytes(cudnnDataType_t type);

// The address `bytes` behind `base`, which may be null: then it is a distance.
void* address_behind(const void* base, std::int64_t bytes);

// A row-major tensor.
TensorSpec row_major_spec(DType dtype, const Dims& dims);

// An answer the caller may not want: null is ignored.
template <class T>
void write_optional(T* out, const T& value) {
  if (out != nullptr) *out = value;
}

}  // namespace ashlar::cudnn

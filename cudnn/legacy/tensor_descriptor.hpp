// cudnnTensorDescriptor_t.
#pragma once

#include <cudnn.h>

#include "core/tensor_spec.hpp"

struct cudnnTensorStruct {
  static constexpr const char* kTypeName = "cudnnTensorDescriptor_t";
  bool is_set = false;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  ashlar::cudnn::TensorSpec spec;
  bool has_explicit_strides = false;  // explicit strides, not derived from a format
};

namespace ashlar::cudnn {

// The spec of a descriptor; throws Failure(BAD_PARAM) for one that was never set.
TensorSpec spec_of(cudnnTensorDescriptor_t descriptor, const char* parameter);
// The same for a parameter that may be null.
std::optional<TensorSpec> optional_spec_of(cudnnTensorDescriptor_t descriptor,
                                           const char* parameter);

// A contiguous tensor. The channels (axis 1) are vectorised for x4 and x32 types, which require
// NCHW_VECT_C and vice versa. Throws Failure for invalid combinations.
TensorSpec packed_spec(cudnnDataType_t type, cudnnTensorFormat_t format, const Dims& dims);
// Strides count elements of the type, i.e. whole vectors for x4 and x32 types.
TensorSpec strided_spec(cudnnDataType_t type, const Dims& dims, const Dims& strides);
void set(cudnnTensorStruct& descriptor, cudnnDataType_t type, const TensorSpec& spec,
         bool has_explicit_strides = false);

// Dims from the caller's array of `rank` ints; throws Failure(NOT_SUPPORTED) unless 1 <= rank <=
// CUDNN_DIM_MAX.
Dims dims_of(int rank, const int values[], const char* parameter);
// Copies the first `capacity` values to the caller's array.
void copy_out(const Dims& values, int capacity, int into[], const char* parameter);
// `value` as an int; throws Failure when it does not fit.
int to_int(std::int64_t value, const char* parameter);

// Bytes from the first to one past the last byte of the tensor.
std::int64_t byte_size(const TensorSpec& spec);

// Throw Failure(BAD_PARAM) unless both have the same dims (or element type).
void require_same_dims(const TensorSpec& a, const char* a_name, const TensorSpec& b,
                       const char* b_name);
void require_same_dtype(const TensorSpec& a, const char* a_name, const TensorSpec& b,
                        const char* b_name);

}  // namespace ashlar::cudnn

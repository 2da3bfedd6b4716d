// Tensor descriptors of the older calls.
#pragma once

#include <cudnn.h>

#include "core/tensor_spec.hpp"

struct cudnnTensorStruct {
  static constexpr const char* kTypeName = "cudnnTensorDescriptor_t";
  bool is_set = false;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  ashlar::cudnn::TensorSpec spec;
  bool has_given_strides = false;  // the caller's own, not those of a format
};

namespace ashlar::cudnn {

// What a descriptor says; throws Failure(BAD_PARAM) for one that was created but never set.
TensorSpec spec_of(cudnnTensorDescriptor_t descriptor, const char* parameter);
// The same for a parameter that may be null.
std::optional<TensorSpec> optional_spec_of(cudnnTensorDescriptor_t descriptor,
                                           const char* parameter);

// A tensor without gaps. Channels (axis 1) lie in vectors when the type is an x4 or x32 one, which
// is so exactly when the format is NCHW_VECT_C. Throws Failure for what cannot be.
TensorSpec packed_spec(cudnnDataType_t type, cudnnTensorFormat_t format, const Dims& dims);
// Strides count elements of the type: whole vectors of an x4 or x32 one.
TensorSpec strided_spec(cudnnDataType_t type, const Dims& dims, const Dims& strides);
void set(cudnnTensorStruct& descriptor, cudnnDataType_t type, const TensorSpec& spec,
         bool has_given_strides = false);

// Extents out of a caller's array of `rank` ints; throws Failure(NOT_SUPPORTED) for a rank outside
// 1 to CUDNN_DIM_MAX.
Dims dims_of(int rank, const int values[], const char* parameter);
// Puts the first of `values` into a caller's array with room for `capacity`.
void copy_out(const Dims& values, int capacity, int into[], const char* parameter);
// The number a caller's int takes; throws Failure when it is too large.
int to_int(std::int64_t value, const char* parameter);

// From the first to past the last byte the tensor touches.
std::int64_t byte_size(const TensorSpec& spec);

// Throws Failure(BAD_PARAM) unless both have the same extents (or element type).
void require_same_dims(const TensorSpec& a, const char* a_name, const TensorSpec& b,
                       const char* b_name);
void require_same_dtype(const TensorSpec& a, const char* a_name, const TensorSpec& b,
                        const char* b_name);

}  // namespace ashlar::cudnn

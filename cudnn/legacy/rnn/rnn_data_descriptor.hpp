// cudnnRNNDataDescriptor_t: a batch of sequences.
#pragma once

#include <cudnn.h>

#include <array>
#include <cstddef>
#include <vector>

#include "core/tensor_spec.hpp"

struct cudnnRNNDataStruct {
  static constexpr const char* kTypeName = "cudnnRNNDataDescriptor_t";
  bool is_set = false;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  cudnnRNNDataLayout_t layout = CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED;
  int max_length = 0, batch = 0, vector_size = 0;
  std::vector<int> lengths;
  // paddingFill: one element of the type, 0 by default.
  std::array<std::byte, 8> fill = {};
};

namespace ashlar::cudnn {

// Throws Failure for a descriptor that was never set.
const cudnnRNNDataStruct& sequences_of(cudnnRNNDataDescriptor_t descriptor, const char* parameter);

// Whether every sequence has max_length steps.
bool has_equal_lengths(const cudnnRNNDataStruct& sequences);
// Whether the layout is packed without padding: [rows, features]. Sequences of equal length are [T,
// N, features] instead.
bool is_packed(const cudnnRNNDataStruct& sequences);
// The total number of steps of all sequences.
std::int64_t row_count(const cudnnRNNDataStruct& sequences);
// The spec for graph operations: [T, N, features], or [rows, features] when packed.
TensorSpec spec_of(const cudnnRNNDataStruct& sequences);

}  // namespace ashlar::cudnn

// cudnnSeqDataDescriptor_t: sequences of vectors in batches and beams.
#pragma once

#include <cudnn.h>

#include <array>
#include <cstddef>
#include <vector>

#include "core/tensor_spec.hpp"

struct cudnnSeqDataStruct {
  static constexpr const char* kTypeName = "cudnnSeqDataDescriptor_t";
  bool is_set = false;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::array<int, CUDNN_SEQDATA_DIM_COUNT> dims = {};                 // by axis
  std::array<cudnnSeqDataAxis_t, CUDNN_SEQDATA_DIM_COUNT> axes = {};  // outermost first
  std::vector<int> lengths;                                           // [batch][beam]
  // paddingFill: one element of the type, 0 by default.
  std::array<std::byte, 8> fill = {};
  bool has_fill = false;

  int steps() const { return dims[CUDNN_SEQDATA_TIME_DIM]; }
  int batch() const { return dims[CUDNN_SEQDATA_BATCH_DIM]; }
  int beams() const { return dims[CUDNN_SEQDATA_BEAM_DIM]; }
  int vector_size() const { return dims[CUDNN_SEQDATA_VECT_DIM]; }
};

namespace ashlar::cudnn {

// Throws Failure for a descriptor that was never set.
const cudnnSeqDataStruct& sequences_of(cudnnSeqDataDescriptor_t descriptor, const char* parameter);

// The spec for graph operations: [batch, beams, steps, vector].
TensorSpec spec_of(const cudnnSeqDataStruct& sequences);

}  // namespace ashlar::cudnn

// cudnnRNNDescriptor_t.
#pragma once

#include <cudnn.h>

#include <ashlar/ops/recurrent.hpp>

#include "core/plan_cache.hpp"

struct cudnnRNNStruct {
  static constexpr const char* kTypeName = "cudnnRNNDescriptor_t";
  bool is_set = false;
  cudnnRNNAlgo_t algo = CUDNN_RNN_ALGO_STANDARD;
  cudnnRNNMode_t cell = CUDNN_LSTM;
  cudnnRNNBiasMode_t bias_mode = CUDNN_RNN_DOUBLE_BIAS;
  cudnnDirectionMode_t direction = CUDNN_UNIDIRECTIONAL;
  cudnnRNNInputMode_t input_mode = CUDNN_LINEAR_INPUT;
  cudnnDataType_t dtype = CUDNN_DATA_FLOAT, compute = CUDNN_DATA_FLOAT;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
  std::int32_t input_size = 0, hidden_size = 0, projected_size = 0, layers = 0;
  cudnnDropoutDescriptor_t dropout = nullptr;
  std::uint32_t flags = 0;
  // Set by separate calls.
  cudnnRNNClipMode_t clip = CUDNN_RNN_CLIP_NONE;
  cudnnNanPropagation_t clip_nan = CUDNN_PROPAGATE_NAN;
  double clip_low = 0.0, clip_high = 0.0;
};

namespace ashlar::cudnn {

// Throws Failure for a descriptor that was never set.
const cudnnRNNStruct& network_of(cudnnRNNDescriptor_t descriptor);

// The network as attributes of the RNN operations. Fields that depend on the data and the pass
// (layout, padding, dropout) keep their defaults. A projSize equal to hiddenSize means no
// projection.
RnnAttributes attributes_of(const cudnnRNNStruct& network);

// The compute type, which is also the type of the saved states.
DType state_dtype(const cudnnRNNStruct& network);

}  // namespace ashlar::cudnn

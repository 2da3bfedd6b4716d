// cudnnAttnDescriptor_t.
#pragma once

#include <cudnn.h>

#include <ashlar/ops/multi_head_attention.hpp>

#include "core/plan_cache.hpp"

struct cudnnAttnStruct {
  static constexpr const char* kTypeName = "cudnnAttnDescriptor_t";
  bool is_set = false;
  unsigned mode = 0;
  int heads = 1;
  double softmax_scale = 1.0;
  cudnnDataType_t dtype = CUDNN_DATA_FLOAT, compute = CUDNN_DATA_FLOAT;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
  cudnnDropoutDescriptor_t attention_dropout = nullptr, output_dropout = nullptr;
  int q_size = 0, k_size = 0, v_size = 0;
  int q_projected = 0, k_projected = 0, v_projected = 0, o_projected = 0;  // 0: no projection
  int max_q_length = 0, max_kv_length = 0, max_batch = 0, max_beam = 0;
};

namespace ashlar::cudnn {

// Throws Failure for a descriptor that was never set.
const cudnnAttnStruct& attention_of(cudnnAttnDescriptor_t descriptor);

// The descriptor as attributes of the multi-head attention operations, without dropout.
MultiHeadAttentionAttributes attributes_of(const cudnnAttnStruct& attention);

// The size of a head's values, and of an output vector.
std::int64_t value_size(const cudnnAttnStruct& attention);
std::int64_t output_size(const cudnnAttnStruct& attention);
// Whether every beam has its own keys.
bool has_key_beams(const cudnnAttnStruct& attention);

}  // namespace ashlar::cudnn

#include "cpu/engine_table.hpp"

#include <array>

#include "cpu/engines/engines.hpp"

namespace ashlar::cpu {

EngineTable engine_table() {
  static const std::array table = {
      &conv_depthwise_engine(),
      &conv_implicit_gemm_engine(),
      &matmul_gemm_engine(),
      &matmul_complex_engine(),
      &attention_tiled_engine(),
      &attention_tiled_backward_engine(),
      &row_norm_engine(),
      &channel_norm_engine(),
      &softmax_engine(),
      &reduction_engine(),
      &resample_engine(),
      &rng_engine(),
      &block_scale_engine(),
      &data_movement_engine(),
      &pointwise_engine(),
      &reference_engine(),
  };
  return table;
}

}  // namespace ashlar::cpu

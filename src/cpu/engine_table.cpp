// The table of the CPU engines, most specialised first.
#include "cpu/engine_table.hpp"

#include <array>

#include "cpu/engines/engines.hpp"

namespace ashlar::cpu {

EngineTable engine_table() {
  static const std::array table = {
      &conv_depthwise_engine(),
      &conv_winograd_engine(),
      &conv_winograd_filter_engine(),
      &conv_tiles_engine(),
      &conv_int8_engine(),
      &conv_implicit_gemm_engine(),
      &causal_conv_engine(),
      &matmul_int8_engine(),
      &matmul_gemm_engine(),
      &moe_grouped_matmul_engine(),
      &matmul_complex_engine(),
      &attention_tiled_engine(),
      &attention_tiled_backward_engine(),
      &recurrent_engine(),
      &row_norm_engine(),
      &channel_norm_engine(),
      &channel_stats_engine(),
      &local_norm_engine(),
      &softmax_engine(),
      &cross_entropy_engine(),
      &rope_engine(),
      &reduction_engine(),
      &scan_engine(),
      &top_k_engine(),
      &resample_engine(),
      &interpolation_engine(),
      &grid_generator_engine(),
      &grid_sample_engine(),
      &ctc_engine(),
      &im2col_engine(),
      &tensor_transform_engine(),
      &pad_engine(),
      &rng_engine(),
      &dropout_engine(),
      &block_scale_engine(),
      &layout_copy_engine(),
      &data_movement_engine(),
      &cache_copy_engine(),
      &gather_engine(),
      &scatter_engine(),
      &pointwise_engine(),
      &reference_engine(),
  };
  return table;
}

}  // namespace ashlar::cpu

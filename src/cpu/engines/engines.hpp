// The engines of the CPU, one per file of this folder.
#pragma once

#include "plan/engine.hpp"

namespace ashlar::cpu {

const Engine& attention_tiled_backward_engine();
const Engine& attention_tiled_engine();
const Engine& block_scale_engine();
const Engine& cache_copy_engine();
const Engine& causal_conv_engine();
const Engine& channel_norm_engine();
const Engine& channel_stats_engine();
const Engine& conv_depthwise_engine();
const Engine& conv_implicit_gemm_engine();
const Engine& conv_tiles_engine();
const Engine& conv_int8_engine();
const Engine& conv_winograd_engine();
const Engine& conv_winograd_filter_engine();
const Engine& cross_entropy_engine();
const Engine& ctc_engine();
const Engine& data_movement_engine();
const Engine& dropout_engine();
const Engine& gather_engine();
const Engine& grid_generator_engine();
const Engine& grid_sample_engine();
const Engine& im2col_engine();
const Engine& interpolation_engine();
const Engine& layout_copy_engine();
const Engine& local_norm_engine();
const Engine& matmul_complex_engine();
const Engine& matmul_gemm_engine();
const Engine& matmul_int8_engine();
const Engine& moe_grouped_matmul_engine();
const Engine& pad_engine();
const Engine& pointwise_engine();
const Engine& recurrent_engine();
const Engine& reduction_engine();
const Engine& reference_engine();
const Engine& resample_engine();
const Engine& rng_engine();
const Engine& rope_engine();
const Engine& row_norm_engine();
const Engine& scatter_engine();
const Engine& scan_engine();
const Engine& softmax_engine();
const Engine& tensor_transform_engine();
const Engine& top_k_engine();

}  // namespace ashlar::cpu

// cudnnBackendFinalize() for each descriptor type: validates the attributes together and builds the
// object that the descriptor stands for.
#pragma once

#include "backend/record.hpp"

namespace ashlar::cudnn {

using FinishedRef = std::shared_ptr<const Finished>;

// Throws Failure; never null.
FinishedRef finalize(const Record& record);

// The result of finalize for a descriptor that is its attributes and nothing more.
FinishedRef attributes_only();

FinishedRef finalize_tensor(const Record& tensor);
FinishedRef finalize_pointwise(const Record& pointwise);
FinishedRef finalize_convolution(const Record& convolution);
FinishedRef finalize_matmul(const Record& matmul);
FinishedRef finalize_reduction(const Record& reduction);
FinishedRef finalize_resample(const Record& resample);
FinishedRef finalize_rng(const Record& rng);
FinishedRef finalize_knob_choice(const Record& choice);
FinishedRef finalize_variant_pack(const Record& pack);

FinishedRef finalize_operation_graph(const Record& graph);
FinishedRef finalize_engine(const Record& engine);
FinishedRef finalize_engine_config(const Record& config);
FinishedRef finalize_heuristics(const Record& question);
FinishedRef finalize_execution_plan(const Record& plan);
FinishedRef finalize_kernel_cache(const Record& cache);
FinishedRef finalize_device(const Record& device);

// Operations.
FinishedRef finalize_convolution_forward(const Record& operation);
FinishedRef finalize_convolution_backward_data(const Record& operation);
FinishedRef finalize_convolution_backward_filter(const Record& operation);
FinishedRef finalize_pointwise_operation(const Record& operation);
FinishedRef finalize_gen_stats(const Record& operation);
FinishedRef finalize_matmul_operation(const Record& operation);
FinishedRef finalize_bn_finalize(const Record& operation);
FinishedRef finalize_bn_backward_weights(const Record& operation);
FinishedRef finalize_reduction_operation(const Record& operation);
FinishedRef finalize_resample_forward(const Record& operation);
FinishedRef finalize_resample_backward(const Record& operation);
FinishedRef finalize_concat(const Record& operation);
FinishedRef finalize_signal(const Record& operation);
FinishedRef finalize_norm_forward(const Record& operation);
FinishedRef finalize_norm_backward(const Record& operation);
FinishedRef finalize_reshape(const Record& operation);
FinishedRef finalize_rng_operation(const Record& operation);
FinishedRef finalize_paged_cache_load(const Record& operation);
FinishedRef finalize_block_scale_quantize(const Record& operation);
FinishedRef finalize_block_scale_dequantize(const Record& operation);
FinishedRef finalize_expand_band_matrix(const Record& operation);
FinishedRef finalize_contract_band_matrix(const Record& operation);
FinishedRef finalize_sdpa_forward(const Record& operation);
FinishedRef finalize_sdpa_backward(const Record& operation);
FinishedRef finalize_moe_grouped_matmul(const Record& operation);

}  // namespace ashlar::cudnn

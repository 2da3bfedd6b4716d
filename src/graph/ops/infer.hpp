// The inference functions of the schema table, one file per family.
#pragma once

#include "graph/schema.hpp"

namespace ashlar {

void infer_conv_forward(NodeContext& node);
void infer_conv_backward_data(NodeContext& node);
void infer_conv_backward_filter(NodeContext& node);
void infer_causal_conv_forward(NodeContext& node);
void infer_causal_conv_backward(NodeContext& node);
void infer_im2col(NodeContext& node);
void infer_matmul(NodeContext& node);
void infer_moe_grouped_matmul(NodeContext& node);
void infer_moe_grouped_matmul_backward(NodeContext& node);
void infer_pointwise(NodeContext& node);
void infer_reduction(NodeContext& node);
void infer_resample_forward(NodeContext& node);
void infer_resample_backward(NodeContext& node);
void infer_grid_generator_forward(NodeContext& node);
void infer_grid_generator_backward(NodeContext& node);
void infer_grid_sample_forward(NodeContext& node);
void infer_grid_sample_backward(NodeContext& node);
void infer_norm_forward(NodeContext& node);
void infer_norm_backward(NodeContext& node);
void infer_gen_stats(NodeContext& node);
void infer_bn_finalize(NodeContext& node);
void infer_bn_backward_weights(NodeContext& node);
void infer_lrn_forward(NodeContext& node);
void infer_lrn_backward(NodeContext& node);
void infer_divisive_norm_forward(NodeContext& node);
void infer_divisive_norm_backward(NodeContext& node);
void infer_softmax_forward(NodeContext& node);
void infer_softmax_backward(NodeContext& node);
void infer_attention_forward(NodeContext& node);
void infer_attention_backward(NodeContext& node);
void infer_multi_head_attention_forward(NodeContext& node);
void infer_multi_head_attention_backward_data(NodeContext& node);
void infer_multi_head_attention_backward_weights(NodeContext& node);
void infer_paged_cache_load(NodeContext& node);
void infer_expand_band_matrix(NodeContext& node);
void infer_contract_band_matrix(NodeContext& node);
void infer_rnn_forward(NodeContext& node);
void infer_rnn_backward_data(NodeContext& node);
void infer_rnn_backward_weights(NodeContext& node);
void infer_ctc_loss(NodeContext& node);
void infer_rng(NodeContext& node);
void infer_dropout_forward(NodeContext& node);
void infer_dropout_backward(NodeContext& node);
void infer_block_scale_quantize(NodeContext& node);
void infer_block_scale_dequantize(NodeContext& node);
void infer_reshape(NodeContext& node);
void infer_transpose(NodeContext& node);
void infer_slice(NodeContext& node);
void infer_concat(NodeContext& node);
void infer_tensor_transform(NodeContext& node);

}  // namespace ashlar

// The inference functions of the schema table, one file per family.
#pragma once

#include "graph/schema.hpp"

namespace ashlar {

void infer_conv_forward(NodeContext& node);
void infer_conv_backward_data(NodeContext& node);
void infer_conv_backward_filter(NodeContext& node);
void infer_matmul(NodeContext& node);
void infer_pointwise(NodeContext& node);
void infer_reduction(NodeContext& node);
void infer_resample_forward(NodeContext& node);
void infer_resample_backward(NodeContext& node);
void infer_norm_forward(NodeContext& node);
void infer_norm_backward(NodeContext& node);
void infer_softmax_forward(NodeContext& node);
void infer_softmax_backward(NodeContext& node);
void infer_attention_forward(NodeContext& node);
void infer_attention_backward(NodeContext& node);
void infer_rng(NodeContext& node);
void infer_reshape(NodeContext& node);
void infer_transpose(NodeContext& node);
void infer_slice(NodeContext& node);
void infer_concat(NodeContext& node);

}  // namespace ashlar

#include "graph/ops/infer.hpp"

namespace ashlar {

void infer_multi_head_attention_forward(NodeContext& node) { node.reject("operation", "multi_head_attention_forward", "one that is finished"); }
void infer_multi_head_attention_backward_data(NodeContext& node) { node.reject("operation", "multi_head_attention_backward_data", "one that is finished"); }
void infer_multi_head_attention_backward_weights(NodeContext& node) { node.reject("operation", "multi_head_attention_backward_weights", "one that is finished"); }

}  // namespace ashlar

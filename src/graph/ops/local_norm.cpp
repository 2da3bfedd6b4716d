#include "graph/ops/infer.hpp"

namespace ashlar {

void infer_lrn_forward(NodeContext& node) { node.reject("operation", "lrn_forward", "one that is finished"); }
void infer_lrn_backward(NodeContext& node) { node.reject("operation", "lrn_backward", "one that is finished"); }
void infer_divisive_norm_forward(NodeContext& node) { node.reject("operation", "divisive_norm_forward", "one that is finished"); }
void infer_divisive_norm_backward(NodeContext& node) { node.reject("operation", "divisive_norm_backward", "one that is finished"); }

}  // namespace ashlar

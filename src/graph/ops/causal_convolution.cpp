#include "graph/ops/infer.hpp"

namespace ashlar {

void infer_causal_conv_forward(NodeContext& node) { node.reject("operation", "causal_conv_forward", "one that is finished"); }
void infer_causal_conv_backward(NodeContext& node) { node.reject("operation", "causal_conv_backward", "one that is finished"); }

}  // namespace ashlar

#include "graph/ops/infer.hpp"

namespace ashlar {

void infer_dropout_forward(NodeContext& node) { node.reject("operation", "dropout_forward", "one that is finished"); }
void infer_dropout_backward(NodeContext& node) { node.reject("operation", "dropout_backward", "one that is finished"); }

}  // namespace ashlar

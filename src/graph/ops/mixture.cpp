#include "graph/ops/infer.hpp"

namespace ashlar {

void infer_moe_grouped_matmul(NodeContext& node) { node.reject("operation", "moe_grouped_matmul", "one that is finished"); }
void infer_moe_grouped_matmul_backward(NodeContext& node) { node.reject("operation", "moe_grouped_matmul_backward", "one that is finished"); }

}  // namespace ashlar

#include "graph/ops/infer.hpp"

namespace ashlar {

void infer_tensor_transform(NodeContext& node) { node.reject("operation", "tensor_transform", "one that is finished"); }

}  // namespace ashlar

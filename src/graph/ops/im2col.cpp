#include "graph/ops/infer.hpp"

namespace ashlar {

void infer_im2col(NodeContext& node) { node.reject("operation", "im2col", "one that is finished"); }

}  // namespace ashlar

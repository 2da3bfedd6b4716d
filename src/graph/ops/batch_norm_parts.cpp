#include "graph/ops/infer.hpp"

namespace ashlar {

void infer_gen_stats(NodeContext& node) { node.reject("operation", "gen_stats", "one that is finished"); }
void infer_bn_finalize(NodeContext& node) { node.reject("operation", "bn_finalize", "one that is finished"); }
void infer_bn_backward_weights(NodeContext& node) { node.reject("operation", "bn_backward_weights", "one that is finished"); }

}  // namespace ashlar

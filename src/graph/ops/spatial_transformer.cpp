#include "graph/ops/infer.hpp"

namespace ashlar {

void infer_grid_generator_forward(NodeContext& node) { node.reject("operation", "grid_generator_forward", "one that is finished"); }
void infer_grid_generator_backward(NodeContext& node) { node.reject("operation", "grid_generator_backward", "one that is finished"); }
void infer_grid_sample_forward(NodeContext& node) { node.reject("operation", "grid_sample_forward", "one that is finished"); }
void infer_grid_sample_backward(NodeContext& node) { node.reject("operation", "grid_sample_backward", "one that is finished"); }

}  // namespace ashlar

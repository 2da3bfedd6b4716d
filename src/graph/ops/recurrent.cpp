#include "graph/ops/infer.hpp"

namespace ashlar {

void infer_rnn_forward(NodeContext& node) { node.reject("operation", "rnn_forward", "one that is finished"); }
void infer_rnn_backward_data(NodeContext& node) { node.reject("operation", "rnn_backward_data", "one that is finished"); }
void infer_rnn_backward_weights(NodeContext& node) { node.reject("operation", "rnn_backward_weights", "one that is finished"); }

}  // namespace ashlar

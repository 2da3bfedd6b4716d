#include "graph/ops/infer.hpp"

namespace ashlar {

void infer_block_scale_quantize(NodeContext& node) { node.reject("operation", "block_scale_quantize", "one that is finished"); }
void infer_block_scale_dequantize(NodeContext& node) { node.reject("operation", "block_scale_dequantize", "one that is finished"); }

}  // namespace ashlar

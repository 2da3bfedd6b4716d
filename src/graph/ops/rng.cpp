// Inference and validation of rng.
#include "graph/ops/infer.hpp"

namespace ashlar {

void infer_rng(NodeContext& node) {
  const auto& op = node.op<Rng>();
  for (int slot : {Rng::seed_tensor, Rng::offset_tensor}) {
    node.require_one_element(slot);
    node.require_integer(slot);
  }
  if (node.output(Rng::y).dims.empty()) node.reject("dims of y", "none", "explicit dims");
  if (!(op.probability >= 0.0 && op.probability <= 1.0))
    node.reject("probability", op.probability, "a value in [0, 1]");
  if (!(op.minimum <= op.maximum))
    node.reject("minimum", op.minimum, "at most maximum = {}", op.maximum);
  if (!(op.standard_deviation >= 0.0))
    node.reject("standard_deviation", op.standard_deviation, "at least 0");
  node.infer_dtype(Rng::y, f32);
  node.infer_strides_like(Rng::y, Tensor{});
}

}  // namespace ashlar

// Definition of rng.
#include "graph/ops/define.hpp"

namespace ashlar {

namespace {

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

Contents rng_contents(const NodeShapes&, int) { return seeds(); }

std::vector<Value> sample_rng(Graph& g, DType t) { return {g.rng({4, 16}, {}, {.dtype = t})}; }

}  // namespace

template <>
OpTraits define_traits<Rng>() {
  return {.name = "rng",
          .doc_page = "rng",
          .infer = infer_rng,
          .sample = sample_rng,
          .contents = rng_contents,
          .integers_are_parameters = true};
}

}  // namespace ashlar

// Sample graphs with options: multi-head attention.
#include "graph/sample_graphs.hpp"
#include "support/multi_head_problem.hpp"

namespace ashlar::tests {

namespace {

template <class MultiHead>
void add(Samples& samples, const char* op, const support::MultiHeadCase& c) {
  sample(samples, op, [&](Graph& g) {
    const auto make = [&](const std::string& name, const Dims& dims) {
      return g.input(name, dims, name == "weights" ? f16 : f32);
    };
    std::vector<Value> results = support::apply_multi_head<MultiHead>(g, c, make).all();
    std::erase_if(results, [](const Value& value) { return !value; });
    return results;
  });
}

}  // namespace

void add_multi_head_samples(Samples& samples) {
  for (const support::MultiHeadCase& c : support::multi_head_problems()) {
    add<MultiHeadAttentionForward>(samples, "multi_head_attention_forward", c);
    add<MultiHeadAttentionBackwardData>(samples, "multi_head_attention_backward_data", c);
    if (c.shape().weight_count > 0)
      add<MultiHeadAttentionBackwardWeights>(samples, "multi_head_attention_backward_weights", c);
  }
}

}  // namespace ashlar::tests

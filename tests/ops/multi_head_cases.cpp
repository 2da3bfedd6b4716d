// Cases of multi-head attention.
#include "ops/op_case.hpp"
#include "support/multi_head_problem.hpp"

namespace ashlar::ops {

namespace {

using support::MultiHeadCase;

template <class MultiHead>
void build(CaseBuilder& b, const MultiHeadCase& c) {
  Graph& g = b.graph();
  const auto make = [&](const std::string& name, const Dims& dims) {
    return b.operand(name, dims);
  };
  const std::vector<Value> results = support::apply_multi_head<MultiHead>(g, c, make).all();
  b.result(results[0]);
  for (std::size_t i = 1; i < results.size(); ++i)
    if (results[i]) b.result("result" + std::to_string(i), results[i]);
}

}  // namespace

std::vector<OpCase> multi_head_cases() {
  std::vector<OpCase> cases;
  bool first = true;
  for (const MultiHeadCase& c : support::multi_head_problems()) {
    const bool one_shape = !first;
    first = false;
    cases.push_back({"multi_head_attention_forward", c.label, kFloating,
                     [c](CaseBuilder& b) { build<MultiHeadAttentionForward>(b, c); }, false,
                     one_shape});
    cases.push_back({"multi_head_attention_backward_data", c.label, kFloating,
                     [c](CaseBuilder& b) { build<MultiHeadAttentionBackwardData>(b, c); }, false,
                     one_shape});
    if (c.shape().weight_count > 0)
      cases.push_back({"multi_head_attention_backward_weights", c.label, kFloating,
                       [c](CaseBuilder& b) { build<MultiHeadAttentionBackwardWeights>(b, c); },
                       false, one_shape});
  }
  return cases;
}

}  // namespace ashlar::ops

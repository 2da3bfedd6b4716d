// Multi-head attention backward against central differences of the forward, in f64.
#include "reference/harness.hpp"
#include "support/multi_head_problem.hpp"

namespace ashlar::reference {
namespace {

using support::MultiHeadCase;

// The cases in which every operand matters: with a single key the weight is 1 whatever the scores
// are.
std::vector<MultiHeadCase> differentiable() {
  std::vector<MultiHeadCase> cases = support::multi_head_problems();
  std::erase_if(cases, [](const MultiHeadCase& c) { return c.keys < 2 || c.queries == 0; });
  return cases;
}

class MultiHeadGradientCases : public testing::TestWithParam<MultiHeadCase> {};

TEST_P(MultiHeadGradientCases, MatchFiniteDifferences) {
  MultiHeadCase c = GetParam();
  c.previous = false;
  Graph f, b;
  const auto maker = [](Graph& g) {
    return [&g](const std::string& name, const Dims& dims) {
      const TensorId old = g.find_tensor(name);
      return old == kNoTensor ? g.input(name, dims, f64) : g.value(old);
    };
  };
  f.output("o", support::apply_multi_head<MultiHeadAttentionForward>(f, c, maker(f)));
  const auto data = support::apply_multi_head<MultiHeadAttentionBackwardData>(b, c, maker(b));
  b.output("dq", data[MultiHeadAttentionBackwardData::dq]);
  b.output("dk", data[MultiHeadAttentionBackwardData::dk]);
  b.output("dv", data[MultiHeadAttentionBackwardData::dv]);
  std::vector<std::string> inputs = {"q", "k", "v"};
  if (c.shape().weight_count > 0) {
    b.output("dweights",
             support::apply_multi_head<MultiHeadAttentionBackwardWeights>(b, c, maker(b)));
    inputs.push_back("weights");
  }
  Evaluation forward(f), backward(b);
  forward.fill_inputs(13);
  const auto set = [&](const std::string& name, std::int64_t first, std::int64_t step) {
    if (!forward.has(name)) return;
    std::vector<double> values;
    for (std::int64_t i = 0; i < element_count(forward.tensor(name).dims); ++i)
      values.push_back(static_cast<double>(first + step * i));
    forward.set(name, values);
  };
  set("seq_len_q", 3, -1);
  set("seq_len_kv", 2, 1);
  set("window_low", -1, 1);
  set("window_high", 2, 1);
  set("dropout_seed", 12345, 0);
  set("dropout_offset", 17, 0);
  set("post_dropout_seed", 99, 0);
  expect_gradients(forward, "o", backward, inputs, "d_o");
}

INSTANTIATE_TEST_SUITE_P(All, MultiHeadGradientCases, testing::ValuesIn(differentiable()),
                         [](const auto& c) {
                           std::string name = c.param.label;
                           for (char& letter : name)
                             if (!std::isalnum(static_cast<unsigned char>(letter))) letter = '_';
                           return name;
                         });

}  // namespace
}  // namespace ashlar::reference

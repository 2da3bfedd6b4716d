// Attention as cudnn-frontend composes it from primitive operations, option by option: it is raised
// to one attention_forward with the same results.
#include <gtest/gtest.h>

#include <array>
#include <ashlar/ashlar.hpp>
#include <limits>

#include "graph/op_traits.hpp"
#include "plan/lowered.hpp"
#include "support/bound_memory.hpp"
#include "support/fill.hpp"

namespace ashlar {
namespace {

using Attention = AttentionForward;
using Mode = PointwiseMode;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// [2, 4, 6, 8] queries against 10 keys; each test defines the operations on scores and weights.
struct Composite {
  Graph g;
  Value v, scores;

  Composite() {
    const Value q = g.input("q", {2, 4, 6, 8}, f32);
    const Value k = g.input("k_transposed", {2, 4, 8, 10}, f32, Dims{320, 80, 1, 8});
    v = g.input("v", {2, 4, 10, 8}, f32);
    scores = g.matmul(q, k);
  }
  Value row() { return g.pointwise(Mode::gen_index, std::array{scores}, {.axis = 2}); }
  Value column() { return g.pointwise(Mode::gen_index, std::array{scores}, {.axis = 3}); }
  void mask(Value visible) { scores = select(visible, scores, g.constant(-kInfinity)); }
  void finish(Value weights) { g.output("o", g.matmul(weights, v)); }
  // Returns max and the sum of exponentials.
  std::pair<Value, Value> finish_with_softmax(Value sink = {}) {
    Value max = g.reduce(scores, ReductionMode::max, {3});
    if (sink) max = pointwise(Mode::max, max, sink);
    const Value numerator = exp(scores - max);
    Value sum = g.reduce(numerator, ReductionMode::add, {3});
    if (sink) sum = sum + exp(sink - max);
    finish(numerator / sum);
    return {max, sum};
  }
};

const Node* attention_node_of(const LoweredGraph& lowered) {
  for (const Node& node : lowered.graph.nodes())
    if (std::holds_alternative<Attention>(node.op)) return &node;
  return nullptr;
}

// The raised graph without tensors that lost their producer, so that it is valid.
Graph raised(const Graph& source) {
  LoweredGraph lowered{source.clone(), {}, {}};
  raise_patterns(lowered);
  Graph result;
  std::vector<TensorId> ids(lowered.graph.tensors().size(), kNoTensor);
  for (std::size_t id = 0; id < ids.size(); ++id) {
    const Tensor& tensor = lowered.graph.tensors()[id];
    bool computed = tensor.kind != TensorKind::intermediate;
    for (const Node& node : lowered.graph.nodes())
      for (TensorId output : node.outputs)
        computed = computed || output == static_cast<TensorId>(id);
    if (computed) ids[id] = result.add_tensor(tensor);
  }
  for (Node node : lowered.graph.nodes()) {
    for (auto* operands : {&node.inputs, &node.outputs})
      for (TensorId& id : *operands)
        if (id != kNoTensor) id = ids[static_cast<std::size_t>(id)];
    result.add_node(std::move(node));
  }
  return result;
}

// Raised to a single operation with the same results as the primitive operations.
Attention expect_raised(const Composite& composite, std::vector<int> slots = {},
                        std::size_t nodes = 1) {
  const LoweredGraph lowered = lower(composite.g, true);
  const Node* node = attention_node_of(lowered);
  EXPECT_NE(node, nullptr);
  if (!node) return {};
  EXPECT_EQ(lowered.graph.nodes().size(), nodes);
  for (int slot : slots) EXPECT_NE(node->inputs[static_cast<std::size_t>(slot)], kNoTensor) << slot;

  const Graph other = raised(composite.g);
  support::BoundMemory memory(composite.g);
  support::fill_inputs(memory, 5);
  const std::vector<Expected> small = evaluate_reference(composite.g, memory.readable());
  const std::vector<Expected> whole = evaluate_reference(other, memory.readable());
  EXPECT_EQ(small.size(), whole.size());
  for (std::size_t i = 0; i < small.size() && i < whole.size(); ++i)
    for (std::size_t e = 0; e < small[i].values.size(); ++e)
      EXPECT_NEAR(whole[i].values[e], small[i].values[e], small[i].bounds[e] + whole[i].bounds[e])
          << composite.g.tensor(small[i].tensor).name << " at " << e;
  return std::get<Attention>(node->op);
}

TEST(RaiseAttentionOptions, RepeatedHeads) {
  Composite c;
  const auto repeated = [&](const char* name, std::int64_t rows, std::int64_t columns) {
    const Value heads = c.g.input(name, {2, 2, rows, columns}, f32);
    const Value apart = c.g.reshape(heads, {2, 2, 1, rows, columns});
    return c.g.reshape(c.g.concat(std::array{apart, apart}, 2), {2, 4, rows, columns});
  };
  c.scores = c.g.matmul(c.g.input("queries", {2, 4, 6, 8}, f32), repeated("keys", 8, 10));
  c.v = repeated("values", 10, 8);
  c.finish_with_softmax();
  const LoweredGraph lowered = lower(c.g, true);
  const Node* node = attention_node_of(lowered);
  ASSERT_NE(node, nullptr);
  EXPECT_EQ(lowered.graph.tensor(node->inputs[Attention::k]).dims[1], 2);
  EXPECT_EQ(lowered.graph.tensor(node->inputs[Attention::v]).dims[1], 2);
  expect_raised(c);
}

TEST(RaiseAttentionOptions, Alibi) {
  Composite c;
  c.scores = c.scores * 0.25;
  const Value slopes = c.g.input("slopes", {1, 4, 1, 1}, f32);
  const Value distance = pointwise(Mode::sub, c.column(), c.row());
  c.scores = c.scores + c.g.pointwise(Mode::mul, std::array{distance, slopes}, {}, {.dtype = f32});
  c.mask(pointwise(Mode::cmp_ge, c.row(), c.column()));
  c.finish_with_softmax();
  const Attention op = expect_raised(c, {Attention::score_input0});
  EXPECT_EQ(op.scale, 0.25);
  EXPECT_EQ(op.right_bound, 0);
  EXPECT_EQ(op.score_modifier.size(), 3u);
}

TEST(RaiseAttentionOptions, SoftCapAndBias) {
  Composite c;
  const Value cap = c.g.constant(0.75);
  c.scores = pointwise(Mode::tanh_fwd, c.scores * 0.5 / cap) * cap;
  c.scores = c.scores + c.g.input("bias", {1, 4, 6, 10}, f32);
  c.finish_with_softmax();
  const Attention op = expect_raised(c, {Attention::bias});
  EXPECT_EQ(op.soft_cap, 0.75);
  EXPECT_EQ(op.scale, 0.5);
  EXPECT_TRUE(op.score_modifier.empty());
}

TEST(RaiseAttentionOptions, SoftCapByATensorIsAProgram) {
  Composite c;
  const Value cap = c.g.input("cap", {1, 1, 1, 1}, f32);
  c.scores = pointwise(Mode::tanh_fwd, c.scores * 0.5 / cap) * cap;
  c.finish_with_softmax();
  const Attention op = expect_raised(c, {Attention::score_input0});
  EXPECT_EQ(op.score_modifier.size(), 3u);
}

TEST(RaiseAttentionOptions, Sink) {
  Composite c;
  c.scores = c.scores * 0.5;
  const auto [max, sum] = c.finish_with_softmax(c.g.input("sink", {1, 4, 1, 1}, f32));
  c.g.output("stats", log(sum) + max);
  expect_raised(c, {Attention::sink});
}

// The operations give the sink to rows past the query length too, attention does not.
TEST(RaiseAttentionOptions, SinkWithLengths) {
  Composite c;
  const Value rows = c.g.input("rows", {2, 1, 1, 1}, i32);
  const Value columns = c.g.input("columns", {2, 1, 1, 1}, i32);
  c.mask(pointwise(Mode::logical_and, pointwise(Mode::cmp_lt, c.row(), rows),
                   pointwise(Mode::cmp_lt, c.column(), columns)));
  const auto [max, sum] = c.finish_with_softmax(c.g.input("sink", {1, 4, 1, 1}, f32));
  c.g.output("stats", log(sum) + max);
  expect_raised(c, {Attention::sink, Attention::seq_len_q}, 2);
  c.g.output("max", max);
  c.g.output("sum_exp", sum);
  expect_raised(c, {Attention::sink, Attention::seq_len_q}, 4);
}

TEST(RaiseAttentionOptions, MaxAndSumOfExponentials) {
  for (bool with_sink : {false, true}) {
    Composite c;
    const Value sink = with_sink ? c.g.input("sink", {1, 4, 1, 1}, f32) : Value();
    const auto [max, sum] = c.finish_with_softmax(sink);
    c.g.output("max", max);
    c.g.output("sum_exp", sum);
    expect_raised(c);
  }
}

TEST(RaiseAttentionOptions, DropoutByRngThatIsDumped) {
  Composite c;
  const Value weights = c.g.softmax(c.scores);
  const Value mask =
      c.g.rng({2, 4, 6, 10}, {.distribution = RngDistribution::bernoulli, .probability = 0.75}, {},
              c.g.input("seed", {1, 1, 1, 1}, i64));
  c.finish(weights * mask * (1.0 / 0.75));
  c.g.output("mask", mask);
  EXPECT_EQ(expect_raised(c, {Attention::dropout_seed}).dropout, 0.25);
}

TEST(RaiseAttentionOptions, DropoutByAGivenMask) {
  Composite c;
  const Value scaled = c.g.softmax(c.scores) * 2.0;
  const Value mask = c.g.input("mask", {2, 4, 6, 10}, boolean);
  c.finish(pointwise(Mode::mul, scaled, mask));
  EXPECT_EQ(expect_raised(c, {Attention::dropout_mask}).dropout, 0.5);
}

TEST(RaiseAttentionOptions, PaddingWithMatmulOverrides) {
  Graph g;
  const Value q = g.input("q", {2, 4, 6, 8}, f32), v = g.input("v", {2, 4, 10, 8}, f32);
  const Value k = g.input("k_transposed", {2, 4, 8, 10}, f32);
  const Value rows = g.input("rows", {2, 1, 1, 1}, i32), keys = g.input("keys", {2, 1, 1, 1}, i32);
  Value scores = g.apply(
      Matmul{},
      {{Matmul::a, q}, {Matmul::b, k}, {Matmul::m_override, rows}, {Matmul::n_override, keys}},
      {Matmul::c});
  const Value row = g.pointwise(Mode::gen_index, std::array{scores}, {.axis = 2});
  const Value column = g.pointwise(Mode::gen_index, std::array{scores}, {.axis = 3});
  scores = select(pointwise(Mode::logical_and, pointwise(Mode::cmp_lt, row, rows),
                            pointwise(Mode::cmp_lt, column, keys)),
                  scores, g.constant(-kInfinity));
  g.output("o", g.apply(Matmul{},
                        {{Matmul::a, g.softmax(scores)},
                         {Matmul::b, v},
                         {Matmul::m_override, rows},
                         {Matmul::k_override, keys}},
                        {Matmul::c}));
  const LoweredGraph lowered = lower(g, true);
  const Node* node = attention_node_of(lowered);
  ASSERT_NE(node, nullptr);
  EXPECT_NE(node->inputs[Attention::seq_len_q], kNoTensor);
  EXPECT_NE(node->inputs[Attention::seq_len_kv], kNoTensor);
}

TEST(RaiseAttentionOptions, BottomRightByConstantLengths) {
  // row + (10 - 6) - 8 >= column is not a valid bound with top-left alignment.
  Composite c;
  c.mask(pointwise(Mode::cmp_ge, c.row() + c.g.constant(3, i32), c.column()));
  c.finish_with_softmax();
  EXPECT_EQ(expect_raised(c).right_bound, 3);

  Composite wide;
  wide.mask(pointwise(Mode::cmp_gt, wide.column() - wide.g.constant(2, i32), wide.row()));
  wide.finish_with_softmax();
  const Attention op = expect_raised(wide);
  EXPECT_EQ(op.alignment, MaskAlignment::bottom_right);
  EXPECT_EQ(op.left_bound, 2);
}

TEST(RaiseAttentionOptions, OtherWorkOnTheScoresIsAProgram) {
  Composite c;
  const Value scaled = c.scores * 0.5;
  const Value distance = pointwise(Mode::sub, c.row(), c.column());
  const Value near = pointwise(Mode::cmp_lt, pointwise(Mode::abs, distance), c.g.constant(4, i32));
  c.scores = select(near, scaled * pointwise(Mode::sigmoid_fwd, scaled),
                    c.g.input("far", {1, 1, 6, 10}, f32));
  c.finish_with_softmax();
  const Attention op = expect_raised(c, {Attention::score_input0});
  EXPECT_EQ(op.scale, 0.5);
  EXPECT_FALSE(op.score_modifier.empty());
}

TEST(RaiseAttentionOptions, LeavesScoresThatAreNeededElsewhere) {
  Composite c;
  const Value curved = pointwise(Mode::tanh_fwd, c.scores);
  c.g.output("curved", curved);
  c.scores = curved + 1.0;
  c.finish_with_softmax();
  EXPECT_EQ(attention_node_of(lower(c.g, true)), nullptr);
}

TEST(RaiseAttentionOptions, LeavesASinkThatIsNotPartOfTheSum) {
  Composite c;
  const Value sink = c.g.input("sink", {1, 4, 1, 1}, f32);
  const Value max = pointwise(Mode::max, c.g.reduce(c.scores, ReductionMode::max, {3}), sink);
  const Value numerator = exp(c.scores - max);
  c.finish(numerator / c.g.reduce(numerator, ReductionMode::add, {3}));
  EXPECT_EQ(attention_node_of(lower(c.g, true)), nullptr);
}

}  // namespace
}  // namespace ashlar

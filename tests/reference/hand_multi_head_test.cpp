// Multi-head attention on values small enough to verify manually: a scale of 0 makes all visible
// weights equal.
#include "base/dropout.hpp"
#include "graph/multi_head_shapes.hpp"
#include "reference/harness.hpp"

namespace ashlar::reference {
namespace {

using Forward = MultiHeadAttentionForward;
using BackwardData = MultiHeadAttentionBackwardData;
using BackwardWeights = MultiHeadAttentionBackwardWeights;

template <class MultiHead>
MultiHead with(const MultiHeadAttentionAttributes& attributes) {
  MultiHead op;
  static_cast<MultiHeadAttentionAttributes&>(op) = attributes;
  return op;
}

TEST(MultiHeadShape, PlacesMatricesThenBiases) {
  const MultiHeadShape shape({.heads = 2,
                              .q_projection = 3,
                              .v_projection = 2,
                              .o_projection = 7,
                              .projection_biases = true},
                             {1, 1, 1, 5}, {1, 1, 1, 3}, {1, 1, 1, 4});
  EXPECT_EQ(shape[MultiHeadPart::query].matrix, 0);
  EXPECT_FALSE(shape[MultiHeadPart::key].present);
  EXPECT_EQ(shape[MultiHeadPart::value].matrix, 2 * 3 * 5);
  EXPECT_EQ(shape[MultiHeadPart::output].matrix, 30 + 2 * 2 * 4);
  EXPECT_EQ(shape[MultiHeadPart::query].bias, 46 + 7 * 2 * 2);
  EXPECT_EQ(shape[MultiHeadPart::value].bias, 74 + 6);
  EXPECT_EQ(shape[MultiHeadPart::output].bias, 80 + 4);
  EXPECT_EQ(shape.weight_count, 84 + 7);
}

// Values 1, 2, 4, 8 with equal weights, doubled for head 0 and tripled for head 1, plus 100 and
// 200 of the biases: two heads of one element each.
struct Means {
  Graph g;
  std::vector<Operand<Forward>> inputs;
  MultiHeadAttentionAttributes attributes = {
      .heads = 2, .v_projection = 1, .projection_biases = true, .softmax_scale = 0.0};

  explicit Means(std::int64_t queries) {
    inputs = {{Forward::q, g.input("q", {1, 1, queries, 1}, f64)},
              {Forward::k, g.input("k", {1, 1, 4, 1}, f64)},
              {Forward::v, g.input("v", {1, 1, 4, 1}, f64)}};
  }
  void add(Forward::In slot, const char* name, const Dims& dims, DType dtype = i32) {
    inputs.push_back({slot, g.input(name, dims, dtype)});
  }
  Evaluation evaluate(std::vector<double> weights) {
    add(Forward::weights, "weights", {static_cast<std::int64_t>(weights.size())}, f64);
    g.output("o", g.apply(with<Forward>(attributes), inputs));
    Evaluation e(g);
    e.fill_inputs(1);
    e.set("v", {1, 2, 4, 8});
    e.set("weights", weights);
    return e;
  }
};

TEST(MultiHeadForward, ConcatenatesHeads) {
  Means means(1);
  Evaluation e = means.evaluate({2, 3, 100, 200});
  expect_result(e, "o", {2 * 3.75 + 100, 3 * 3.75 + 200}, 1e-12);
}

TEST(MultiHeadForward, ProjectsTheHeadsTogether) {
  Means means(1);
  means.attributes.o_projection = 1;
  // Wv, Wo, bv, bo
  Evaluation e = means.evaluate({2, 3, 10, 1, 100, 200, 7});
  expect_result(e, "o", {10 * (2 * 3.75 + 100) + (3 * 3.75 + 200) + 7}, 1e-11);
}

TEST(MultiHeadForward, AttendsToKeysInTheWindow) {
  Means means(4);
  means.add(Forward::window_low, "low", {1, 1, 4, 1});
  means.add(Forward::window_high, "high", {1, 1, 4, 1});
  Evaluation e = means.evaluate({1, 0, 0, 0});
  e.set("low", {0, 1, -5, 3});
  e.set("high", {1, 3, 99, 3});
  // The last window is empty: 0 without an output projection.
  expect_result(e, "o", {1, 0, 3, 0, 3.75, 0, 0, 0}, 1e-12);
}

TEST(MultiHeadForward, AddsTheOutputBiasAndTheResidualWhereNoKeyIsSeen) {
  Means means(2);
  means.attributes.o_projection = 1;
  means.add(Forward::window_high, "high", {1, 1, 2, 1});
  means.add(Forward::residual, "residual", {1, 1, 2, 1}, f64);
  Evaluation e = means.evaluate({1, 1, 1, 1, 100, 100, 7});
  e.set("high", {0, 1});
  e.set("residual", {0.5, 0.25});
  expect_result(e, "o", {7.5, 101 + 101 + 7.25}, 1e-12);
}

TEST(MultiHeadForward, IsZeroPastTheSequenceLength) {
  Means means(3);
  means.add(Forward::seq_len_q, "lq", {1, 1, 1, 1});
  means.add(Forward::seq_len_kv, "lkv", {1, 1, 1, 1});
  means.add(Forward::residual, "residual", {1, 1, 3, 2}, f64);
  Evaluation e = means.evaluate({1, 2, 0, 0});
  e.set("lq", {2});
  e.set("lkv", {3});
  e.set("residual", {0, 1, 2, 3, 4, 5});
  const double mean = 7.0 / 3.0;
  expect_result(e, "o", {mean, 2 * mean + 1, mean + 2, 2 * mean + 3, 0, 0}, 1e-12);
}

TEST(MultiHeadForward, DropsResultsButNotTheResidual) {
  constexpr std::int64_t kQueries = 8;
  Means means(kQueries);
  means.attributes.post_dropout = 0.5;
  means.add(Forward::post_dropout_seed, "seed", {1}, i64);
  means.add(Forward::post_dropout_offset, "offset", {1}, i64);
  means.add(Forward::residual, "residual", {1, 1, kQueries, 2}, f64);
  Evaluation e = means.evaluate({1, 1, 0, 0});
  e.set("seed", {42});
  e.set("offset", {3});
  e.set("residual", std::vector<double>(2 * kQueries, 1000.0));
  std::vector<double> expected;
  for (std::uint64_t i = 0; i < 2 * kQueries; ++i)
    expected.push_back(1000.0 + (dropout_keeps(42, 3, i, 0.5) ? 2 * 3.75 : 0.0));
  expect_result(e, "o", expected, 1e-9);
}

TEST(MultiHeadForward, DropsTheSameWeightsAsAttention) {
  // One value per key tells from the result which weights were kept.
  Means means(2);
  means.attributes.attention_dropout = 0.5;
  means.add(Forward::dropout_seed, "seed", {1}, i64);
  Evaluation e = means.evaluate({1, 1, 0, 0});
  e.set("seed", {9});
  std::vector<double> expected(4, 0.0);
  for (std::uint64_t i = 0; i < 2; ++i)
    for (std::uint64_t head = 0; head < 2; ++head)
      for (std::uint64_t j = 0; j < 4; ++j)
        if (dropout_keeps(9, 0, (head * 2 + i) * 4 + j, 0.5))
          expected[i * 2 + head] += 2.0 * 0.25 * static_cast<double>(1 << j);
  expect_result(e, "o", expected, 1e-12);
}

TEST(MultiHeadForward, BeamsMayHaveKeysOfTheirOwn) {
  for (std::int64_t key_beams : {1, 2}) {
    Graph g;
    const Value q = g.input("q", {1, 2, 1, 1}, f64), k = g.input("k", {1, key_beams, 2, 1}, f64);
    const Value v = g.input("v", {1, key_beams, 2, 1}, f64);
    g.output("o", g.apply(with<Forward>({.softmax_scale = 0.0}),
                          {{Forward::q, q}, {Forward::k, k}, {Forward::v, v}}));
    Evaluation e(g);
    e.fill_inputs(1);
    e.set("v", key_beams == 1 ? std::vector<double>{1, 3} : std::vector<double>{1, 3, 10, 30});
    expect_result(e, "o", {2, key_beams == 1 ? 2.0 : 20.0}, 1e-12);
  }
}

// One query, two keys, equal weights: o = Wo (v1 + v2) Wv / 2.
TEST(MultiHeadBackward, GradientFollowsTheProjections) {
  const MultiHeadAttentionAttributes attributes = {
      .v_projection = 1, .o_projection = 1, .projection_biases = true, .softmax_scale = 0.0};
  Graph g;
  const Value q = g.input("q", {1, 1, 1, 1}, f64), k = g.input("k", {1, 1, 2, 1}, f64);
  const Value v = g.input("v", {1, 1, 2, 1}, f64), d_o = g.input("d_o", {1, 1, 1, 1}, f64);
  const Value weights = g.input("weights", {4}, f64), previous = g.input("previous", {4}, f64);
  const auto data = g.apply(with<BackwardData>(attributes),
                            {{BackwardData::q, q},
                             {BackwardData::k, k},
                             {BackwardData::v, v},
                             {BackwardData::weights, weights},
                             {BackwardData::d_o, d_o}},
                            {BackwardData::dq, BackwardData::dk, BackwardData::dv});
  g.output("dq", data[BackwardData::dq]);
  g.output("dk", data[BackwardData::dk]);
  g.output("dv", data[BackwardData::dv]);
  g.output("dweights",
           g.apply(with<BackwardWeights>(attributes), {{BackwardWeights::q, q},
                                                       {BackwardWeights::k, k},
                                                       {BackwardWeights::v, v},
                                                       {BackwardWeights::weights, weights},
                                                       {BackwardWeights::d_o, d_o},
                                                       {BackwardWeights::previous, previous}}));
  Evaluation e(g);
  e.set("q", {1});
  e.set("k", {1, 2});
  e.set("v", {3, 5});
  e.set("d_o", {10});
  e.set("weights", {2, 7, 0.5, 1});  // Wv, Wo, bv, bo
  e.set("previous", {1000, 2000, 3000, 4000});
  expect_result(e, "dq", {0}, 1e-12);
  expect_result(e, "dk", {0, 0}, 1e-12);
  expect_result(e, "dv", {10 * 7 * 2 / 2, 10 * 7 * 2 / 2}, 1e-12);
  // dWv = 10 * 7 * mean(v), dWo = 10 * (2 * mean(v) + 0.5), dbv = 10 * 7, dbo = 10
  expect_result(e, "dweights", {1000 + 280, 2000 + 85, 3000 + 70, 4000 + 10}, 1e-11);
}

}  // namespace
}  // namespace ashlar::reference

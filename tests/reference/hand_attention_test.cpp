// Attention on values with a known softmax: q = 0 makes all visible weights equal.
#include <cmath>
#include <cstring>

#include "base/dropout.hpp"
#include "reference/harness.hpp"

namespace ashlar::reference {
namespace {

// o for v = 1, 2, 4, 8 and equal weights: the mean of the visible values.
std::vector<double> means(AttentionAttributes attributes, std::int64_t rows,
                          std::vector<double> lengths = {}) {
  Graph g;
  const Value q = g.input("q", {1, 1, rows, 1}, f64), k = g.input("k", {1, 1, 4, 1}, f64),
              v = g.input("v", {1, 1, 4, 1}, f64);
  AttentionOperands operands;
  if (!lengths.empty()) {
    operands.seq_len_q = g.input("lq", {1, 1, 1, 1}, i32);
    operands.seq_len_kv = g.input("lkv", {1, 1, 1, 1}, i32);
  }
  const auto [o, stats] = g.attention(q, k, v, attributes, operands, true);
  g.output("o", o);
  g.output("stats", stats);
  Evaluation e(g);
  e.set("q", std::vector<double>(static_cast<std::size_t>(rows), 0.0));
  e.set("k", {1, 2, 3, 4});
  e.set("v", {1, 2, 4, 8});
  if (!lengths.empty()) {
    e.set("lq", {lengths[0]});
    e.set("lkv", {lengths[1]});
  }
  e.expect_nodes_agree();
  const std::vector<double> means = e.get("o"), log_counts = e.get("stats");
  for (std::size_t i = 0; i < means.size(); ++i)
    if (means[i] == 0.0) {
      EXPECT_EQ(log_counts[i], -kInf);
    } else {
      EXPECT_NEAR(std::exp(log_counts[i]), std::round(std::exp(log_counts[i])), 1e-12);
    }
  return means;
}

void expect_near(const std::vector<double>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-14) << i;
}

TEST(HandComputedAttention, Masks) {
  const auto bottom_right = MaskAlignment::bottom_right;
  expect_near(means({}, 2), {3.75, 3.75});
  expect_near(means({.right_bound = 0}, 4), {1, 1.5, 7.0 / 3, 3.75});
  expect_near(means({.right_bound = 0}, 2), {1, 1.5});
  expect_near(means({.right_bound = 0, .alignment = bottom_right}, 2), {7.0 / 3, 3.75});
  expect_near(means({.left_bound = 2, .right_bound = 0}, 4), {1, 1.5, 3, 6});
  expect_near(means({.left_bound = 1, .right_bound = 1}, 4), {1.5, 3, 6, 8});
  // More rows than columns, bottom-right alignment: the first two rows are fully masked.
  expect_near(means({.right_bound = 0, .alignment = bottom_right}, 6),
              {0, 0, 1, 1.5, 7.0 / 3, 3.75});
  // Only three rows and two columns are real.
  expect_near(means({}, 4, {3, 2}), {1.5, 1.5, 1.5, 0});
  expect_near(means({.right_bound = 0, .alignment = bottom_right}, 4, {2, 3}),
              {1.5, 7.0 / 3, 0, 0});
}

TEST(HandComputedAttention, ScaleBiasAndGroupedHeads) {
  Graph g;
  const Value q = g.input("q", {1, 2, 1, 1}, f64), k = g.input("k", {1, 1, 2, 1}, f64),
              v = g.input("v", {1, 1, 2, 1}, f64);
  AttentionOperands operands;
  operands.bias = g.input("bias", {1, 2, 1, 2}, f64);
  const auto [o, stats] = g.attention(q, k, v, {.scale = 0.5}, operands, true);
  g.output("o", o);
  g.output("stats", stats);
  Evaluation e(g);
  const double l3 = std::log(3.0);
  e.set("q", {2, 0});
  e.set("k", {0, l3});
  e.set("v", {4, 8});
  e.set("bias", {0, 0, 5, -kInf});
  // Head 0: scores 0, log 3: weights 1/4, 3/4. Head 1: scores 5, -inf.
  expect_result(e, "o", {7, 4}, 1e-14);
  expect_result(e, "stats", {std::log(4.0), 5}, 1e-14);
}

TEST(HandComputedAttention, DropoutZeroesAndRescalesByPosition) {
  Graph g;
  const Value q = g.input("q", {2, 3, 4, 1}, f64), k = g.input("k", {2, 3, 8, 1}, f64),
              v = g.input("v", {2, 3, 8, 1}, f64);
  AttentionOperands operands;
  operands.dropout_seed = g.scalar("seed", i64);
  operands.dropout_offset = g.scalar("offset", i64);
  g.output("o", g.attention(q, k, v, {.dropout = 0.25}, operands).first);
  Evaluation e(g);
  e.set("v", std::vector<double>(48, 1.0));
  const std::int64_t seed = (std::int64_t{1} << 60) + 1, offset = 3;  // not a double
  std::memcpy(e.data("seed"), &seed, sizeof seed);
  std::memcpy(e.data("offset"), &offset, sizeof offset);
  std::vector<double> expected;
  for (std::uint64_t row = 0; row < 24; ++row) {
    double kept = 0.0;
    for (std::uint64_t j = 0; j < 8; ++j)
      kept += dropout_keeps(static_cast<std::uint64_t>(seed), 3, row * 8 + j, 0.25);
    expected.push_back(kept / 8.0 / 0.75);
  }
  expect_result(e, "o", expected, 1e-14);
}

TEST(HandComputedAttention, RaggedSequencesReadAndWriteOnlyTheirRows) {
  // Two sequences of 1 and 2 rows, packed [3, head, dim] with two heads of one element.
  Graph g;
  const Value offsets = g.input("offsets", {3, 1, 1, 1}, i32);
  const Layout packed(Dims{4, 1, 2, 1});
  const Value q = g.ragged_input("q", {2, 2, 2, 1}, f32, packed, offsets);
  const Value k = g.ragged_input("k", {2, 2, 2, 1}, f32, packed, offsets);
  const Value v = g.ragged_input("v", {2, 2, 2, 1}, f32, packed, offsets);
  AttentionOperands operands;
  operands.seq_len_q = g.input("lq", {2, 1, 1, 1}, i32);
  operands.seq_len_kv = g.input("lkv", {2, 1, 1, 1}, i32);
  OutputSpec spec;
  spec.layout = packed;
  const Value o = g.attention(q, k, v, {}, operands, false, spec).first;
  g.output("o", o);
  g.set_ragged(o, offsets);
  Evaluation e(g);
  e.set("offsets", {0, 2, 6});
  e.set("lq", {1, 2});
  e.set("lkv", {1, 2});
  const auto packed_values = [&](const char* name, const std::vector<float>& values) {
    std::memcpy(e.data(name), values.data(), values.size() * sizeof(float));
  };
  packed_values("q", {0, 0, 0, 0, 0, 0});
  packed_values("k", {1, 2, 3, 4, 5, 6});
  packed_values("v", {1, 2, 10, 20, 30, 40});
  packed_values("o", {-1, -1, -1, -1, -1, -1, -1, -1});
  e.expect_nodes_agree();
  std::vector<float> o_values(8);
  std::memcpy(o_values.data(), e.data("o"), sizeof(float) * 8);
  EXPECT_EQ(o_values, (std::vector<float>{1, 2, 20, 30, 20, 30, -1, -1}));
  EXPECT_EQ(e.oracle("o").row_starts, (std::vector<std::int64_t>{0, 2, 6}));
  o_values[3] = 31;
  std::memcpy(e.data("o"), o_values.data(), sizeof(float) * 8);
  EXPECT_FALSE(e.oracle("o").compare(e.tensor("o"), e.data("o")).ok);
}

}  // namespace
}  // namespace ashlar::reference

// Cross-entropy and rotary position embedding on values small enough to verify manually.
#include <cmath>

#include "reference/harness.hpp"

namespace ashlar::reference::language_model {
namespace {

using Numbers = std::vector<double>;
using Forward = CrossEntropyForward;
using Backward = CrossEntropyBackward;

constexpr double kTolerance = 1e-12;
const double kLog3 = std::log(3.0), kLog4 = std::log(4.0);

// Rows of two classes with logits (0, log 3): probabilities (1/4, 3/4), stats log 4.
Numbers logits(std::size_t rows) {
  Numbers values;
  for (std::size_t row = 0; row < rows; ++row) values.insert(values.end(), {0.0, kLog3});
  return values;
}

Numbers losses(const Forward& op, const Numbers& targets) {
  const auto rows = static_cast<std::int64_t>(targets.size());
  Graph g;
  const auto results = g.apply(op,
                               {{Forward::x, g.input("x", {rows, 2}, f64)},
                                {Forward::target, g.input("target", {rows, 1}, i64)}},
                               {Forward::loss, Forward::stats});
  g.output("loss", results[Forward::loss]);
  g.output("stats", results[Forward::stats]);
  Evaluation e(g);
  e.set("x", logits(targets.size()));
  e.set("target", targets);
  e.expect_nodes_agree();
  for (const double stats : e.get("stats")) EXPECT_NEAR(stats, kLog4, kTolerance);
  return e.get("loss");
}

Numbers gradients(const Backward& op, const Numbers& targets, const Numbers& dloss) {
  const auto rows = static_cast<std::int64_t>(targets.size());
  Graph g;
  g.output("dx", g.apply(op,
                         {{Backward::x, g.input("x", {rows, 2}, f64)},
                          {Backward::target, g.input("target", {rows, 1}, i64)},
                          {Backward::stats, g.input("stats", {rows, 1}, f64)},
                          {Backward::dloss, g.input("dloss", {op.mean ? 1 : rows, 1}, f64)}},
                         {Backward::dx}));
  Evaluation e(g);
  e.set("x", logits(targets.size()));
  e.set("target", targets);
  e.set("stats", Numbers(targets.size(), kLog4));
  e.set("dloss", dloss);
  e.expect_nodes_agree();
  return e.get("dx");
}

void expect_near(const Numbers& actual, const Numbers& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (std::isnan(expected[i]))
      EXPECT_TRUE(std::isnan(actual[i])) << "element " << i << " is " << actual[i];
    else
      EXPECT_NEAR(actual[i], expected[i], kTolerance) << "element " << i;
  }
}

template <class Op>
Op with(double smoothing, bool mean, std::int64_t ignore_index = -100) {
  Op op;
  op.label_smoothing = smoothing;
  op.mean = mean;
  op.ignore_index = ignore_index;
  return op;
}

TEST(HandComputed, CrossEntropy) {
  expect_near(losses({}, {0, 1, -100}), {kLog4, kLog4 - kLog3, 0});
  expect_near(losses({}, {2, -1, 9e18}), {kNaN, kNaN, kNaN});
  expect_near(losses(with<Forward>(0, false, 1), {0, 1, -100}), {kLog4, 0, kNaN});
}

TEST(HandComputed, CrossEntropyWithLabelSmoothing) {
  // -sum of log p over the two classes: 2 log 4 - log 3.
  const double uniform = kLog4 - kLog3 / 2;
  expect_near(losses(with<Forward>(0.25, false), {0, 1, -100}),
              {0.75 * kLog4 + 0.25 * uniform, 0.75 * (kLog4 - kLog3) + 0.25 * uniform, 0});
  expect_near(losses(with<Forward>(1, false), {0, 1}), {uniform, uniform});
}

TEST(HandComputed, CrossEntropyMean) {
  expect_near(losses(with<Forward>(0, true), {0, -100, 1}), {(2 * kLog4 - kLog3) / 2});
  expect_near(losses(with<Forward>(0, true), {-100, -100}), {kNaN});
  expect_near(losses(with<Forward>(0, true), {0, 2}), {kNaN});
}

TEST(HandComputed, CrossEntropyGradient) {
  expect_near(gradients({}, {0, 1, -100, 2}, {2, 4, 8, 1}),
              {2 * -0.75, 2 * 0.75, 4 * 0.25, 4 * -0.25, 0, 0, kNaN, kNaN});
  expect_near(gradients(with<Backward>(0.5, false), {0}, {1}), {0.25 - 0.5 - 0.25, 0.75 - 0.25});
  expect_near(gradients(with<Backward>(0, true), {0, -100, 1}, {6}),
              {3 * -0.75, 3 * 0.75, 0, 0, 3 * 0.25, 3 * -0.25});
  expect_near(gradients(with<Backward>(0, true), {-100}, {1}), {0, 0});
}

TEST(HandComputed, CrossEntropyOfInfiniteLogits) {
  Graph g;
  g.output("loss", g.apply(Forward{},
                           {{Forward::x, g.input("x", {4, 2}, f32)},
                            {Forward::target, g.input("target", {4, 1}, i32)}},
                           {Forward::loss}));
  Evaluation e(g);
  e.set("x", {-kInf, 0, -kInf, 0, 0, kInf, kNaN, 0});
  e.set("target", {1, 0, 0, -100});
  e.expect_nodes_agree();
  const Numbers loss = e.get("loss");
  EXPECT_EQ(loss[0], 0);
  EXPECT_EQ(loss[1], kInf);
  EXPECT_TRUE(std::isnan(loss[2]));
  EXPECT_EQ(loss[3], 0) << "ignored rows may hold anything";
}

// Rows of one head, rotated.
Numbers rotated(const Rope& op, std::int64_t width, const Numbers& x, const Numbers& positions) {
  const auto rows = static_cast<std::int64_t>(x.size()) / width;
  Graph g;
  const Value given = positions.empty() ? Value() : g.input("positions", {1, rows}, i64);
  g.output(
      "y",
      g.apply(op, {{Rope::x, g.input("x", {1, 1, rows, width}, f64)}, {Rope::positions, given}},
              {Rope::y}));
  Evaluation e(g);
  e.set("x", x);
  if (given) e.set("positions", positions);
  e.expect_nodes_agree();
  return e.get("y");
}

TEST(HandComputed, Rope) {
  Rope op;
  op.base = 100;  // pairs turn by 1 and by 0.1 per position
  const double c = std::cos(2.0), s = std::sin(2.0), c2 = std::cos(0.2), s2 = std::sin(0.2);
  const Numbers halves = {1 * c - 3 * s, 2 * c2 - 4 * s2, 3 * c + 1 * s, 4 * c2 + 2 * s2};
  expect_near(rotated(op, 4, {1, 2, 3, 4}, {2}), halves);
  expect_near(rotated(op, 4, {1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4}, {0, 0, 2}),
              {1, 2, 3, 4, 5, 6, 7, 8, halves[0], halves[1], halves[2], halves[3]});
  op.pairs = RopePairs::interleaved;
  expect_near(rotated(op, 4, {1, 3, 2, 4}, {2}), {halves[0], halves[2], halves[1], halves[3]});
  op.inverse = true;
  expect_near(rotated(op, 4, {halves[0], halves[2], halves[1], halves[3]}, {2}), {1, 3, 2, 4});
}

TEST(HandComputed, RopeCountsPositionsAndCopiesTheRest) {
  Rope op;
  op.width = 2;
  const double c = std::cos(1.0), s = std::sin(1.0);
  expect_near(rotated(op, 3, {1, 2, 3, 1, 2, 3}, {}), {1, 2, 3, c - 2 * s, 2 * c + s, 3});
}

TEST(HandComputed, RopeOfDistantPositions) {
  Rope op;
  op.width = 2;
  expect_near(rotated(op, 2, {1, 0, 1, 0}, {1000000, -3}),
              {std::cos(1e6), std::sin(1e6), std::cos(3.0), -std::sin(3.0)});
}

// Turns within 100 positions of frequencies 1, 0.1, 0.01, 0.001: 15.9, 1.59, 0.159, 0.0159. Pairs 0
// and 2 are the ends of the interpolation.
TEST(HandComputed, RopeWithYarn) {
  Rope op;
  op.factor = 4;
  op.original_length = 100;
  op.beta_fast = 8;
  const Numbers frequencies = {1, 0.5 * 0.1 + 0.5 * 0.025, 0.0025, 0.00025};
  for (const double attention_factor : {0.0, 2.0}) {
    op.attention_factor = attention_factor;
    const double scale = attention_factor == 0.0 ? 1 + 0.1 * std::log(4.0) : 2.0;
    Numbers expected;
    for (const double f : frequencies) expected.push_back(scale * std::cos(3 * f));
    for (const double f : frequencies) expected.push_back(scale * std::sin(3 * f));
    expect_near(rotated(op, 8, {1, 1, 1, 1, 0, 0, 0, 0}, {3}), expected);
  }
}

TEST(HandComputed, RopeFromTables) {
  Graph g;
  g.output("y", g.apply(Rope{},
                        {{Rope::x, g.input("x", {2, 2, 1, 2}, f32)},
                         {Rope::cos, g.input("cos", {2, 1, 1, 1}, f32)},
                         {Rope::sin, g.input("sin", {1, 2, 1, 1}, f32)}},
                        {Rope::y}));
  Evaluation e(g);
  e.set("x", {1, 2, 1, 2, 1, 2, 1, 2});
  e.set("cos", {3, 5});
  e.set("sin", {7, 11});
  expect_result(e, "y", {3 - 14, 6 + 7, 3 - 22, 6 + 11, 5 - 14, 10 + 7, 5 - 22, 10 + 11});
}

}  // namespace
}  // namespace ashlar::reference::language_model

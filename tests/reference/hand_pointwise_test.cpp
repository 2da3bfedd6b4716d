// All pointwise modes on values computed manually or by the C library.
#include <cmath>
#include <numbers>
#include <set>

#include "reference/harness.hpp"

namespace ashlar::reference {
namespace {

struct PointwiseCase {
  PointwiseMode mode;
  std::vector<double> x, b;
  std::vector<double> expected;
  Pointwise attributes = {};
  DType dtype = f64;
};

std::vector<PointwiseCase> cases() {
  using M = PointwiseMode;
  const double e = std::numbers::e, pi = std::numbers::pi;
  const auto sigmoid = [](double v) { return 1.0 / (1.0 + std::exp(-v)); };
  Pointwise relu6;
  relu6.relu_upper_clip = 6.0;
  relu6.relu_lower_slope = 0.1;
  relu6.relu_lower_clip = 1.0;
  Pointwise scaled;
  scaled.alpha1 = 2.0;
  scaled.alpha2 = -3.0;
  Pointwise elu;
  elu.elu_alpha = 2.0;
  Pointwise beta;
  beta.softplus_beta = 2.0;
  beta.swish_beta = 2.0;
  return {
      {M::add, {1, kInf}, {2, -kInf}, {3, kNaN}},
      {M::add, {1, 5}, {2, 7}, {2 - 6, 10 - 21}, scaled},
      {M::mul, {3, 0}, {-4, kInf}, {-12, kNaN}},
      {M::min, {3, kNaN, 1}, {-4, 1, kNaN}, {-4, kNaN, kNaN}},
      {M::max, {3, kNaN, 1}, {-4, 1, kNaN}, {3, kNaN, kNaN}},
      {M::add_square, {1, 2}, {3, -4}, {10, 18}},
      {M::div, {1, -1, 7}, {0, 0, 2}, {kInf, -kInf, 3.5}},
      {M::div, {7, -7, 5}, {2, 2, 0}, {3, -3, 0}, {}, i32},
      {M::mod, {7, -7, 6}, {3, 3, 3}, {1, -1, 0}},
      {M::pow, {2, 4, -2}, {10, 0.5, 3}, {1024, 2, -8}},
      {M::sub, {1, 2}, {3, -4}, {-2, 6}},
      {M::atan2, {1, 1}, {1, -1}, {pi / 4, 3 * pi / 4}},
      {M::sqrt, {4, 2, -1}, {}, {2, std::sqrt(2.0), kNaN}},
      {M::abs, {-4, 2}, {}, {4, 2}},
      {M::ceil, {-1.5, 1.2, 3}, {}, {-1, 2, 3}},
      {M::floor, {-1.5, 1.2, 3}, {}, {-2, 1, 3}},
      {M::cos, {0, pi / 3}, {}, {1, 0.5}},
      {M::sin, {0, pi / 6}, {}, {0, 0.5}},
      {M::tan, {0, pi / 4}, {}, {0, 1}},
      {M::exp, {0, 1, -kInf}, {}, {1, e, 0}},
      {M::log, {1, e, 0}, {}, {0, 1, -kInf}},
      {M::neg, {1, -kInf}, {}, {-1, kInf}},
      {M::rsqrt, {4, 0}, {}, {0.5, kInf}},
      {M::erf, {0, 1}, {}, {0, std::erf(1.0)}},
      {M::identity, {3, kNaN}, {}, {3, kNaN}},
      {M::reciprocal, {4, -0.5}, {}, {0.25, -2}},
      {M::relu_fwd, {-2, 3, kNaN}, {}, {0, 3, kNaN}},
      {M::relu_fwd, {-2, 3, 9}, {}, {1 + 0.1 * -3, 3, 6}, relu6},
      {M::tanh_fwd, {0, 1}, {}, {0, std::tanh(1.0)}},
      {M::sigmoid_fwd, {0, 2, -1000}, {}, {0.5, sigmoid(2), 0}},
      {M::elu_fwd, {3, -1}, {}, {3, 2 * (1 / e - 1)}, elu},
      {M::gelu_fwd,
       {0, 1, -1},
       {},
       {0, 0.5 * (1 + std::erf(std::sqrt(0.5))), -0.5 * (1 - std::erf(std::sqrt(0.5)))}},
      {M::softplus_fwd, {0, 1, 1000}, {}, {std::log(2.0) / 2, std::log1p(e * e) / 2, 1000}, beta},
      {M::swish_fwd, {0, 1}, {}, {0, sigmoid(2)}, beta},
      {M::gelu_approx_tanh_fwd,
       {0, 1},
       {},
       {0, 0.5 * (1 + std::tanh(std::sqrt(2 / pi) * 1.044715))}},
      {M::relu_bwd, {5, 5, 5}, {-1, 0, 2}, {0, 0, 5}},
      {M::relu_bwd, {5, 5, 5, 5}, {-1, 1, 2, 6}, {0.5, 0.5, 5, 0}, relu6},
      {M::tanh_bwd, {2}, {1}, {2 * (1 - std::tanh(1.0) * std::tanh(1.0))}},
      {M::sigmoid_bwd, {2}, {1}, {2 * sigmoid(1) * (1 - sigmoid(1))}},
      {M::elu_bwd, {2, 2}, {3, -1}, {2, 4 / e}, elu},
      {M::gelu_bwd, {2}, {0}, {1}},
      {M::softplus_bwd, {3}, {1}, {3 * sigmoid(2)}, beta},
      {M::swish_bwd, {3}, {0}, {1.5}, beta},
      {M::gelu_approx_tanh_bwd, {2}, {0}, {1}},
      {M::cmp_eq, {1, 2, kNaN}, {1, 3, kNaN}, {1, 0, 0}},
      {M::cmp_neq, {1, 2, kNaN}, {1, 3, kNaN}, {0, 1, 1}},
      {M::cmp_gt, {1, 2, 3}, {1, 1, 4}, {0, 1, 0}},
      {M::cmp_ge, {1, 2, 3}, {1, 1, 4}, {1, 1, 0}},
      {M::cmp_lt, {1, 2, 3}, {1, 1, 4}, {0, 0, 1}},
      {M::cmp_le, {1, 2, 3}, {1, 1, 4}, {1, 0, 1}},
      {M::logical_and, {0, 1, 0, 1}, {0, 0, 1, 1}, {0, 0, 0, 1}, {}, boolean},
      {M::logical_or, {0, 1, 0, 1}, {0, 0, 1, 1}, {0, 1, 1, 1}, {}, boolean},
      {M::logical_not, {0, 1, 1}, {}, {1, 0, 0}, {}, boolean},
      {M::gen_index, {9, 9, 9}, {}, {0, 1, 2}},
      {M::trunc, {-1.5, 1.7, kInf, kNaN}, {}, {-1, 1, kInf, kNaN}},
      {M::round, {-1.5, 0.5, 2.5, 1.6, kNaN}, {}, {-2, 0, 2, 2, kNaN}},
      {M::sign, {-0.25, 0, 7, -kInf, kNaN}, {}, {-1, 0, 1, -1, kNaN}},
      {M::log1p, {0, e - 1, 1e-18, -1}, {}, {0, 1, 1e-18, -kInf}},
      {M::expm1, {0, 1, 1e-18, -kInf}, {}, {0, e - 1, 1e-18, -1}},
      {M::bit_and, {12, -1, -8}, {10, 77, 13}, {8, 77, 8}, {}, i32},
      {M::bit_or, {12, -8, 0}, {10, 3, 0}, {14, -5, 0}, {}, i8},
      {M::bit_xor, {12, 255, 1}, {10, 15, 1}, {6, 240, 0}, {}, u8},
      {M::bit_xor, {0, 1, 1}, {1, 0, 1}, {1, 1, 0}, {}, boolean},
      {M::bit_not, {0, 5, 255}, {}, {255, 250, 0}, {}, u8},
      {M::bit_not, {0, 5, -128}, {}, {-1, -6, 127}, {}, i8},
      {M::bit_not, {0, 1}, {}, {1, 0}, {}, boolean},
      {M::bit_not, {0, 5}, {}, {15, 10}, {}, u4},
      {M::shift_left, {1, 3, 100, 1, 1}, {3, 7, 1, 8, -1}, {8, -128, -56, 0, 0}, {}, i8},
      {M::shift_left, {3, 200}, {7, 1}, {128, 144}, {}, u8},
      {M::shift_left, {1, 5}, {40, 50}, {0x1p40, 5 * 0x1p50}, {}, i64},
      {M::shift_right, {-9, 9, -9, -9, 9}, {1, 1, 31, 32, -1}, {-5, 4, -1, -1, 0}, {}, i32},
      {M::shift_right, {4294967295.0, 8}, {31, 32}, {1, 0}, {}, u32},
  };
}

TEST(HandComputedPointwise, EveryMode) {
  std::set<PointwiseMode> seen = {PointwiseMode::binary_select};  // has three operands: below
  for (const PointwiseCase& test : cases()) {
    SCOPED_TRACE(testing::Message() << "mode " << static_cast<int>(test.mode));
    seen.insert(test.mode);
    Graph g;
    const auto n = static_cast<std::int64_t>(test.x.size());
    std::vector<Value> operands = {g.input("x", {n}, test.dtype)};
    if (!test.b.empty()) operands.push_back(g.input("b", {n}, test.dtype));
    g.output("y", g.pointwise(test.mode, operands, test.attributes));
    Evaluation e(g);
    e.set("x", test.x);
    if (!test.b.empty()) e.set("b", test.b);
    expect_result(e, "y", test.expected, 1e-13);
  }
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(kPointwiseModeCount));
}

TEST(HandComputedPointwise, TruncationToIntegersIsThatOfC) {
  Graph g;
  const Value x = g.input("x", {5}, f32);
  g.output("i", g.pointwise(PointwiseMode::trunc, std::array{x}, {}, {.dtype = i8}));
  g.output("u", cast_truncate(x, u8));
  g.output("nearest", cast(x, i8));
  Evaluation e(g);
  e.set("x", {1.75, -1.75, 1000, -1000, kNaN});
  expect_result(e, "i", {1, -1, 127, -128, 0});
  expect_result(e, "u", {1, 0, 255, 0, 0});
  expect_result(e, "nearest", {2, -2, 127, -128, 0});
}

// Past 2^53 an i64 has lost bits: the oracle knows nothing about the result.
TEST(HandComputedPointwise, BitsPast2To53AreUnknown) {
  Graph g;
  const Value x = g.input("x", {3}, i64), b = g.input("b", {3}, i64);
  g.output("y", g.pointwise(PointwiseMode::bit_and, std::array{x, b}));
  Evaluation e(g);
  e.set("x", {0x1p53, 0x1p54, 6});
  e.set("b", {0x1p53, 3, 3});
  const Expected y = e.oracle("y");
  EXPECT_EQ(y.values, (std::vector<double>{0x1p53, 0, 2}));
  EXPECT_EQ(y.bounds, (std::vector<double>{0, kInf, 0}));
}

TEST(HandComputedPointwise, ExpansionRepeatsAndCounts) {
  Graph g;
  const Value x = g.input("x", {2, 1}, f32);
  g.output("y", expand(x, {2, 2, 3}));
  g.output("z", g.pointwise(PointwiseMode::identity, std::array{x}, {.alpha1 = 2.0},
                            {.dtype = i32, .dims = {2, 2}}));
  g.output("columns",
           g.pointwise(PointwiseMode::gen_index, std::array{x}, {.axis = -1}, {.dims = {2, 3}}));
  g.output("filled", full(g, {2, 2}, 7.0, u8));
  Evaluation e(g);
  e.set("x", {3, 4});
  expect_result(e, "y", {3, 3, 3, 4, 4, 4, 3, 3, 3, 4, 4, 4});
  expect_result(e, "z", {6, 6, 8, 8});
  expect_result(e, "columns", {0, 1, 2, 0, 1, 2});
  expect_result(e, "filled", {7, 7, 7, 7});
}

TEST(HandComputedPointwise, Composites) {
  Graph g;
  g.output("iota", iota(g, {2, 3}, 0, f32, 0.5, 2.0));
  g.output("count", iota(g, {4}, -1, i64, 10, -3));
  g.output("hot", one_hot(g.input("index", {4}, i32), 3));
  g.output("below", triangle(g, 2, 3));
  g.output("above", triangle(g, 2, 3, 1));
  const Value x = g.input("x", {1, 2, 3}, f16);
  g.output("tril", tril(x, -1));
  g.output("triu", triu(x, 1));
  Evaluation e(g);
  e.set("index", {2, 0, -1, 3});
  e.set("x", {1, 2, 3, 4, 5, 6});
  expect_result(e, "iota", {0.5, 0.5, 0.5, 2.5, 2.5, 2.5});
  expect_result(e, "count", {10, 7, 4, 1});
  expect_result(e, "hot", {0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0});
  expect_result(e, "below", {1, 0, 0, 1, 1, 0});
  expect_result(e, "above", {1, 1, 0, 1, 1, 1});
  expect_result(e, "tril", {0, 0, 0, 4, 0, 0});
  expect_result(e, "triu", {0, 2, 3, 0, 0, 6});
}

TEST(HandComputedPointwise, SelectAndBroadcastInAnyPosition) {
  Graph g;
  const Value x = g.input("x", {1, 3}, f32), b = g.input("b", {2, 1}, f32),
              p = g.input("p", {2, 3}, boolean);
  g.output("y", select(p, x, b));
  g.output("sum", x + b);
  Evaluation e(g);
  e.set("x", {1, 2, 3});
  e.set("b", {10, 20});
  e.set("p", {1, 0, 1, 0, 1, 0});
  expect_result(e, "y", {1, 10, 3, 20, 2, 20});
  expect_result(e, "sum", {11, 12, 13, 21, 22, 23});
}

TEST(HandComputedPointwise, ScalarsConstantsAndStrides) {
  Graph g;
  const Value x = g.input("x", {2, 2}, bf16, Layout(Dims{1, 5}));
  const Value s = g.scalar("s", f32, 2);
  g.output("y", x * s + 0.5);
  Evaluation e(g);
  e.set("x", {1, 2, 3, 4});
  e.set("s", {3});
  expect_result(e, "y", {3.5, 6.5, 9.5, 12.5});
}

TEST(HandComputedPointwise, StoringRoundsOnceAndSaturates) {
  Graph g;
  const Value x = g.input("x", {4}, f32);
  g.output("h", cast(x, f16));
  g.output("e", cast(x, e4m3));
  g.output("i", cast(x, i8));
  Evaluation e(g);
  e.set("x", {2049, 1e6, -2.5, kNaN});
  expect_result(e, "h", {2048, kInf, -2.5, kNaN});
  expect_result(e, "e", {448, 448, -2.5, kNaN});
  expect_result(e, "i", {127, 127, -2, 0});
}

TEST(Pointwise, BroadcastsAcrossRanks) {
  Graph g;
  const Value x = g.input("x", {2, 1, 3}, f64), b = g.input("b", {2, 1}, f64);
  const Value row = g.input("row", {3}, f64), s = g.scalar("s", f64, 4);
  g.output("sum", x + b);
  g.output("difference", b - x);
  g.output("scaled", s * x);
  g.output("shifted", row - g.constant(5.0, f64, 2));
  g.output("chosen", select(pointwise(PointwiseMode::cmp_gt, row, b), row, x));
  Evaluation e(g);
  e.set("x", {1, 2, 3, 4, 5, 6});
  e.set("b", {10, 20});
  e.set("row", {15, 5, 25});
  e.set("s", {2});
  expect_result(e, "sum", {11, 12, 13, 21, 22, 23, 14, 15, 16, 24, 25, 26}, 0);
  expect_result(e, "difference", {9, 8, 7, 19, 18, 17, 6, 5, 4, 16, 15, 14}, 0);
  expect_result(e, "scaled", {2, 4, 6, 8, 10, 12}, 0);
  expect_result(e, "shifted", {10, 0, 20}, 0);
  expect_result(e, "chosen", {15, 2, 25, 1, 2, 25, 15, 5, 25, 4, 5, 25}, 0);
}

}  // namespace
}  // namespace ashlar::reference

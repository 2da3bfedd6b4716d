// Scans, top_k and padding on values small enough to verify manually.
#include <cmath>

#include "reference/harness.hpp"

namespace ashlar::reference {
namespace {

std::vector<double> scanned(const Scan& op, const Dims& dims, const std::vector<double>& x,
                            DType dtype = f32) {
  Graph g;
  g.output("y", g.apply(op, {{Scan::x, g.input("x", dims, dtype)}}, {Scan::y}));
  Evaluation e(g);
  e.set("x", x);
  e.run_nodes();
  const std::vector<double> y = e.get("y");
  e.expect_nodes_agree();
  return y;
}

using Values = std::vector<double>;

TEST(HandScan, Modes) {
  EXPECT_EQ(scanned({}, {4}, {1, -2, 3, 4}), Values({1, -1, 2, 6}));
  EXPECT_EQ(scanned({.mode = ScanMode::mul}, {4}, {2, -3, 0.5, 4}), Values({2, -6, -3, -12}));
  EXPECT_EQ(scanned({.mode = ScanMode::min}, {4}, {3, 4, -1, 2}), Values({3, 3, -1, -1}));
  EXPECT_EQ(scanned({.mode = ScanMode::max}, {4}, {3, 4, -1, 5}), Values({3, 4, 4, 5}));
}

TEST(HandScan, AxisAndDirection) {
  const Values x = {1, 2, 3, 4, 5, 6};
  EXPECT_EQ(scanned({.axis = 0}, {2, 3}, x), Values({1, 2, 3, 5, 7, 9}));
  EXPECT_EQ(scanned({.reverse = true}, {2, 3}, x), Values({6, 5, 3, 15, 11, 6}));
  EXPECT_EQ(scanned({.exclusive = true}, {2, 3}, x), Values({0, 1, 3, 0, 4, 9}));
  EXPECT_EQ(scanned({.exclusive = true, .reverse = true}, {2, 3}, x), Values({5, 3, 0, 11, 6, 0}));
}

TEST(HandScan, NeutralElements) {
  const auto first = [](ScanMode mode, DType dtype) {
    return scanned({.mode = mode, .exclusive = true}, {2}, {3, 4}, dtype)[0];
  };
  EXPECT_EQ(first(ScanMode::mul, f32), 1.0);
  EXPECT_EQ(first(ScanMode::min, f32), kInf);
  EXPECT_EQ(first(ScanMode::max, f16), -kInf);
  EXPECT_EQ(first(ScanMode::logsumexp, f32), -kInf);
  EXPECT_EQ(first(ScanMode::min, i32), 2147483647.0);
  EXPECT_EQ(first(ScanMode::max, i8), -128.0);
  EXPECT_EQ(first(ScanMode::max, u8), 0.0);
}

TEST(HandScan, NanStays) {
  const Values y = scanned({.mode = ScanMode::max}, {4}, {1, kNaN, 3, kInf});
  EXPECT_EQ(y[0], 1.0);
  for (std::size_t i = 1; i < y.size(); ++i) EXPECT_TRUE(std::isnan(y[i])) << i;
}

TEST(HandScan, LogSumExp) {
  // exp is 1, 3, 4, 8: the sums are 1, 4, 8, 16.
  const Values x = {0.0, std::log(3.0), std::log(4.0), std::log(8.0)};
  const Values y = scanned({.mode = ScanMode::logsumexp}, {4}, x, f64);
  const Values sums = {1, 4, 8, 16};
  for (std::size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], std::log(sums[i]), 1e-14) << i;
  // 1000 and -1000 overflow and underflow without a shift.
  const Values far = scanned({.mode = ScanMode::logsumexp}, {3}, {-1000, 1000, 1000}, f64);
  EXPECT_NEAR(far[0], -1000.0, 1e-12);
  EXPECT_NEAR(far[1], 1000.0, 1e-12);
  EXPECT_NEAR(far[2], 1000.0 + std::log(2.0), 1e-12);
  const Values ends = scanned({.mode = ScanMode::logsumexp}, {4}, {-kInf, 0, kInf, 0}, f64);
  EXPECT_EQ(ends, Values({-kInf, 0, kInf, kInf}));
}

struct Picked {
  Values values, index;
};
Picked picked(const TopK& op, const Dims& dims, const Values& x, DType dtype = f32) {
  Graph g;
  const auto r = g.apply(op, {{TopK::x, g.input("x", dims, dtype)}}, {TopK::values, TopK::index});
  g.output("values", r[TopK::values]);
  g.output("index", r[TopK::index]);
  Evaluation e(g);
  e.set("x", x);
  e.run_nodes();
  e.expect_nodes_agree();
  return {e.get("values"), e.get("index")};
}

TEST(HandTopK, LargestAndSmallest) {
  const Values x = {3, 1, 4, 1, 5, 9};
  const Picked largest = picked({.k = 2}, {6}, x);
  EXPECT_EQ(largest.values, Values({9, 5}));
  EXPECT_EQ(largest.index, Values({5, 4}));
  const Picked smallest = picked({.k = 3, .largest = false}, {6}, x);
  EXPECT_EQ(smallest.values, Values({1, 1, 3}));
  EXPECT_EQ(smallest.index, Values({1, 3, 0}));
  const Picked columns = picked({.axis = 0, .k = 1}, {2, 3}, x);
  EXPECT_EQ(columns.values, Values({3, 5, 9}));
  EXPECT_EQ(columns.index, Values({0, 1, 1}));
}

TEST(HandTopK, SortIsStable) {
  const Picked down = picked({}, {6}, {2, 0, -0.0, 2, -1, 0});
  EXPECT_EQ(down.values, Values({2, 2, 0, 0, 0, -1}));
  EXPECT_EQ(down.index, Values({0, 3, 1, 2, 5, 4}));
  const Picked up = picked({.largest = false}, {4}, {7, -7, 7, -7}, i32);
  EXPECT_EQ(up.values, Values({-7, -7, 7, 7}));
  EXPECT_EQ(up.index, Values({1, 3, 0, 2}));
}

TEST(HandTopK, NanIsTheLargest) {
  const Picked down = picked({}, {5}, {1, kNaN, kInf, kNaN, -kInf});
  EXPECT_EQ(down.index, Values({1, 3, 2, 0, 4}));
  const Picked up = picked({.largest = false}, {5}, {1, kNaN, kInf, kNaN, -kInf});
  EXPECT_EQ(up.index, Values({4, 0, 2, 1, 3}));
}

// 0.3f * x leaves errors: the two close elements may change places, the others may not.
TEST(HandTopK, CloseElementsHaveNoCertainIndex) {
  Graph g;
  const Value x = g.input("x", {4}, f32);
  const Value y = x * g.input("factor", {1}, f32);
  const auto r = g.apply(TopK{}, {{TopK::x, y}}, {TopK::values, TopK::index});
  g.output("index", r[TopK::index]);
  Evaluation e(g);
  e.set("x", {1, 1 + 0x1p-23, 2, -1});
  e.set("factor", {0.3});
  const Expected expected = e.oracle("index");
  EXPECT_EQ(expected.values, Values({2, 1, 0, 3}));
  EXPECT_EQ(expected.bounds[0], 0.0);
  EXPECT_EQ(expected.bounds[1], kInf);
  EXPECT_EQ(expected.bounds[2], kInf);
  EXPECT_EQ(expected.bounds[3], 0.0);
}

Values padded(const Pad& op, const Dims& dims, const Values& x) {
  Graph g;
  g.output("y", g.apply(op, {{Pad::x, g.input("x", dims, f32)}}, {Pad::y}));
  Evaluation e(g);
  e.set("x", x);
  e.run_nodes();
  e.expect_nodes_agree();
  return e.get("y");
}

TEST(HandPad, Modes) {
  const Values x = {1, 2, 3};
  const auto by_two = [&](PadMode mode) {
    return padded({.mode = mode, .before = {2}, .after = {1}, .value = 7}, {3}, x);
  };
  EXPECT_EQ(by_two(PadMode::constant), Values({7, 7, 1, 2, 3, 7}));
  EXPECT_EQ(by_two(PadMode::reflect), Values({3, 2, 1, 2, 3, 2}));
  EXPECT_EQ(by_two(PadMode::edge), Values({1, 1, 1, 2, 3, 3}));
  EXPECT_EQ(by_two(PadMode::circular), Values({2, 3, 1, 2, 3, 1}));
}

TEST(HandPad, CropsAndPads) {
  EXPECT_EQ(padded({.before = {-1, 1}, .after = {1, -1}, .value = 9}, {2, 3}, {1, 2, 3, 4, 5, 6}),
            Values({9, 4, 5, 9, 9, 9}));
  EXPECT_EQ(padded({.before = {-3}, .after = {2}, .value = 9}, {2}, {1, 2}), Values({9}));
}

Values pad_gradient(const PadBackward& op, const Dims& dims, const Values& dy) {
  Graph g;
  g.output("dx", g.apply(op, {{PadBackward::dy, g.input("dy", dims, f32)}}, {PadBackward::dx}));
  Evaluation e(g);
  e.set("dy", dy);
  e.run_nodes();
  e.expect_nodes_agree();
  return e.get("dx");
}

TEST(HandPad, Gradients) {
  const Values dy = {1, 2, 4, 8, 16, 32};
  const auto of_two = [&](PadMode mode) {
    return pad_gradient({.mode = mode, .before = {2}, .after = {1}}, {6}, dy);
  };
  EXPECT_EQ(of_two(PadMode::constant), Values({4, 8, 16}));
  EXPECT_EQ(of_two(PadMode::reflect), Values({4, 8 + 2 + 32, 16 + 1}));
  EXPECT_EQ(of_two(PadMode::edge), Values({4 + 1 + 2, 8, 16 + 32}));
  EXPECT_EQ(of_two(PadMode::circular), Values({4 + 32, 8 + 1, 16 + 2}));
  EXPECT_EQ(pad_gradient({.before = {-1}, .after = {1}}, {3}, {1, 2, 4}), Values({0, 1, 2}));
}

class PadGradients : public testing::TestWithParam<PadMode> {};

TEST_P(PadGradients, MatchFiniteDifferences) {
  const Dims before = {2, 0, 1}, after = {1, 3, 0}, x = {3, 4, 2}, y = {6, 7, 3};
  Graph f;
  f.output("y", f.apply(Pad{.mode = GetParam(), .before = before, .after = after},
                        {{Pad::x, f.input("x", x, f64)}}, {Pad::y}));
  Graph b;
  b.output("dx", b.apply(PadBackward{.mode = GetParam(), .before = before, .after = after},
                         {{PadBackward::dy, b.input("dy", y, f64)}}, {PadBackward::dx}));
  Evaluation forward(f), backward(b);
  forward.fill_inputs(31);
  expect_gradients(forward, "y", backward, {"x"});
}

INSTANTIATE_TEST_SUITE_P(All, PadGradients,
                         testing::Values(PadMode::constant, PadMode::reflect, PadMode::edge,
                                         PadMode::circular));

}  // namespace
}  // namespace ashlar::reference

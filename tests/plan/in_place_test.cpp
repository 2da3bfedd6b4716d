// CompileOptions::in_place: what is written in place, what is copied last, and random graphs.
#include <gtest/gtest.h>

#include <algorithm>
#include <ashlar/ashlar.hpp>
#include <random>

#include "support/problem.hpp"

namespace ashlar {
namespace {

// Runs the plan with each pair in one memory; a message if a result is wrong.
std::string run_shared(const Graph& graph, const CompileOptions& options, const InPlace& shared) {
  try {
    support::Problem problem(graph, 5);
    problem.share(shared);
    const Plan plan = compile(graph, support::test_device(), options);
    const std::string wrong = problem.run(plan);
    return wrong.empty() ? wrong : wrong + "\n" + plan.explain();
  } catch (const std::exception& error) {
    return std::string("threw: ") + error.what();
  }
}

// With several sets of options.
void expect_right(const Graph& graph, const InPlace& pairs) {
  for (CompileOptions options :
       {CompileOptions{}, CompileOptions{.fuse = false}, CompileOptions{.reference_only = true},
        CompileOptions{.guard = true}, CompileOptions{.recompute = Recompute::all}}) {
    options.in_place = pairs;
    EXPECT_EQ(run_shared(graph, options, pairs), "");
  }
}

std::string explanation(const Graph& graph, const InPlace& pairs) {
  return compile(graph, Device::cpu(), {.in_place = pairs}).explain();
}
bool says(const Graph& graph, const InPlace& pairs, std::string_view text) {
  return explanation(graph, pairs).find(text) != std::string::npos;
}

// p, m, v -> p.next, m.next, v.next
void add_adamw(Graph& g, Value p, Value gradient) {
  const std::string name = p.tensor().name;
  const Value m = g.input(name + ".m", p.dims(), f32), v = g.input(name + ".v", p.dims(), f32);
  const Value next_m = m * 0.9 + gradient * 0.1;
  const Value next_v = v * 0.95 + gradient * gradient * 0.05;
  g.output(name + ".next", p - next_m / (sqrt(maximum(next_v, next_v * 0.5)) + 1.0));
  g.output(name + ".m.next", next_m);
  g.output(name + ".v.next", next_v);
}
InPlace adamw_pairs(const std::string& name) {
  return {{name + ".next", name}, {name + ".m.next", name + ".m"}, {name + ".v.next", name + ".v"}};
}

TEST(InPlace, AnOptimizerStepNeedsNoMemory) {
  Graph g("adamw");
  add_adamw(g, g.input("p", {33, 70}, f32), g.input("g", {33, 70}, f32));
  expect_right(g, adamw_pairs("p"));
  EXPECT_TRUE(says(g, adamw_pairs("p"), "3 output(s) are written in place"));
  EXPECT_EQ(compile(g, Device::cpu(), {.in_place = adamw_pairs("p")}).workspace_size(), 0);
}

// The matmul reads p, and so does another one; both come first.
TEST(InPlace, AnOptimizerStepBehindAGemmStaysFused) {
  Graph g("step");
  const Value x = g.input("x", {300, 33}, f32), dy = g.input("dy", {300, 70}, f32);
  const Value p = g.input("p", {33, 70}, f32);
  add_adamw(g, p, g.matmul(g.transpose(x, {1, 0}), dy));
  g.output("dx", g.matmul(dy, g.transpose(p, {1, 0})));
  g.output("y", g.matmul(x, p));
  const InPlace pairs = adamw_pairs("p");
  expect_right(g, pairs);
  const Plan plan = compile(g, Device::cpu(), {.in_place = pairs});
  EXPECT_EQ(plan.region_count(), 3) << plan.explain();
  EXPECT_TRUE(says(g, pairs, "3 output(s) are written in place"));
  const std::string on_h200 = explain(g, Device::named("h200"), {.in_place = pairs});
  EXPECT_NE(on_h200.find("3 output(s) are written in place"), std::string::npos) << on_h200;
}

TEST(InPlace, AStepBehindAFilterGradientStaysFused) {
  for (const std::int64_t window : {1, 3}) {
    Graph g("step");
    const Value x = g.input("x", {2, 16, 9, 9}, f32, channels_last);
    const Value dy = g.input("dy", {2, 8, 9, 9}, f32, channels_last);
    const Value w = g.input("w", {8, 16, window, window}, f32, channels_last);
    const std::int64_t padding = window / 2;
    const ConvAttributes attributes{.padding = {padding, padding}};
    const Value dw = g.conv_backward_filter(
        x, dy, attributes, {.dims = w.dims(), .layout = Layout(w.tensor().strides)});
    g.output("w.next", w - dw * 0.1);
    expect_right(g, {{"w.next", "w"}});
    const Plan plan = compile(g, Device::cpu(), {.in_place = {{"w.next", "w"}}});
    EXPECT_EQ(plan.region_count(), 1) << plan.explain();
  }
}

// Partial sums of a long K would overwrite the addend.
TEST(InPlace, AResidualIsAddedInARegionOfItsOwn) {
  Graph g("residual");
  const Value x = g.input("x", {64, 48}, f32);
  g.output("y", x + g.matmul(g.input("a", {64, 3000}, f32), g.input("b", {3000, 48}, f32)));
  expect_right(g, {{"y", "x"}});
  EXPECT_TRUE(says(g, {{"y", "x"}}, "1 output(s) are written in place"));
  EXPECT_TRUE(says(g, {{"y", "x"}}, "an in-place output is written behind it"));
}

TEST(InPlace, ACacheGrowsByAScatter) {
  for (const auto& [dims, axis] :
       {std::pair{Dims{1, 3, 40, 8}, 2}, {Dims{64, 5}, 0}, {Dims{70}, 0}}) {
    Graph g("append");
    const Value cache = g.input("cache", dims, f32);
    Dims added = dims;
    added[axis] = 2;
    const Value index = g.input("index", {2}, i32);
    Scatter op{.axis = axis, .combine = ScatterMode::set};
    const Value next = g.apply(op, {{Scatter::source, g.input("new", added, f32)},
                                    {Scatter::index, index},
                                    {Scatter::base, cache}});
    g.output("cache.next", next);
    expect_right(g, {{"cache.next", "cache"}});
    EXPECT_TRUE(says(g, {{"cache.next", "cache"}}, "1 output(s) are written in place"));
  }
}

TEST(InPlace, OtherElementsAreCopiedLast) {
  Graph g("transposed");
  const Value x = g.input("x", {24, 24}, f32);
  g.output("y", x + g.transpose(x, {1, 0}));
  expect_right(g, {{"y", "x"}});
  EXPECT_TRUE(
      says(g, {{"y", "x"}}, "in-place output 'y' is copied last: its region reads other elements"));
  Graph h("product");
  const Value z = h.input("z", {24, 24}, f32);
  h.output("w", h.matmul(z, z));
  expect_right(h, {{"w", "z"}});
}

// z needs y, and x too.
TEST(InPlace, LaterReadersOfTheInputMakeACopy) {
  Graph g("later");
  const Value x = g.input("x", {24, 24}, f32);
  const Value y = g.matmul(g.input("a", {24, 24}, f32), g.input("b", {24, 24}, f32));
  g.output("y", y);
  g.output("z", g.matmul(y, x));
  expect_right(g, {{"y", "x"}});
  EXPECT_TRUE(
      says(g, {{"y", "x"}}, "in-place output 'y' is copied last: 'matmul' reads the input"));
}

// In one program: y is stored before z reads x again.
TEST(InPlace, AProgramThatReadsTheInputAgainMakesACopy) {
  Graph g("again");
  const Value x = g.input("x", {24, 600}, f32);
  g.output("y", exp(x));
  g.output("z", x * 3.0);
  expect_right(g, {{"y", "x"}});
}

// Each input waits for the other output.
TEST(InPlace, TwoPairsThatExcludeEachOther) {
  Graph g("swap");
  const Value a = g.input("a", {24, 24}, f32), b = g.input("b", {24, 24}, f32);
  g.output("x", g.matmul(b, b));
  g.output("y", g.matmul(a, a));
  const InPlace pairs = {{"x", "a"}, {"y", "b"}};
  expect_right(g, pairs);
  EXPECT_TRUE(says(g, pairs, "1 output(s) are written in place"));
  EXPECT_TRUE(says(g, pairs, "is copied last"));
}

TEST(InPlace, IsSaved) {
  Graph g("adamw");
  add_adamw(g, g.input("p", {8, 8}, f32), g.input("g", {8, 8}, f32));
  const Plan plan = compile(g, Device::cpu(), {.in_place = adamw_pairs("p")});
  EXPECT_NE(Plan::from_json(plan.to_json()).explain().find("in place"), std::string::npos);
}

std::string refusal(const InPlace& pairs, const Constants& constants = {}) {
  Graph g("refused");
  const Value x = g.input("x", {4, 4}, f32), wide = g.input("wide", {4, 4}, f64);
  const Value column = g.input("column", {4, 4}, f32, Layout(Dims{1, 4}));
  g.output("y", x + column);
  g.output("z", wide);
  try {
    compile(g, Device::cpu(), {.in_place = pairs, .constants = constants});
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(InPlace, RefusesPairsThatCannotShare) {
  EXPECT_EQ(refusal({{"y", "x"}}), "accepted");
  EXPECT_EQ(refusal({{"x", "y"}}), "in_place: got 'x', expected the name of an output");
  EXPECT_EQ(refusal({{"y", "q"}}), "in_place: got 'q', expected the name of an input");
  EXPECT_EQ(refusal({{"z", "x"}}),
            "in_place: 'z' and 'x': got dtypes f64 and f32, expected equal ones");
  EXPECT_EQ(refusal({{"y", "column"}}),
            "in_place: 'y' and 'column': got dims [4, 4] with strides [4, 1] and [4, 4] with [1, "
            "4], expected equal ones");
  EXPECT_EQ(refusal({{"y", "x"}, {"y", "x"}}),
            "in_place: 'y' and 'x': got a name twice, expected each output and input in one pair");
  const float memory[16] = {};
  EXPECT_EQ(refusal({{"y", "x"}}, {{"x", memory}}),
            "in_place: 'y' and 'x': got a constant input, expected one that may change");
}

// Pointwise operations, matmuls, transposes and reductions of square tensors, with as many pairs as
// there are outputs.
struct Random {
  std::mt19937 random;
  int below(int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); }

  Graph make(InPlace& pairs) {
    Graph g("random");
    const std::int64_t n = below(2) ? 9 : 40;
    const int inputs = 2 + below(3);
    std::vector<Value> pool;
    for (int i = 0; i < inputs; ++i) pool.push_back(g.input("x" + std::to_string(i), {n, n}, f32));
    const auto any = [&] {
      return pool[static_cast<std::size_t>(below(static_cast<int>(pool.size())))];
    };
    for (int i = 3 + below(8); i > 0; --i) {
      switch (below(7)) {
        case 0: pool.push_back(g.matmul(any(), any()) * 0.1); break;
        case 1: pool.push_back(g.transpose(any(), {1, 0})); break;
        case 2: pool.push_back(any() + g.reduce(any(), ReductionMode::max, {below(2)})); break;
        case 3: pool.push_back(tanh(any())); break;
        case 4: pool.push_back(any() - any() * 0.5); break;
        case 5: pool.push_back(g.softmax(any())); break;
        default: pool.push_back(any() * 0.5 + any()); break;
      }
    }
    const auto computed = static_cast<int>(pool.size()) - inputs;
    for (int i = 0; i < std::min(computed, 1 + below(inputs)); ++i) {
      const std::string name = "y" + std::to_string(i);
      const Value value = pool[pool.size() - 1 - static_cast<std::size_t>(i)];
      if (value.tensor().strides != Dims{n, 1}) continue;
      g.output(name, value);
      pairs.emplace_back(name, "x" + std::to_string(i));
    }
    if (pairs.empty()) {
      g.output("y", pool[0] + pool[1]);
      pairs.emplace_back("y", "x0");
    }
    return g;
  }
};

TEST(InPlace, RandomGraphsAgreeWithTheOracle) {
  const int count = support::short_tests() ? 100 : 600;
  int direct = 0, copied = 0, wrong_without_proof = 0;
  for (int seed = 0; seed < count; ++seed) {
    InPlace pairs;
    const Graph g = Random{std::mt19937(static_cast<unsigned>(seed))}.make(pairs);
    ASSERT_EQ(run_shared(g, {.fuse = seed % 3 != 0, .in_place = pairs}, pairs), "")
        << "seed " << seed << "\n"
        << g.to_text();
    const std::string text = explanation(g, pairs);
    direct += text.find("are written in place") != std::string::npos ? 1 : 0;
    copied += text.find("is copied last") != std::string::npos ? 1 : 0;
    // A planner that skips the proof: it is not told that memory is shared.
    if (seed < 300) wrong_without_proof += run_shared(g, {}, pairs).empty() ? 0 : 1;
  }
  EXPECT_GT(direct, count / 10);
  EXPECT_GT(copied, count / 10);
  EXPECT_GT(wrong_without_proof, 20);
}

}  // namespace
}  // namespace ashlar

// Graphs with very many nodes, tensors without elements, and tensors too large for any memory.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>

#include "support/problem.hpp"

namespace ashlar::stress {
namespace {

using support::check_plan;

double seconds_to_compile(const Graph& graph) {
  const auto start = std::chrono::steady_clock::now();
  compile(graph, Device::cpu());
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  fmt::print("{}: {} nodes compiled in {:.2f} s\n", graph.name(), graph.nodes().size(), seconds);
  return seconds;
}

// Quadratic algorithms with a large constant exceed this.
constexpr double kMaxSeconds = 30;
constexpr int kNodes = 2000;

TEST(HugeGraph, PointwiseChain) {
  Graph g("pointwise_chain");
  Value x = g.input("x", {4, 5}, f32);
  const Value other = g.input("b", {1, 5}, f32);
  for (int i = 0; i < kNodes; ++i) x = i % 2 == 0 ? x + other : relu(x * 0.5);
  g.output("y", x);
  EXPECT_LT(seconds_to_compile(g), kMaxSeconds);
  EXPECT_EQ(check_plan(g), "");
}

TEST(HugeGraph, MatmulChain) {
  Graph g("matmul_chain");
  Value x = g.input("x", {3, 4}, f32);
  const Value w = g.input("w", {4, 4}, f32);
  for (int i = 0; i < kNodes / 2; ++i) x = sigmoid(g.matmul(x, w));
  g.output("y", x);
  EXPECT_LT(seconds_to_compile(g), kMaxSeconds);
  EXPECT_EQ(check_plan(g), "");
}

TEST(HugeGraph, ManyReadersOfOneTensor) {
  Graph g("many_readers");
  const Value x = g.input("x", {2, 3}, f32);
  const Value root = exp(x);
  std::vector<Value> parts;
  for (int i = 0; i < kNodes; ++i) parts.push_back(root * (1.0 + 0x1p-10 * i));
  g.output("y", g.concat(parts, 0));
  EXPECT_LT(seconds_to_compile(g), kMaxSeconds);
  EXPECT_EQ(check_plan(g), "");
}

TEST(HugeGraph, ManyOutputs) {
  Graph g("many_outputs");
  Value x = g.input("x", {2, 3}, f32);
  for (int i = 0; i < 300; ++i) {
    x = g.softmax(x + 1.0);
    g.output(fmt::format("y{}", i), x);
  }
  EXPECT_LT(seconds_to_compile(g), kMaxSeconds);
  EXPECT_EQ(check_plan(g), "");
}

Graph empty_network(std::int64_t batch, std::int64_t rows) {
  Graph g("empty_network");
  const Value x = g.input("x", {batch, 3, 8, 8}, f32);
  const Value y = relu(g.conv(x, g.input("w", {4, 3, 3, 3}, f32), {.padding = {1, 1}}));
  const Value pooled = g.resample(y, {.mode = ResampleMode::maxpool, .window = {2, 2}});
  const Value flat = g.reshape(pooled, {batch, 64});
  g.output("logits", g.matmul(flat, g.input("projection", {64, 5}, f32)));
  g.output("total", g.reduce(flat, ReductionMode::add, {0}));
  g.output("dw", g.conv_backward_filter(x, y, {.padding = {1, 1}}, {.dims = {4, 3, 3, 3}}));
  const Value q = g.input("q", {batch, 2, rows, 4}, f32), k = g.input("k", {batch, 2, 0, 4}, f32);
  const auto [o, stats] = g.attention(q, k, k, {}, {}, true);
  g.output("o", o);
  g.output("stats", stats);
  g.output("normed", g.norm(flat).y);
  g.output("weights", g.softmax(g.reshape(o, {batch * 2, rows * 4})));
  g.output("flags", pointwise(PointwiseMode::cmp_gt, flat, flat * 2.0));
  return g;
}

TEST(NoElements, EveryKindOfOperation) {
  for (const auto& [batch, rows] : {std::pair(0, 3), std::pair(2, 0), std::pair(2, 3)})
    for (bool fuse : {true, false}) {
      const Graph graph = empty_network(batch, rows);
      EXPECT_EQ(check_plan(graph, {.fuse = fuse}), "") << batch << ", " << rows;
      EXPECT_EQ(check_plan(graph, {.workspace_limit = 0, .guard = true}), "");
    }
}

TEST(NoElements, NeedNoMemory) {
  Graph g;
  const Value x = g.input("x", {0, 4}, f32);
  g.output("y", relu(x));
  const Plan plan = compile(g, Device::cpu());
  EXPECT_NO_THROW(plan.run({{"x", nullptr}, {"y", nullptr}}));
}

// Tensors far beyond 2^31 elements; their memory is never touched.
constexpr std::int64_t kGroupsPerTile = std::int64_t{1} << 17;  // squared: 2^34
constexpr std::int64_t kLong = std::int64_t{1} << 34;

Graph huge_matmul(DType dtype) {
  Graph g("matmul");
  g.output("y", relu(g.matmul(g.input("a", {kGroupsPerTile, kGroupsPerTile}, dtype),
                              g.input("b", {kGroupsPerTile, 64}, dtype))));
  return g;
}

Graph huge_vectors(DType dtype) {
  Graph g("vectors");
  const Value x = g.input("x", {2, kLong}, dtype);
  g.output("y", g.softmax(x * 2.0));
  g.output("z", g.norm(x, {.axes = {1}}).y);
  g.output("sum", g.reduce(x, ReductionMode::add, {1}));
  g.output("turned", g.transpose(x, {1, 0}));
  g.output("part", g.slice(x, {0, 5}, {2, kLong}, {1, 3}));
  g.output("joined", g.concat(std::array{x, x}, 1));
  g.output("flags", pointwise(PointwiseMode::cmp_gt, x, x * 0.5));
  return g;
}

Graph huge_images(DType dtype) {
  Graph g("images");
  const Value x = g.input("x", {64, 8, kGroupsPerTile, 4096}, dtype, channels_last);
  const Value w = g.input("w", {16, 8, 3, 3}, dtype);
  const Value y = g.conv(x, w, {.padding = {1, 1}});
  g.output("y", y);
  g.output("pooled", g.resample(y, {.mode = ResampleMode::maxpool, .window = {2, 2}}));
  g.output("normed", g.norm(y, {.mode = NormMode::batch}).y);
  g.output("dw", g.conv_backward_filter(x, y, {.padding = {1, 1}}, {.dims = {16, 8, 3, 3}}));
  return g;
}

Graph huge_attention(DType dtype) {
  Graph g("attention");
  const Value q = g.input("q", {16, 16, kGroupsPerTile * 8, 64}, dtype);
  const auto [o, stats] = g.attention(q, q, q, {.right_bound = 0}, {}, true);
  g.output("o", o);
  g.output("stats", stats);
  g.output("dq", g.attention_backward(q, q, q, o, q, stats, {.right_bound = 0}).dq);
  g.output("drawn",
           g.rng({kGroupsPerTile, kGroupsPerTile}, {.distribution = RngDistribution::normal}));
  return g;
}

TEST(PastTwoToThe31, CompilesAndExplains) {
  for (DType dtype : {f32, f16, f64})
    for (const auto& make : {huge_matmul, huge_vectors, huge_images, huge_attention}) {
      const Graph graph = make(dtype);
      for (bool fuse : {true, false}) {
        const std::string which = fmt::format("{} in {}", graph.name(), to_string(dtype));
        try {
          const Plan plan = compile(graph, Device::cpu(), {.fuse = fuse});
          EXPECT_GE(plan.workspace_size(), 0) << which;
          EXPECT_FALSE(plan.explain().empty()) << which;
        } catch (const std::exception& error) {
          ADD_FAILURE() << which << ": " << error.what();
        }
        EXPECT_NO_THROW(explain(graph, Device::named("h200"), {.fuse = fuse})) << which;
        try {  // the plan's own memory may not be available
          const Plan plan = compile(graph, Device::cpu(), {.workspace_limit = 0, .fuse = fuse});
          EXPECT_EQ(plan.workspace_size(), 0) << which;
        } catch (const Error& error) {
          EXPECT_TRUE(error.code() == ErrorCode::out_of_memory ||
                      error.code() == ErrorCode::size_overflow)
              << which << ": " << error.what();
        }
      }
    }
}

TEST(PastTwoToThe63, IsRefusedWithASentence) {
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const auto code_of = [](const auto& work) {
    try {
      work();
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::internal;
  };
  EXPECT_EQ(code_of([&] { Graph().input("x", {most, 2}, f32); }), ErrorCode::size_overflow);
  EXPECT_EQ(code_of([&] { Graph().input("x", {most}, f32); }), ErrorCode::size_overflow);
  EXPECT_EQ(code_of([&] {
              Graph().input("x", {2, 2}, f32, Dims{most, 1});
            }),
            ErrorCode::size_overflow);
  EXPECT_EQ(code_of([&] {
              Graph g;
              const Value a = g.input("a", {std::int64_t{1} << 40, 1}, f32);
              const Value b = g.input("b", {1, std::int64_t{1} << 40}, f32);
              g.matmul(a, b);
            }),
            ErrorCode::size_overflow);
  EXPECT_EQ(code_of([&] {
              Graph g;
              const Value a = g.input("a", {std::int64_t{1} << 40, 1}, f32);
              const Value b = g.input("b", {1, std::int64_t{1} << 40}, f32);
              pointwise(PointwiseMode::add, a, b);
            }),
            ErrorCode::size_overflow);
}

}  // namespace
}  // namespace ashlar::stress

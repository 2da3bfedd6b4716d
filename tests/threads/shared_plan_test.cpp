// One plan run by many threads at once, each with its own outputs and workspace; and compilation
// from many threads. Races show under ThreadSanitizer.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <barrier>
#include <thread>

#include "support/problem.hpp"

namespace ashlar {
namespace {

using support::Problem;

constexpr int kThreads = 8;
constexpr int kRuns = 20;

Graph convolution_block() {
  Graph g("convolution_block");
  const Value x = g.input("x", {2, 6, 9, 9}, f32, channels_last);
  const Value w = g.input("w", {8, 6, 3, 3}, f32);
  const Value bias = g.input("bias", {1, 8, 1, 1}, f32);
  const Value y = relu(g.conv(x, w, {.padding = {1, 1}}) + bias);
  const Value pooled = g.resample(y, {.mode = ResampleMode::maxpool, .window = {3, 3}});
  g.output("pooled", pooled);
  g.output("mean", g.reduce(y, ReductionMode::avg, {2, 3}));
  return g;
}

Graph attention_block() {
  Graph g("attention_block");
  const Value q = g.input("q", {2, 4, 17, 8}, f32), k = g.input("k", {2, 2, 19, 8}, f32);
  const Value v = g.input("v", {2, 2, 19, 8}, f32);
  const auto [o, stats] = g.attention(q, k, v, {.right_bound = 0}, {}, true);
  const Value flat = g.reshape(o, {8, 17 * 8});
  const Value scale = g.input("scale", {1, 17 * 8}, f32);
  g.output("y", g.norm(flat, {.mode = NormMode::layer}, {.scale = scale}).y);
  g.output("stats", stats);
  g.output("weights", g.softmax(flat, {.axis = 0}));
  return g;
}

Graph matmul_chain() {
  Graph g("matmul_chain");
  const Value a = g.input("a", {33, 40}, f32), b = g.input("b", {40, 29}, f32);
  const Value c = g.input("c", {29, 35}, bf16);
  g.output("y", g.matmul(gelu(g.matmul(a, b)), cast(c, f32)));
  return g;
}

// Eight results share a byte: threads of one run must not lose each other's bits.
Graph packed_booleans() {
  Graph g("packed_booleans");
  const Value a = g.input("a", {37, 43}, f32), b = g.input("b", {1, 43}, f32);
  const Value above = pointwise(PointwiseMode::cmp_gt, a, b);
  g.output("above", above, {.layout = Layout(Dims{1, 37})});
  g.output("both", pointwise(PointwiseMode::logical_and, above,
                             pointwise(PointwiseMode::cmp_lt, a, b * 2.0)));
  g.output("drawn", g.rng({1009}, {.distribution = RngDistribution::bernoulli, .probability = 0.3},
                          {.dtype = boolean}));
  return g;
}

std::vector<Graph> all_graphs() {
  std::vector<Graph> graphs;
  graphs.push_back(convolution_block());
  graphs.push_back(attention_block());
  graphs.push_back(matmul_chain());
  graphs.push_back(packed_booleans());
  return graphs;
}

// Every thread has its own input seed, so that results swapped between threads show.
void run_from_many_threads(const Graph& graph, const CompileOptions& options) {
  const Plan plan = compile(graph, Device::cpu(), options);
  std::vector<Problem> problems;
  for (int t = 0; t < kThreads; ++t)
    problems.emplace_back(graph, static_cast<std::uint64_t>(100 + t / 2));
  std::array<std::string, kThreads> wrong;
  std::array<std::vector<std::byte>, kThreads> bits;
  std::barrier start(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      const auto own = static_cast<std::size_t>(t);
      start.arrive_and_wait();
      try {
        for (int i = 0; i < kRuns && wrong[own].empty(); ++i) wrong[own] = problems[own].run(plan);
      } catch (const std::exception& error) {
        wrong[own] = error.what();
      }
      bits[own] = problems[own].memory().output_bytes();
    });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t t = 0; t < kThreads; ++t) {
    EXPECT_EQ(wrong[t], "") << graph.name() << ", thread " << t;
    if (plan.notes().deterministic && t % 2 == 1) {
      EXPECT_EQ(bits[t], bits[t - 1]) << graph.name() << ": threads with equal inputs differ";
    }
  }
}

TEST(SharedPlan, RunsInManyThreads) {
  for (const Graph& graph : all_graphs()) run_from_many_threads(graph, {});
}

TEST(SharedPlan, RunsInManyThreadsWithoutWorkspace) {
  for (const Graph& graph : all_graphs()) run_from_many_threads(graph, {.workspace_limit = 0});
}

TEST(SharedPlan, RunsInManyThreadsOneRegionPerOperation) {
  for (const Graph& graph : all_graphs())
    run_from_many_threads(graph, {.workspace_limit = 0, .fuse = false});
}

TEST(SharedPlan, RunsInManyThreadsOnTheReference) {
  for (const Graph& graph : all_graphs()) run_from_many_threads(graph, {.reference_only = true});
}

// More threads than the plan has workspaces: the rest wait for a free one.
TEST(SharedPlan, MoreThreadsThanSlots) {
  const Graph graph = matmul_chain();
  const Plan plan = compile(graph, Device::cpu(), {.workspace_limit = 0, .fuse = false});
  ASSERT_EQ(plan.workspace_size(), 0);
  ASSERT_GT(plan.owned_bytes(), 0);
  constexpr int kMany = 80;
  Problem problem(graph, 3);
  ASSERT_EQ(problem.run(plan), "");
  const TensorId y = graph.find_tensor("y");
  const auto bytes = static_cast<std::size_t>(byte_size(graph.tensor(y)));
  std::vector<std::vector<std::byte>> outputs(kMany, std::vector<std::byte>(bytes));
  std::barrier start(kMany);
  std::vector<std::thread> threads;
  for (int t = 0; t < kMany; ++t)
    threads.emplace_back([&, t] {
      Binding binding = plan.binding();
      for (const char* name : {"a", "b", "c"})
        binding.set(name, problem.memory().data(graph.find_tensor(name)));
      binding.set("y", outputs[static_cast<std::size_t>(t)].data());
      start.arrive_and_wait();
      plan.run(binding);
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<std::byte>& output : outputs) EXPECT_EQ(output, outputs[0]);
}

TEST(Compile, DifferentGraphsAtOnce) {
  const std::vector<Graph> graphs = all_graphs();
  std::array<std::string, kThreads> wrong;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      const auto own = static_cast<std::size_t>(t);
      for (int i = 0; i < 6 && wrong[own].empty(); ++i) {
        const Graph& graph = graphs[(own + static_cast<std::size_t>(i)) % graphs.size()];
        wrong[own] = support::check_plan(graph, {.fuse = i % 2 == 0});
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& message : wrong) EXPECT_EQ(message, "");
}

// Building, saving and loading share nothing between threads either.
TEST(Compile, GraphsBuiltAndSavedAtOnce) {
  std::atomic<int> equal = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      const Plan plan = compile(convolution_block(), Device::cpu());
      const Plan loaded = Plan::from_json(plan.to_json());
      equal += loaded.explain().empty() ? 0 : loaded.to_json() == plan.to_json();
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(equal, kThreads);
}

}  // namespace
}  // namespace ashlar

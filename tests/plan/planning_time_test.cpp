// Planning takes time in proportion to the number of nodes.
#include <gtest/gtest.h>

#include <chrono>

#include "api/backends.hpp"
#include "support/gpt_graph.hpp"

namespace ashlar {
namespace {

// The least of a few runs: other processes only add to it.
double planning_seconds(const Graph& graph, const Device& device) {
  double least = 1e30;
  for (int run = 0; run < 3; ++run) {
    const auto start = std::chrono::steady_clock::now();
    build_plan(graph, device.props(), {}, nullptr, false);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    least = std::min(least, took.count());
  }
  return least;
}

TEST(PlanningTime, GrowsLinearly) {
  for (const char* name : {"cpu", "h200"}) {
    const Device device = Device::named(name);
    const Graph small = support::gpt_graph({.layers = 120}),
                large = support::gpt_graph({.layers = 480});
    const double few = planning_seconds(small, device), many = planning_seconds(large, device);
    std::printf("planning %zu nodes for %s: %.3f s, %zu nodes: %.3f s\n", small.nodes().size(),
                name, few, large.nodes().size(), many);
    // Quadratic time would be 16 times as long.
    EXPECT_LT(many, 8 * few) << "4 times the nodes on " << name;
  }
}

// Convolutions with statistics behind them and a prologue in front: the planner prices alternatives
// of every layer.
Graph convolutions(std::int64_t layers) {
  Graph g("convolutions");
  Value x = g.input("x", {8, 64, 28, 28}, bf16, channels_last);
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const auto name = [&](const char* role) { return role + std::to_string(layer); };
    const auto channels = [&](const char* role) { return g.input(name(role), {1, 64, 1, 1}, f32); };
    const Value w = g.input(name("w"), {64, 64, 3, 3}, bf16, channels_last);
    const Value y = g.conv(x, w, {.padding = {1, 1}});
    g.output(name("sum"), g.reduce(y, ReductionMode::add, {0, 2, 3}, {.dtype = f32}));
    g.output(name("squares"), g.reduce(y * y, ReductionMode::add, {0, 2, 3}, {.dtype = f32}));
    x = relu(y * channels("scale") + channels("bias"));
  }
  g.output("y", x);
  return g;
}

TEST(PlanningTime, GrowsLinearlyWithAlternatives) {
  const Device device = Device::named("h200");
  const Graph small = convolutions(300), large = convolutions(1200);
  const double few = planning_seconds(small, device), many = planning_seconds(large, device);
  std::printf("planning %zu nodes: %.3f s, %zu nodes: %.3f s\n", small.nodes().size(), few,
              large.nodes().size(), many);
  EXPECT_LT(many, 8 * few) << "4 times the nodes";
}

}  // namespace
}  // namespace ashlar

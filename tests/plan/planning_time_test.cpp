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

}  // namespace
}  // namespace ashlar

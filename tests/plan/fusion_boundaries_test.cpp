// The reasons for fusion boundaries.
#include <gtest/gtest.h>

#include <ashlar/ashlar.hpp>

#include "plan/partition.hpp"

namespace ashlar {
namespace {

std::vector<std::string> reasons_of(const Graph& g, const FusionLimits& limits = {}) {
  const LoweredGraph lowered = lower(g, true);
  std::vector<std::string> reasons;
  for (const FusionBoundary& one :
       fusion_boundaries(lowered, std::vector(lowered.graph.nodes().size(), limits)))
    reasons.push_back(lowered.graph.tensor(one.value).name + ": " + one.reason);
  return reasons;
}
using Reasons = std::vector<std::string>;

Value square_product(Graph& g, Value a) { return g.matmul(a, g.input("b", {4, 4}, f32)); }

TEST(FusionBoundaries, NoneInsideOneRegion) {
  Graph g;
  g.output("y", relu(square_product(g, g.input("a", {4, 4}, f32))));
  EXPECT_TRUE(reasons_of(g).empty());
}

TEST(FusionBoundaries, ReasonAfterGemm) {
  Graph g;
  const Value c = square_product(g, g.input("a", {4, 4}, f32));
  g.output("y", relu(g.slice(c, {0, 0}, {2, 4}, {1, 1})));
  const Reasons reasons = reasons_of(g);
  ASSERT_EQ(reasons.size(), 1u);
  EXPECT_TRUE(reasons[0].ends_with(": it is read through a view")) << reasons[0];
}

TEST(FusionBoundaries, ReasonForDifferentShape) {
  Graph g;
  const Value c = g.matmul(g.input("a", {1, 4}, f32), g.input("b", {4, 4}, f32));
  g.output("y", c + g.input("rows", {4, 4}, f32));
  ASSERT_EQ(reasons_of(g).size(), 1u);
  EXPECT_TRUE(reasons_of(g)[0].ends_with(": the result has a different shape"));
}

TEST(FusionBoundaries, ReasonBeforeGemm) {
  Graph g;
  const Value a = relu(g.input("x", {4, 4}, f32));
  g.output("a", a);
  g.output("c", square_product(g, a));
  EXPECT_EQ(reasons_of(g), Reasons{"a: it is also an output"});
}

TEST(FusionBoundaries, ReasonForDependentOperand) {
  Graph g;
  const Value a = g.input("a", {4, 4}, f32), b = g.input("b", {4, 4}, f32), c = g.matmul(a, b);
  g.output("y", c + g.matmul(c, b));
  ASSERT_EQ(reasons_of(g).size(), 1u);
  EXPECT_TRUE(reasons_of(g)[0].ends_with(": another operand depends on it"));
}

TEST(FusionBoundaries, ReportThePlannersReason) {
  Graph g;
  g.output("y", relu(square_product(g, g.input("a", {4, 4}, f32))));
  const Reasons reasons =
      reasons_of(g, {.prologue = false, .epilogue = false, .reason = "no engine does"});
  ASSERT_EQ(reasons.size(), 1u);
  EXPECT_TRUE(reasons[0].ends_with(": no engine does"));
}

TEST(FusionBoundaries, AreExplained) {
  Graph g;
  const Value a = relu(g.input("x", {4, 4}, f32));
  g.output("a", a);
  g.output("c", square_product(g, a));
  const std::string text = compile(g, Device::cpu()).explain();
  EXPECT_NE(text.find("  boundary  with region 1, 'a': it is also an output\n"), std::string::npos)
      << text;
}

}  // namespace
}  // namespace ashlar

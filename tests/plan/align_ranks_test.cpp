// Broadcasting across ranks ends in lowering: engines see operands of equal rank.
#include <gtest/gtest.h>

#include <vector>

#include "plan/lowered.hpp"
#include "support/problem.hpp"

namespace ashlar {
namespace {

Graph across_ranks() {
  Graph g("ranks");
  const Value x = g.input("x", {8, 1, 6}, f32), b = g.input("b", {7, 1}, f32);
  const Value sum = (x + b) * g.scalar("factor", f32, 1);
  g.output("y", relu(sum) - g.constant(0.5));
  g.output("z", g.input("row", {6}, f16) + sum);
  return g;
}

TEST(AlignRanks, LeavesOperandsOfEqualRank) {
  LoweredGraph lowered{across_ranks(), {}, {}};
  align_ranks(lowered);
  int reshapes = 0;
  for (const Node& node : lowered.graph.nodes()) {
    if (std::holds_alternative<Reshape>(node.op)) ++reshapes;
    if (!std::holds_alternative<Pointwise>(node.op)) continue;
    for (const TensorId id : node.inputs)
      EXPECT_EQ(id == kNoTensor ? 3 : lowered.graph.tensor(id).dims.rank(), 3) << node.name;
  }
  EXPECT_EQ(reshapes, 2);  // of b and row: a scalar and a constant change their dims
  EXPECT_EQ(lowered.notes, std::vector<std::string>{"aligned the rank of 4 operand(s)"});
}

TEST(AlignRanks, LeavesEqualRanksAlone) {
  Graph g;
  g.output("y", g.input("x", {2, 3}, f32) + g.input("b", {1, 3}, f32));
  LoweredGraph lowered{g.clone(), {}, {}};
  align_ranks(lowered);
  EXPECT_EQ(lowered.graph.to_text(), g.to_text());
  EXPECT_TRUE(lowered.notes.empty());
}

TEST(AlignRanks, ReshapesAreViews) {
  const Graph g = across_ranks();
  const LoweredGraph lowered = lower(g, true);
  for (const Node& node : lowered.graph.nodes())
    EXPECT_TRUE(std::holds_alternative<Pointwise>(node.op)) << node.name;
  EXPECT_EQ(compile(g, Device::cpu()).region_count(), 1);
}

TEST(AlignRanks, PlansAgreeWithTheOracle) {
  const Graph g = across_ranks();
  for (const bool fuse : {true, false})
    for (const bool reference_only : {true, false}) {
      support::Problem problem(g, 3);
      EXPECT_EQ(
          problem.run(compile(g, Device::cpu(), {.fuse = fuse, .reference_only = reference_only})),
          "");
    }
}

}  // namespace
}  // namespace ashlar

// Pointwise operations behind a reshape or transpose of a GEMM result are fused into the GEMM's
// epilogue.
#include <gtest/gtest.h>

#include <ashlar/ashlar.hpp>

#include "plan/partition.hpp"

namespace ashlar {
namespace {

std::vector<Region> fused_regions(const Graph& g) {
  const LoweredGraph lowered = lower(g, true);
  return partition(lowered, std::vector<FusionLimits>(lowered.graph.nodes().size()));
}

// A matmul with a 6 x 4 result.
Value matmul_of_rows(Graph& g, DType dtype = bf16) {
  return g.matmul(g.input("a", {6, 8}, dtype), g.input("b", {8, 4}, dtype));
}

TEST(MoveReshapes, FusesEpilogueOfLinearLayer) {
  Graph g;
  const Value rows = g.reshape(matmul_of_rows(g), {2, 3, 4});
  const Value sum = rows + g.input("bias", {1, 1, 4}, bf16);
  const Value half = sum * g.constant(0.5, f32, 3) * g.scalar("gain", f32, 3);
  g.output("y", relu(half + g.input("residual", {2, 3, 4}, bf16)));
  const auto regions = fused_regions(g);
  ASSERT_EQ(regions.size(), 1u);
  ASSERT_TRUE(regions[0].anchor_as<Matmul>());
  const PointwiseProgram& end = regions[0].epilogue;
  EXPECT_EQ(end.space, (Dims{6, 4}));
  ASSERT_EQ(end.stores.size(), 1u);
  EXPECT_EQ(end.stores[0].view.strides, (Dims{4, 1}));
}

TEST(MoveReshapes, StoresValuesReadThroughTheReshape) {
  Graph g;
  const Value rows = g.reshape(matmul_of_rows(g), {2, 3, 4});
  g.output("y", relu(rows));
  g.output("sum", g.reduce(rows, ReductionMode::add, {1}));
  const auto regions = fused_regions(g);
  ASSERT_EQ(regions.size(), 2u);
  EXPECT_EQ(regions[0].epilogue.stores.size(), 2u);
}

TEST(MoveReshapes, LeavesOperandsThatSplitAnAxis) {
  Graph g;
  const Value rows = g.reshape(matmul_of_rows(g), {2, 3, 4});
  g.output("y", rows + g.input("of_two", {2, 1, 4}, bf16));
  EXPECT_EQ(fused_regions(g).size(), 2u);
}

TEST(MoveReshapes, LeavesOperandsThatWouldBeCopied) {
  Graph g;
  const Value rows = g.reshape(matmul_of_rows(g), {2, 3, 4});
  const Value turned = g.input("turned", {2, 3, 4}, bf16, Dims{4, 8, 1});
  g.output("y", rows + turned);
  EXPECT_EQ(fused_regions(g).size(), 2u);
}

TEST(MoveReshapes, WritesAttentionHeadsTransposed) {
  Graph g;
  const Value heads = g.transpose(g.reshape(matmul_of_rows(g), {2, 3, 2, 2}), {0, 2, 1, 3});
  g.output("y", heads * g.input("of_head", {1, 2, 1, 2}, bf16));
  const auto regions = fused_regions(g);
  ASSERT_EQ(regions.size(), 2u);  // rows of a head have no uniform stride
  EXPECT_EQ(regions[0].nodes.size() + regions[1].nodes.size(), 3u);
}

TEST(MoveReshapes, MovesTransposeBehindBias) {
  Graph g;
  const Value turned = g.transpose(matmul_of_rows(g), {1, 0});
  g.output("y", turned + g.input("bias", {4, 1}, bf16));
  const auto regions = fused_regions(g);
  ASSERT_EQ(regions.size(), 1u);
  EXPECT_EQ(regions[0].epilogue.stores[0].view.strides, (Dims{1, 6}));
}

TEST(MoveReshapes, ConvertsBeforeMoving) {
  Graph g;
  g.output("y", g.reshape(matmul_of_rows(g, f32), {2, 12}, {.dtype = bf16}));
  const auto regions = fused_regions(g);
  ASSERT_EQ(regions.size(), 1u);
  EXPECT_EQ(regions[0].epilogue.stores[0].view.dtype, bf16);
}

}  // namespace
}  // namespace ashlar

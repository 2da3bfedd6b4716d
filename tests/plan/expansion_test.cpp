// Expansions and the composites made of them cost no kernel and no memory in front of an operation
// that can broadcast.
#include <gtest/gtest.h>

#include <ashlar/composites.hpp>

#include "plan/lowered.hpp"
#include "plan/partition.hpp"
#include "support/problem.hpp"

namespace ashlar {
namespace {

// The plan has so many kernels and no memory between them, and agrees with the oracle.
void expect_kernels(const Graph& g, int kernels, std::int64_t workspace = 0) {
  const Plan plan = compile(g, Device::cpu());
  EXPECT_EQ(plan.region_count(), kernels) << plan.explain();
  EXPECT_EQ(plan.workspace_size(), workspace) << plan.explain();
  for (const bool fuse : {true, false}) {
    support::Problem problem(g, 3);
    EXPECT_EQ(problem.run(compile(g, Device::cpu(), {.fuse = fuse})), "");
  }
}

TEST(Expansion, OfAnOperandOfAPointwiseOperationIsItsBroadcast) {
  Graph g;
  const Value x = g.input("x", {4, 1}, f32), b = g.input("b", {4, 6}, f32);
  g.output("y", expand(x, {4, 6}) * b);
  const LoweredGraph lowered = lower(g, true);
  ASSERT_EQ(lowered.graph.nodes().size(), 1u);
  EXPECT_EQ(lowered.graph.nodes()[0].inputs[0], x.id());
  expect_kernels(g, 1);
}

// Without another operand of the result's dims, the view has strides of 0.
TEST(Expansion, IsAViewForOtherReaders) {
  Graph g;
  const Value x = g.input("x", {4, 1}, f32);
  g.output("y", relu(expand(x, {3, 4, 6})));
  g.output("sum", g.reduce(expand(x, {4, 5}), ReductionMode::add, {1}));
  const LoweredGraph lowered = lower(g, true);
  for (const Node& node : lowered.graph.nodes()) {
    const View& view = lowered.views[static_cast<std::size_t>(node.inputs[0])];
    EXPECT_EQ(view.tensor, x.id());
    EXPECT_EQ(view.strides[view.strides.rank() - 1], 0);
  }
  expect_kernels(g, 2);
}

TEST(Expansion, OfAGemmOperandCostsNothing) {
  Graph g;
  const Value a = expand(g.input("a", {8, 32}, f32), {3, 8, 32});
  const Value b = g.input("b", {3, 32, 16}, f32);
  g.output("c", g.matmul(a, b));
  EXPECT_EQ(compile(g, Device::cpu()).region_count(), 1);
  support::Problem problem(g, 3);
  EXPECT_EQ(problem.run(compile(g, Device::cpu())), "");
}

TEST(Expansion, ThatWidensIsReadInTheNarrowType) {
  Graph g;
  const Value x = g.input("x", {4, 1}, f16);
  const Value wide =
      g.pointwise(PointwiseMode::identity, std::array{x}, {}, {.dtype = f32, .dims = {4, 6}});
  g.output("y", g.softmax(wide));
  const LoweredGraph lowered = lower(g, true);
  ASSERT_EQ(lowered.graph.nodes().size(), 1u);
  const View& view = lowered.views[static_cast<std::size_t>(lowered.graph.nodes()[0].inputs[0])];
  EXPECT_EQ(view.tensor, x.id());
  EXPECT_EQ(view.dtype, f16);
  expect_kernels(g, 1);
}

TEST(Expansion, OfTheLargestElementDoesNotHideSoftmax) {
  Graph g;
  const Value x = g.input("x", {8, 16}, f32);
  const Value weights = exp(x - expand(g.reduce(x, ReductionMode::max, {1}), {8, 16}));
  g.output("y", weights / expand(g.reduce(weights, ReductionMode::add, {1}), {8, 16}));
  const LoweredGraph lowered = lower(g, true);
  ASSERT_EQ(lowered.graph.nodes().size(), 1u);
  EXPECT_TRUE(std::holds_alternative<SoftmaxForward>(lowered.graph.nodes()[0].op));
}

TEST(Expansion, ToAnOutputIsOneCopy) {
  Graph g;
  g.output("y", expand(g.input("x", {5, 1, 3}, i64), {2, 5, 4, 3}));
  g.output("z", full(g, {7, 3}, 2.5, f16));
  expect_kernels(g, 2);
}

TEST(Composites, FuseIntoTheirReader) {
  Graph g;
  const Value x = g.input("x", {6, 9}, f32);
  const Value positions = iota(g, {6, 9}, 1, f32, 0.5, 2.0);
  g.output("y", tril(x * positions, 1) + full(g, {6, 9}, 3.0));
  expect_kernels(g, 1);
}

TEST(Composites, OneHotOfIndicesFusesIntoAReduction) {
  Graph g;
  const Value hot = one_hot(g.input("index", {12}, i32), 5);
  g.output("histogram", g.reduce(hot, ReductionMode::add, {0}));
  expect_kernels(g, 1);
}

TEST(Composites, TriangleFusesBehindAGemm) {
  Graph g;
  const Value c = g.matmul(g.input("a", {2, 8, 16}, f32), g.input("b", {2, 16, 8}, f32));
  g.output("y", triu(c));
  EXPECT_EQ(compile(g, Device::cpu()).region_count(), 1);
  support::Problem problem(g, 3);
  EXPECT_EQ(problem.run(compile(g, Device::cpu())), "");
}

TEST(Composites, NeedAGraphAndAMatrix) {
  Graph g;
  EXPECT_THROW(expand({}, {2}), Error);
  EXPECT_THROW(one_hot({}, 3), Error);
  EXPECT_THROW(tril(g.input("x", {4}, f32)), Error);
}

}  // namespace
}  // namespace ashlar

// The problem that is passed to cuBLASLt. Its results are tested by the loop over the engine table,
// on machines with a GPU and the library.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cuda/cublaslt/lt_problem.hpp"
#include "plan/partition.hpp"

namespace ashlar::cuda {
namespace {

Support describe_graph(const Graph& graph, LtProblem& problem) {
  // The largest region: a plan would separate what no fast engine supports.
  const LoweredGraph lowered = lower(graph, true);
  const std::vector<Region> regions =
      partition(lowered, std::vector<FusionLimits>(lowered.graph.nodes().size()));
  EXPECT_EQ(regions.size(), 1u);
  return describe(regions[0], problem);
}

struct StoredMatrix {
  Dims dims, strides;
};
Graph product(const StoredMatrix& a, const StoredMatrix& b, const StoredMatrix& c,
              DType dtype = f16) {
  Graph g("product");
  const Value x = g.input("a", a.dims, dtype, Layout(a.strides)),
              y = g.input("b", b.dims, dtype, Layout(b.strides));
  g.output("c", g.matmul(x, y), {.dtype = dtype, .layout = Layout(c.strides)});
  return g;
}

TEST(CublasLt, RowMajorIsTheTransposedGemm) {
  LtProblem problem;
  const Graph graph =
      product({{2, 3, 5}, {15, 5, 1}}, {{2, 5, 7}, {35, 7, 1}}, {{2, 3, 7}, {21, 7, 1}});
  const Support support = describe_graph(graph, problem);
  ASSERT_TRUE(support) << support.reason();
  EXPECT_EQ(problem.batches, 2);
  // d' (7 x 3) = b' (7 x 5) * a' (5 x 3), all column-major.
  EXPECT_EQ(problem.a.rows, 7);
  EXPECT_EQ(problem.a.columns, 5);
  EXPECT_EQ(problem.a.column_distance, 7);
  EXPECT_FALSE(problem.a.transposed);
  EXPECT_EQ(problem.a.batch_distance, 35);
  EXPECT_EQ(problem.b.rows, 5);
  EXPECT_EQ(problem.b.columns, 3);
  EXPECT_FALSE(problem.b.transposed);
  EXPECT_EQ(problem.d.rows, 7);
  EXPECT_EQ(problem.d.columns, 3);
  EXPECT_EQ(problem.d.batch_distance, 21);
  EXPECT_EQ(problem.inputs, LtType::f16);
  EXPECT_EQ(problem.compute, LtCompute::f32);
}

TEST(CublasLt, TransposedAndSharedOperands) {
  LtProblem problem;
  // a is column-major, b is shared by all batches, the result has padded rows.
  const Graph graph =
      product({{4, 3, 5}, {15, 1, 3}}, {{1, 5, 7}, {35, 7, 1}}, {{4, 3, 7}, {30, 10, 1}});
  const Support support = describe_graph(graph, problem);
  ASSERT_TRUE(support) << support.reason();
  EXPECT_TRUE(problem.b.transposed);
  EXPECT_EQ(problem.b.rows, 3);
  EXPECT_EQ(problem.b.columns, 5);
  EXPECT_EQ(problem.a.batch_distance, 0);
  EXPECT_EQ(problem.d.column_distance, 10);
  EXPECT_EQ(problem.d.batch_distance, 30);
}

TEST(CublasLt, ColumnMajorResultIsNotTransposed) {
  LtProblem problem;
  const Graph graph =
      product({{1, 3, 5}, {15, 5, 1}}, {{1, 5, 7}, {35, 7, 1}}, {{1, 3, 7}, {21, 1, 3}}, f64);
  const Support support = describe_graph(graph, problem);
  ASSERT_TRUE(support) << support.reason();
  EXPECT_TRUE(problem.a.transposed);
  EXPECT_TRUE(problem.b.transposed);
  EXPECT_EQ(problem.d.rows, 3);
  EXPECT_EQ(problem.compute, LtCompute::f64);
}

TEST(CublasLt, ABiasPerColumn) {
  Graph g("biased");
  const Value a = g.input("a", {1, 3, 8}, f32), b = g.input("b", {1, 8, 4}, f32);
  g.output("c", g.matmul(a, b) + g.input("bias", {1, 1, 4}, f32));
  LtProblem problem;
  const Support support = describe_graph(g, problem);
  ASSERT_TRUE(support) << support.reason();
  EXPECT_TRUE(problem.bias.present());
}

TEST(CublasLt, RefusesWithReasons) {
  const auto reason = [](const Graph& graph) {
    LtProblem problem;
    return describe_graph(graph, problem).reason();
  };
  const auto two = [](const auto& finish) {
    Graph g("two");
    const Value a = g.input("a", {1, 3, 8}, f32), b = g.input("b", {1, 8, 4}, f32);
    g.output("c", finish(g, a, b));
    return g;
  };
  using testing::HasSubstr;
  EXPECT_THAT(reason(two([](Graph& g, Value a, Value b) { return relu(g.matmul(a, b)); })),
              HasSubstr("not a single bias"));
  EXPECT_THAT(reason(two([](Graph& g, Value a, Value b) {
                return g.matmul(a, b) + g.input("bias", {1, 3, 1}, f32);
              })),
              HasSubstr("one element per column"));
  EXPECT_THAT(reason(two([](Graph& g, Value a, Value b) { return g.matmul(relu(a), b); })),
              HasSubstr("prologue is fused"));
  EXPECT_THAT(
      reason(product({{1, 3, 5}, {30, 10, 2}}, {{1, 5, 7}, {35, 7, 1}}, {{1, 3, 7}, {21, 7, 1}})),
      HasSubstr("neither rows nor columns"));
  EXPECT_THAT(reason(product({{2, 2, 3, 5}, {100, 15, 5, 1}}, {{1, 1, 5, 7}, {35, 35, 7, 1}},
                             {{2, 2, 3, 7}, {42, 21, 7, 1}})),
              HasSubstr("not uniform"));
  EXPECT_THAT(reason(product({{1, 3, 5}, {15, 5, 1}}, {{1, 5, 7}, {35, 7, 1}},
                             {{1, 3, 7}, {21, 7, 1}}, e4m3)),
              HasSubstr("both must be"));
}

}  // namespace
}  // namespace ashlar::cuda

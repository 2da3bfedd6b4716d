// Matmul through the packed GEMM, real and complex.
#include "cpu/plan_check.hpp"

namespace ashlar::cpu {
namespace {

void check(const Dims& a_dims, const Dims& b_dims, DType dtype, int transposes = 0,
           CompileOptions options = {}) {
  SCOPED_TRACE(testing::Message() << to_string(a_dims) << " x " << to_string(b_dims) << " "
                                  << to_string(dtype) << " transposes " << transposes);
  Graph graph;
  Value a = graph.input("a", a_dims, dtype, transposes & 1 ? transposed(a_dims) : row_major);
  Value b = graph.input("b", b_dims, dtype, transposes & 2 ? transposed(b_dims) : row_major);
  Value c = graph.matmul(a, b);
  const Layout layout = transposes & 4 ? transposed(c.dims()) : row_major;
  graph.output("c", c, {.layout = layout});
  PlanCheck plan(std::move(graph));
  plan.expect_agrees("cpu.matmul_gemm", options);
}

TEST(MatmulGemm, ShapesAndTransposes) {
  for (int transposes = 0; transposes < 8; ++transposes) {
    check({3, 17, 31}, {3, 31, 23}, f32, transposes);
    check({1, 129}, {129, 1}, f32, transposes);
    check({67, 5}, {5, 41}, f64, transposes);
  }
  check({1, 300}, {300, 270}, f32);
  check({270, 300}, {300, 1}, f32);
  check({130, 515}, {515, 67}, f32);
}

TEST(MatmulGemm, DtypesAndBroadcastBatches) {
  for (DType dtype : {f64, f32, f16, bf16, e4m3, e5m2}) {
    check({2, 1, 9, 13}, {1, 3, 13, 11}, dtype);
    check({4, 20, 40}, {1, 40, 33}, dtype);
  }
}

TEST(MatmulGemm, ZeroExtents) {
  check({4, 0}, {0, 5}, f32);
  check({0, 4}, {4, 5}, f32);
  check({0, 3, 4}, {0, 4, 5}, f32);
}

TEST(MatmulGemm, LengthsPerBatch) {
  for (const Layout& layout : {row_major, Layout(Dims{60 * 70, 1, 60})}) {
    Graph graph;
    Value lengths[] = {graph.input("m", {3, 1, 1}, i32), graph.input("n", {3, 1, 1}, i64),
                       graph.input("k", {3, 1, 1}, i32)};
    Matmul op;
    op.padding_value = -2.5;
    Value c = graph.apply(op,
                          {{Matmul::a, graph.input("a", {3, 60, 150}, f32)},
                           {Matmul::b, graph.input("b", {1, 150, 70}, f32)},
                           {Matmul::m_override, lengths[0]},
                           {Matmul::n_override, lengths[1]},
                           {Matmul::k_override, lengths[2]}},
                          {Matmul::c});
    graph.output("c", c + graph.input("bias", {1, 1, 70}, f32), {.layout = layout});
    PlanCheck plan(std::move(graph));
    plan.set("m", {60, 17, 1000});
    plan.set("n", {69, 70, 3});
    plan.set("k", {149, -5, 130});
    plan.expect_agrees("cpu.matmul_gemm");
  }
}

TEST(MatmulGemm, WithoutScratch) {
  CompileOptions options;
  options.workspace_limit = 0;
  check({2, 57, 300}, {2, 300, 130}, f32, 0, options);
}

TEST(MatmulGemm, FusedOnAllSides) {
  Graph graph;
  Value a = graph.input("a", {2, 37, 64}, f16);
  Value b = graph.input("b", {1, 64, 50}, bf16);
  Value scale = graph.input("scale", {1, 1, 64}, f32);
  Value bias = graph.input("bias", {1, 1, 50}, f32);
  Value residual = graph.input("residual", {2, 37, 50}, f32);
  Value sum = graph.matmul(relu(a) * scale, -b) + bias;
  graph.output("pre", sum, {.dtype = f32});
  graph.output("y", gelu(sum) + residual, {.dtype = f16});
  PlanCheck plan(std::move(graph));
  plan.expect_agrees("cpu.matmul_gemm");
}

// A unary activation comes last, on rows in L1; panels are partial at every edge.
TEST(MatmulGemm, ActivationPostOps) {
  for (const DType dtype : {f32, f64})
    for (const int transposes : {0, 1, 2, 4})
      for (const Dims& shape : {Dims{7, 5, 3}, Dims{15, 300, 131}}) {
        SCOPED_TRACE(testing::Message() << to_string(shape) << " " << to_string(dtype)
                                        << " transposes " << transposes);
        const std::int64_t m = shape[0], k = shape[1], n = shape[2];
        const auto layout = [&](int bit, const Dims& dims) -> Layout {
          return transposes & bit ? Layout(transposed(dims)) : Layout(row_major);
        };
        Graph graph;
        Value a = graph.input("a", {m, k}, dtype, layout(1, {m, k}));
        Value b = graph.input("b", {k, n}, dtype, layout(2, {k, n}));
        Value bias = graph.input("bias", {1, n}, dtype);
        Value residual = graph.input("residual", {m, n}, dtype);
        Value sum = graph.matmul(a, b) + bias;
        graph.output("gelu", gelu(sum), {.layout = layout(4, {m, n})});
        graph.output("swish", swish(relu(graph.matmul(a, b) + residual)));
        graph.output("alone", tanh(graph.matmul(a, b)));
        graph.output("more", gelu(graph.matmul(a, b)) + residual);
        PlanCheck plan(std::move(graph));
        plan.fill("a", -0.2, 0.2);
        plan.expect_agrees("cpu.matmul_gemm");
      }
}

// Beyond the K where i32 could overflow, sums are still exact.
TEST(MatmulGemm, LargeKOfNarrowIntegers) {
  Graph graph;
  const Value a = graph.input("a", {2, 40001}, u8), b = graph.input("b", {40001, 3}, u8);
  graph.output("c", graph.matmul(a, b, {.dtype = i64, .compute = i64}));
  PlanCheck plan(std::move(graph));
  plan.fill("a", 200, 255);
  plan.fill("b", 200, 255);
  plan.expect_agrees("cpu.matmul_gemm");
}

TEST(MatmulGemm, WeightsOfAnotherType) {
  for (const auto& [left, right] : {std::pair(f16, i4), std::pair(bf16, i8), std::pair(f32, e2m1),
                                    std::pair(f32, i4), std::pair(i8, f16)}) {
    Graph graph;
    const Value a = graph.input("a", {65, 300}, left), b = graph.input("b", {300, 130}, right);
    graph.output("c", graph.matmul(a, b, {.dtype = f32}));
    PlanCheck plan(std::move(graph));
    plan.expect_agrees("cpu.matmul_gemm");
  }
}

// A per-column scale, as manually quantised weights have it, is applied while packing.
TEST(MatmulGemm, ScaledWeights) {
  Graph graph;
  const Value a = graph.input("a", {17, 100}, bf16), b = graph.input("b", {100, 40}, i4);
  const Value scale = graph.input("scale", {1, 40}, f32);
  const Value weights =
      graph.pointwise(PointwiseMode::mul, std::array{b, scale}, {}, {.dtype = f32});
  graph.output("c", graph.matmul(a, weights, {.dtype = f32}));
  PlanCheck plan(std::move(graph));
  plan.expect_agrees("cpu.matmul_gemm");
}

TEST(MatmulComplex, ShapesAndTransposes) {
  for (int transposes = 0; transposes < 8; ++transposes)
    for (DType dtype : {complex_f32, complex_f64}) {
      Graph graph;
      const Dims a_dims = {3, 35, 61}, b_dims = {1, 61, 27};
      const Value a =
          graph.input("a", a_dims, dtype, transposes & 1 ? transposed(a_dims) : row_major);
      const Value b =
          graph.input("b", b_dims, dtype, transposes & 2 ? transposed(b_dims) : row_major);
      const Layout layout = transposes & 4 ? transposed({3, 35, 27}) : row_major;
      graph.output("c", graph.matmul(a, b, {.layout = layout}));
      PlanCheck plan(std::move(graph));
      plan.expect_agrees("cpu.matmul_complex");
    }
}

TEST(MatmulComplex, LargeAndWithoutScratch) {
  for (const bool scratch : {true, false}) {
    Graph graph;
    const Value a = graph.input("a", {150, 515}, complex_f32);
    const Value b = graph.input("b", {515, 67}, complex_f32);
    graph.output("c", graph.matmul(a, b));
    PlanCheck plan(std::move(graph));
    CompileOptions options;
    if (!scratch) options.workspace_limit = 0;
    plan.expect_agrees("cpu.matmul_complex", options);
  }
}

}  // namespace
}  // namespace ashlar::cpu

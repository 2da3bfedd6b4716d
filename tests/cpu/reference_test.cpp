// The reference engine on fused regions.
#include <functional>

#include "cpu/plan_check.hpp"

namespace ashlar::cpu {
namespace {

// Every case runs fused and operation by operation.
void check(const std::function<void(Graph&)>& describe) {
  for (bool fuse : {true, false}) {
    Graph graph;
    describe(graph);
    PlanCheck plan(std::move(graph));
    plan.expect_agrees("cpu.reference", {.fuse = fuse, .reference_only = true});
  }
}

TEST(ReferenceEngine, FusedPrologueAndEpilogueWithSeveralStores) {
  check([](Graph& graph) {
    Value a = graph.input("a", {4, 6}, f16), b = graph.input("b", {6, 5}, f16),
          c = graph.input("c", {1, 5}, f32);
    Value product = graph.matmul(a * 2.0 + 1.0, b);
    graph.output("product", product);
    graph.output("y", relu(product + c));
  });
}

TEST(ReferenceEngine, RoundsWhereMeaningDemands) {
  check([](Graph& graph) {
    Value x = graph.input("x", {5, 9}, f32);
    graph.output("y", cast(cast(x * 3.0, e4m3), f32) * 2.0);
    graph.output("flags", pointwise(PointwiseMode::cmp_gt, x, x * x), {.dtype = boolean});
  });
}

TEST(ReferenceEngine, ViewsThatStartInsideAByte) {
  check([](Graph& graph) {
    Value x = graph.input("x", {4, 9}, boolean), y = graph.input("y", {4, 3}, f32);
    Value part = graph.slice(x, {1, 5}, {4, 8});
    graph.output("z", select(part, graph.slice(y, {1, 0}, {4, 3}), graph.slice(y, {0, 0}, {3, 3})));
  });
}

TEST(ReferenceEngine, TransposedOperandsAndCoordinates) {
  check([](Graph& graph) {
    Value x = graph.input("x", {3, 4, 5}, f32);
    Value t = graph.transpose(x, {2, 0, 1});
    Pointwise index;
    index.axis = 1;
    const Value operand[] = {t};
    graph.output("y", t + graph.pointwise(PointwiseMode::gen_index, operand, index));
  });
}

TEST(ReferenceEngine, NormsWithManyOutputs) {
  check([](Graph& graph) {
    Value x = graph.input("x", {3, 4, 6}, f32);
    NormForward op;
    op.mode = NormMode::instance;
    const NormResults results = graph.norm(x + 1.0, op);
    graph.output("y", gelu(results.y));
    graph.output("mean", results.mean);
    graph.output("inv", results.inv_variance);
  });
}

TEST(ReferenceEngine, Interpolation) {
  for (ResampleMode mode : {ResampleMode::nearest, ResampleMode::bilinear})
    check([mode](Graph& graph) {
      ResampleAttributes op;
      op.mode = mode;
      op.size = {7, 9};
      Value x = graph.input("x", {2, 3, 4, 5}, f32);
      graph.output("y", relu(graph.resample(x, op)));
    });
}

TEST(ReferenceEngine, ConcatOfManyInputs) {
  check([](Graph& graph) {
    std::vector<Value> parts;
    for (int i = 0; i < 70; ++i) parts.push_back(graph.input("x" + std::to_string(i), {2, 1}, f32));
    graph.output("y", graph.concat(parts, 1));
  });
}

}  // namespace
}  // namespace ashlar::cpu

// What a plan is, as values.
#include <ashlar/inspect.hpp>

#include <gtest/gtest.h>

#include <set>

namespace ashlar {
namespace {

// norm -> matmul + gelu: two regions.
Graph norm_and_product() {
  Graph g("norm_and_product");
  const Value x = g.input("x", {1, 32, 64}, f32);
  const Value normed = g.norm(x, {.phase = NormPhase::inference},
                              {.scale = g.input("scale", {1, 1, 64}, f32),
                               .bias = g.input("shift", {1, 1, 64}, f32)})
                           .y;
  g.output("y", gelu(g.matmul(normed, g.input("w", {1, 64, 64}, f32))));
  return g;
}

TEST(Inspection, PartitionsTheNodes) {
  const Inspection whole = inspect(norm_and_product(), Device::cpu());
  ASSERT_EQ(whole.regions.size(), 2U);
  std::set<NodeId> nodes;
  for (const RegionInspection& region : whole.regions) {
    for (const NodeId id : region.nodes) EXPECT_TRUE(nodes.insert(id).second);
    EXPECT_GT(region.flops, 0);
    EXPECT_GT(region.bytes, 0);
    EXPECT_GT(region.seconds, 0);
    EXPECT_EQ(region.method, ComputeMethod::simd);
    EXPECT_NEAR(region.arithmetic_seconds, region.flops / region.peak_flops, 1e-15);
    int chosen = 0;
    for (const EngineAttempt& attempt : region.attempts) chosen += attempt.is_chosen;
    EXPECT_EQ(chosen, 1);
  }
  EXPECT_EQ(nodes.size(), whole.graph.nodes().size());
  EXPECT_EQ(whole.storage.size(), whole.graph.tensors().size());
  EXPECT_EQ(whole.to_text(), explain(norm_and_product(), Device::cpu()));
}

TEST(Inspection, SaysHowEnginesCompute) {
  const auto method = [](DType dtype, std::int64_t rows, const CompileOptions& options = {}) {
    Graph g;
    g.output("c", g.matmul(g.input("a", {rows, 512}, dtype), g.input("b", {512, 512}, dtype)));
    return inspect(g, Device::named("h200"), options).regions.at(0).method;
  };
  EXPECT_EQ(method(bf16, 512), ComputeMethod::tensor_cores);
  EXPECT_EQ(method(i32, 512), ComputeMethod::thread_per_output);
  EXPECT_EQ(method(bf16, 4, {.engine = "cuda.gemm_skinny"}), ComputeMethod::tensor_cores);
  EXPECT_EQ(method(f32, 4, {.engine = "cuda.gemm_skinny"}), ComputeMethod::cuda_cores);
  EXPECT_EQ(method(bf16, 512, {.reference_only = true, .engine = "cuda.host"}),
            ComputeMethod::reference);
}

// A causal mask hides nearly half of the scores; the roofline does not count them.
TEST(Inspection, MaskedScoresDoNotCount) {
  const auto flops = [](std::optional<std::int64_t> right_bound) {
    Graph g;
    const Dims dims = {1, 2, 64, 32};
    AttentionAttributes attributes;
    attributes.right_bound = right_bound;
    g.output("o", g.attention(g.input("q", dims, f32), g.input("k", dims, f32),
                              g.input("v", dims, f32), attributes)
                      .first);
    return inspect(g, Device::cpu()).regions.at(0).flops;
  };
  EXPECT_DOUBLE_EQ(flops(0) / flops({}), 65.0 / 128);
}

TEST(Inspection, RegionsAreTimedOneByOne) {
  const Graph g = norm_and_product();
  const Plan plan = compile(g, Device::cpu(), {.workspace_limit = 0});
  std::vector<std::vector<float>> memory;
  std::vector<void*> pointers;
  for (const TensorId id : plan.bound_tensors()) {
    memory.emplace_back(static_cast<std::size_t>(byte_size(g.tensor(id))) / sizeof(float), 1.0F);
    pointers.push_back(memory.back().data());
  }
  const std::vector<double> seconds = plan.region_seconds(pointers);
  ASSERT_EQ(seconds.size(), 2U);
  for (const double one : seconds) EXPECT_GT(one, 0);
}

}  // namespace
}  // namespace ashlar

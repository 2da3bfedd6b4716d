// Gradients of mixtures of experts on Hopper: weight gradients have an engine of their own, token
// gradients are GEMMs of moe_sm90.
#include <array>
#include <limits>
#include <optional>

#include "api/backends.hpp"
#include "cuda/engines/engines.hpp"
#include "engine_agrees.hpp"
#include "engine_compiles.hpp"
#include "gemm_graphs.hpp"

namespace ashlar::cuda {
namespace {

using Gradient = ExpertsGradientGraph;
using Ids = std::vector<std::string>;

// Six groups of three experts; the first group has no rows.
Gradient small_gradient(MoeMode mode, DType dtype = bf16) {
  return {.mode = mode,
          .rows = 150,
          .depth = 80,
          .columns = 72,
          .experts = 3,
          .groups = 6,
          .dtype = dtype};
}

// Groups without rows, of one row, of full K-blocks and of partial ones. Rows without an expert,
// and rows that contribute nothing, are NaN.
void set_routing(support::BoundMemory& memory, const Gradient& shape) {
  const auto set = [&](const char* name, const auto& value) {
    const TensorId id = memory.graph().find_tensor(name);
    if (id == kNoTensor) return;
    const Tensor& tensor = memory.graph().tensor(id);
    for (std::int64_t i = 0; i < number_count(tensor); ++i)
      if (const auto number = value(i))
        write_element(tensor, memory.data(id), i, static_cast<double>(*number));
  };
  using Number = std::optional<double>;
  const bool gathers = shape.mode == MoeMode::gather, scatters = shape.mode == MoeMode::scatter;
  const std::int64_t limit = shape.rows / shape.top_k;
  const auto goes_nowhere = [&](std::int64_t row) { return row % 50 == 49; };
  set("first", [&](std::int64_t g) -> Number {
    constexpr std::array kFirst = {5.0, 5.0, 6.0, 70.0, 70.0, 134.0};
    return kFirst.at(static_cast<std::size_t>(g) % kFirst.size());
  });
  set("index", [&](std::int64_t r) -> Number {
    return goes_nowhere(r) ? -1000.0 : static_cast<double>(r * 7 % limit);
  });
  set("ks", [&](std::int64_t r) -> Number { return static_cast<double>(r % shape.top_k); });
  const auto forget = [&](const char* name, std::int64_t columns) {
    set(name, [&](std::int64_t i) -> Number {
      const std::int64_t row = i / columns;
      const bool counts_not = row < 5 || ((gathers || scatters) && goes_nowhere(row));
      return counts_not ? Number(std::numeric_limits<double>::quiet_NaN()) : std::nullopt;
    });
  };
  if (!gathers) forget("token", shape.depth);
  if (!scatters) forget("doutput", shape.columns);
}

void expect_right(const Gradient& shape, bool all_configs = false) {
  expect_agrees(moe_wgrad_sm90_engine(), shape.graph(), all_configs, 5, support::Fill::plain,
                Device::named("cuda:0").props(), {},
                [&](support::BoundMemory& memory) { set_routing(memory, shape); });
}

Ids engines_of(const char* device, const Graph& graph) {
  Ids ids;
  for (const PlanData::Step& step :
       build_plan(graph, Device::named(device).props(), {}, nullptr, false)->steps)
    ids.emplace_back(step.choice.engine->id());
  return ids;
}

TEST(MoeWgradSm90Plans, BothGradientsRunOnTensorCores) {
  for (const DType dtype : {bf16, f16, f32})
    EXPECT_EQ(engines_of("h200", Gradient{.dtype = dtype}.graph()),
              (Ids{"cuda.moe_wgrad_sm90", "cuda.moe_sm90"}));
  EXPECT_EQ(engines_of("h200", Gradient{.of_tokens = false}.graph()), Ids{"cuda.moe_wgrad_sm90"});
  EXPECT_EQ(engines_of("h200", Gradient{.of_weights = false}.graph()), Ids{"cuda.moe_sm90"});
  EXPECT_EQ(engines_of("a100", Gradient{}.graph()), (Ids{"cuda.generic", "cuda.generic"}));
}
TEST(MoeWgradSm90Plans, RoutingIsInverted) {
  for (const MoeMode mode : {MoeMode::gather, MoeMode::scatter})
    EXPECT_EQ(engines_of("h200", Gradient{.mode = mode}.graph()),
              (Ids{"cuda.moe_wgrad_sm90", "cuda.pointwise", "cuda.moe_sm90"}));
}

// Every tile would run the prologue again.
TEST(MoeWgradSm90Plans, PrologueRunsOnce) {
  using Backward = MoeGroupedMatmulBackward;
  Graph g;
  const Value doutput = g.input("doutput", {1, 8192, 4096}, bf16);
  g.output("dweight", g.apply(Backward{},
                              {{Backward::first_token_offset, g.input("first", {8, 1, 1}, i32)},
                               {Backward::doutput, relu(doutput)},
                               {Backward::token, g.input("token", {1, 8192, 4096}, bf16)}},
                              {Backward::dweight}));
  EXPECT_EQ(engines_of("h200", g), (Ids{"cuda.pointwise", "cuda.moe_wgrad_sm90"}));
}

std::string refusal(const Graph& graph, const char* device = "h200") {
  const auto plan = build_plan(graph, Device::named(device).props(), {}, nullptr, false);
  return std::string(
      moe_wgrad_sm90_engine().supports(plan->steps[0].region, plan->device).reason());
}
Graph with_tokens(const Dims& dims, const Layout& layout) {
  using Backward = MoeGroupedMatmulBackward;
  Graph g;
  g.output("dweight", g.apply(Backward{},
                              {{Backward::first_token_offset, g.input("first", {2, 1, 1}, i32)},
                               {Backward::doutput, g.input("doutput", {1, dims[1], 64}, bf16)},
                               {Backward::token, g.input("token", dims, bf16, layout)}},
                              {Backward::dweight}));
  return g;
}
TEST(MoeWgradSm90Plans, RefusesTheUnsupported) {
  EXPECT_EQ(refusal(Gradient{.of_tokens = false}.graph()), "");
  EXPECT_EQ(refusal(Gradient{.dtype = f64, .of_tokens = false}.graph()),
            "tensor cores do not multiply f64 by f64 with f64 accumulators");
  EXPECT_EQ(refusal(Gradient{.of_tokens = false}.graph(), "a100"),
            "requires sm_90a, the device is sm_80");
  EXPECT_EQ(refusal(with_tokens({1, 96, 64}, Dims{96 * 64, 1, 96})),
            "rows of an operand are not contiguous");
  EXPECT_EQ(refusal(with_tokens({1, 0, 64}, row_major)), "no elements");
  EXPECT_EQ(refusal(MatrixGraph{}.graph()),
            "not a backward grouped matmul of a mixture of experts");
}

class MoeWgradSm90 : public testing::Test {
 protected:
  void SetUp() override {
    if (!nvrtc().is_open) GTEST_SKIP() << nvrtc().reason;
  }
};

TEST_F(MoeWgradSm90, CompileWithoutSpills) {
  for (const MoeMode mode : {MoeMode::none, MoeMode::gather, MoeMode::scatter})
    expect_compiles(moe_wgrad_sm90_engine(), Gradient{.mode = mode}.graph(), {kHopper}, true, 0, 5);
  expect_compiles(moe_wgrad_sm90_engine(), Gradient{.dtype = f32}.graph(), {kHopper}, true, 0, 5);
}

class GpuMoeWgradSm90 : public testing::Test {
 protected:
  void SetUp() override {
    if (device_count() == 0) GTEST_SKIP() << driver().reason;
  }
};

// Full K-blocks are loaded by TMA, partial ones by threads.
TEST_F(GpuMoeWgradSm90, RowsInMemoryOrder) {
  expect_right(small_gradient(MoeMode::none), true);
  expect_right(small_gradient(MoeMode::none, f16));
  expect_right(small_gradient(MoeMode::none, f32));
}
TEST_F(GpuMoeWgradSm90, Gather) {
  expect_right(small_gradient(MoeMode::gather));
  expect_right(small_gradient(MoeMode::gather, f32));
}
TEST_F(GpuMoeWgradSm90, Scatter) {
  expect_right(small_gradient(MoeMode::scatter));
  expect_right(small_gradient(MoeMode::scatter, e4m3));
}
TEST_F(GpuMoeWgradSm90, OneGradientAlone) {
  Gradient of_weights = small_gradient(MoeMode::none);
  of_weights.of_tokens = false;
  expect_right(of_weights);
  for (const MoeMode mode : {MoeMode::none, MoeMode::gather, MoeMode::scatter}) {
    Gradient of_tokens = small_gradient(mode);
    of_tokens.of_weights = false;
    expect_agrees(moe_sm90_engine(), of_tokens.graph(), false, 5, support::Fill::plain,
                  Device::named("cuda:0").props(), {},
                  [&](support::BoundMemory& memory) { set_routing(memory, of_tokens); });
  }
}
// The gradient of column-major weights is computed transposed; K and columns that are not multiples
// of a vector.
TEST_F(GpuMoeWgradSm90, OtherLayouts) {
  Gradient by_column = small_gradient(MoeMode::gather);
  by_column.by_column = true;
  expect_right(by_column);
  Gradient odd = small_gradient(MoeMode::none);
  odd.depth = 75;
  odd.columns = 35;
  expect_right(odd);
}
// More tiles than SMs, and all rows of one token: more than are listed.
TEST_F(GpuMoeWgradSm90, ManyTilesAndOneToken) {
  DeviceProps device = Device::named("cuda:0").props();
  device.compute_units = 2;
  Gradient shape = small_gradient(MoeMode::gather);
  shape.columns = 200;
  for (const CudaEngine* engine : {&moe_wgrad_sm90_engine(), &moe_sm90_engine()})
    expect_agrees(*engine, shape.graph(), false, 5, support::Fill::plain, device, {},
                  [&](support::BoundMemory& memory) {
                    const TensorId index = memory.graph().find_tensor("index");
                    const Tensor& tensor = memory.graph().tensor(index);
                    for (std::int64_t row = 0; row < shape.rows; ++row)
                      write_element(tensor, memory.data(index), row, 3);
                  });
}

}  // namespace
}  // namespace ashlar::cuda

// Grouped GEMM of a mixture of experts on Hopper: kernels compile without spills, and small ones
// agree with the oracle.
#include <array>

#include "api/backends.hpp"
#include "cuda/engines/engines.hpp"
#include "engine_agrees.hpp"
#include "engine_compiles.hpp"

namespace ashlar::cuda {
namespace {

using Op = MoeGroupedMatmul;

enum class Weights : std::uint8_t {
  plain,   // of the tokens' type
  scaled,  // i8, a scale per column
  mxfp4,   // e2m1, an e8m0 scale per 32 k
  int4,    // i4, a bf16 scale per 128 k
  awq,     // u4, a bf16 scale and a u4 zero point per 32 k
};

struct MixtureShape {
  MoeMode mode = MoeMode::none;
  std::int64_t tokens = 4096, rows = 8192, depth = 2048, columns = 1024, experts = 8, top_k = 2;
  DType dtype = bf16;
  Weights weights = Weights::plain;
  std::int64_t places = 0;  // output rows of the scatter; 0: as many as rows
};
constexpr MixtureShape kSmallMixture = {
    .tokens = 90, .rows = 150, .depth = 80, .columns = 72, .experts = 3, .top_k = 2};

MixtureShape small(MoeMode mode, DType dtype = bf16, Weights weights = Weights::plain) {
  MixtureShape shape = kSmallMixture;
  shape.mode = mode;
  shape.dtype = dtype;
  shape.weights = weights;
  if (mode != MoeMode::gather) shape.tokens = shape.rows;
  return shape;
}

Value weights_of(Graph& g, const MixtureShape& shape) {
  const auto by_column = [&](const char* name, std::int64_t depth, DType dtype) {
    return g.input(name, {shape.experts, depth, shape.columns}, dtype,
                   Layout(Dims{depth * shape.columns, 1, depth}));
  };
  const auto dequantized = [&](DType stored, DType scale, std::int64_t block,
                               bool has_zeros = false) {
    BlockScaleDequantize op;
    op.block_size = {1, block, 1};
    const std::int64_t blocks = (shape.depth + block - 1) / block;
    return g.apply(op,
                   {{BlockScaleDequantize::x, by_column("weight", shape.depth, stored)},
                    {BlockScaleDequantize::scale, by_column("scale", blocks, scale)},
                    {BlockScaleDequantize::zero_point,
                     has_zeros ? by_column("zero", blocks, stored) : Value()}},
                   {BlockScaleDequantize::y}, {.dtype = shape.dtype})[BlockScaleDequantize::y];
  };
  switch (shape.weights) {
    case Weights::plain: return by_column("weight", shape.depth, shape.dtype);
    case Weights::scaled:
      return g.pointwise(
          PointwiseMode::mul,
          std::array{by_column("weight", shape.depth, i8), by_column("scale", 1, f32)}, {},
          {.dtype = shape.dtype});
    case Weights::mxfp4: return dequantized(e2m1, e8m0, 32);
    case Weights::int4: return dequantized(i4, bf16, 128);
    case Weights::awq: return dequantized(u4, bf16, 32, true);
  }
  return {};
}

Graph experts(const MixtureShape& shape) {
  Graph g;
  Op op;
  op.mode = shape.mode;
  op.top_k = shape.top_k;
  const std::int64_t rows = shape.mode == MoeMode::gather ? shape.rows : shape.tokens;
  std::vector<Operand<Op>> operands = {
      {Op::first_token_offset, g.input("first", {shape.experts, 1, 1}, i32)},
      {Op::token, g.input("token", {1, shape.tokens, shape.depth}, shape.dtype)},
      {Op::weight, weights_of(g, shape)}};
  if (shape.mode != MoeMode::none)
    operands.push_back({Op::token_index, g.input("index", {1, rows, 1}, i32)});
  if (shape.mode == MoeMode::scatter)
    operands.push_back({Op::token_ks, g.input("ks", {1, rows, 1}, i32)});
  ashlar::OutputSpec spec;
  if (shape.places > 0) spec.dims = {1, shape.places, shape.columns};
  const Value output = g.apply(op, operands, {Op::output}, spec);
  g.output("y", relu(output));
  return g;
}

// Rows without an expert, an expert without rows, duplicate indices and indices out of range.
void set_routing(support::BoundMemory& memory, const MixtureShape& shape) {
  const auto set = [&](const char* name, const auto& value) {
    const TensorId id = memory.graph().find_tensor(name);
    if (id == kNoTensor) return;
    const Tensor& tensor = memory.graph().tensor(id);
    for (std::int64_t i = 0; i < number_count(tensor); ++i)
      write_element(tensor, memory.data(id), i, static_cast<double>(value(i)));
  };
  const std::int64_t rows = shape.mode == MoeMode::gather ? shape.rows : shape.tokens;
  const std::int64_t places = shape.places > 0 ? shape.places : shape.tokens;
  const std::int64_t limit = shape.mode == MoeMode::gather ? shape.tokens : places / shape.top_k;
  set("first", [&](std::int64_t e) { return e == 0 ? 5 : 60 + (e > 2 ? rows / 4 : 0); });
  set("index", [&](std::int64_t i) { return i * 7 % (limit + 1) - (i % 50 == 49 ? 1000 : 0); });
  set("ks", [&](std::int64_t i) { return i % shape.top_k; });
}

void expect_right(const MixtureShape& shape, bool all_configs = false,
                  const DeviceProps& device = Device::named("cuda:0").props()) {
  const Graph graph = experts(shape);
  const auto outline = build_plan(graph, device, {}, nullptr, false);
  ASSERT_EQ(outline->steps.size(), 1);
  const Region& region = outline->steps[0].region;
  const Support support = moe_sm90_engine().supports(region, device);
  ASSERT_TRUE(bool(support)) << support.reason();
  support::Problem problem(graph, 5, support::Fill::plain,
                           [&](support::BoundMemory& memory) { set_routing(memory, shape); });
  std::vector<Config> configs = moe_sm90_engine().configs(region, device);
  if (!all_configs) configs.resize(1);
  for (const Config& config : configs) {
    const std::vector<SavedChoice> choice = {{std::string(moe_sm90_engine().id()), config.knobs}};
    const auto plan = build_plan(graph, device, {.guard = true}, &choice, true);
    EXPECT_EQ(problem.run(*plan), "") << config.to_text();
    EXPECT_EQ(problem.compared(), problem.elements());
  }
}

TEST(MoeSm90Plans, DequantisationIsFusedIntoTheGemmWhereFaster) {
  const auto engines = [](const char* device, const MixtureShape& shape) {
    std::vector<std::string> ids;
    const auto plan = build_plan(experts(shape), Device::named(device).props(), {}, nullptr, false);
    for (const PlanData::Step& step : plan->steps) ids.emplace_back(step.choice.engine->id());
    return ids;
  };
  using Ids = std::vector<std::string>;
  for (const Weights weights : {Weights::mxfp4, Weights::int4})
    for (const MoeMode mode : {MoeMode::none, MoeMode::gather, MoeMode::scatter}) {
      const MixtureShape shape{.mode = mode,
                               .rows = 4096 * 8,
                               .depth = 4096,
                               .columns = 1536,
                               .experts = 64,
                               .weights = weights};
      EXPECT_EQ(engines("h200", shape), Ids{"cuda.moe_sm90"});
      EXPECT_EQ(engines("a100", shape), (Ids{"cuda.pointwise", "cuda.generic"}));
    }
  // Every row of tiles would dequantise all weights again with a program: their K has no whole
  // packets.
  EXPECT_EQ(engines("h200", {.tokens = 65536, .depth = 2040, .weights = Weights::mxfp4}),
            (Ids{"cuda.pointwise", "cuda.moe_sm90"}));
}
TEST(MoeSm90Plans, CpusDequantizeFirst) {
  for (const Weights weights : {Weights::mxfp4, Weights::int4}) {
    const MixtureShape shape = small(MoeMode::gather, bf16, weights);
    const Graph graph = experts(shape);
    support::Problem problem(graph, 5, support::Fill::plain,
                             [&](support::BoundMemory& memory) { set_routing(memory, shape); });
    const auto plan = build_plan(graph, Device::named("cpu").props(), {}, nullptr, true);
    EXPECT_EQ(plan->steps.size(), 2);
    EXPECT_EQ(problem.run(*plan), "");
  }
}

class MoeSm90 : public testing::Test {
 protected:
  void SetUp() override {
    if (!nvrtc().is_open) GTEST_SKIP() << nvrtc().reason;
  }
};

TEST_F(MoeSm90, CompileWithoutSpills) {
  for (const MoeMode mode : {MoeMode::none, MoeMode::gather, MoeMode::scatter})
    expect_compiles(moe_sm90_engine(), experts({.mode = mode}), {"sm_90a"});
  expect_compiles(moe_sm90_engine(), experts({.mode = MoeMode::gather, .weights = Weights::scaled}),
                  {"sm_90a"});
}
TEST_F(MoeSm90, DequantisationCompilesWithoutSpills) {
  for (const Weights weights : {Weights::mxfp4, Weights::int4})
    for (const MoeMode mode : {MoeMode::none, MoeMode::gather})
      expect_compiles(moe_sm90_engine(), experts({.mode = mode, .weights = weights}), {"sm_90a"},
                      true);
  expect_compiles(moe_sm90_engine(), experts({.weights = Weights::awq}), {"sm_90a"});
}

class GpuMoeSm90 : public testing::Test {
 protected:
  void SetUp() override {
    if (device_count() == 0) GTEST_SKIP() << driver().reason;
  }
};

TEST_F(GpuMoeSm90, RowsInMemoryOrder) {
  expect_right(small(MoeMode::none), true);
  expect_right(small(MoeMode::none, f32));
}
TEST_F(GpuMoeSm90, Gather) {
  expect_right(small(MoeMode::gather));
  expect_right(small(MoeMode::gather, bf16, Weights::scaled));
}
TEST_F(GpuMoeSm90, Scatter) {
  expect_right(small(MoeMode::scatter));
  expect_right(small(MoeMode::scatter, e4m3));
}
// Rows with the same output row are listed and added in order.
TEST_F(GpuMoeSm90, ScatterMoreRowsThanSlots) {
  for (const std::int64_t places : {60, 3}) {
    MixtureShape shape = small(MoeMode::scatter);
    shape.places = places;
    expect_right(shape, true);
  }
  MixtureShape many = small(MoeMode::scatter, f32);
  many.places = 100;
  many.columns = 70;
  expect_right(many);
}
// By half2 conversion where K has whole packets, otherwise by a program.
TEST_F(GpuMoeSm90, Dequantized) {
  for (const Weights weights : {Weights::mxfp4, Weights::int4})
    for (const MoeMode mode : {MoeMode::none, MoeMode::gather, MoeMode::scatter})
      for (const std::int64_t depth : {288, 80}) {
        MixtureShape shape = small(mode, bf16, weights);
        shape.depth = depth;
        expect_right(shape, depth == 288 && mode != MoeMode::scatter);
      }
}
TEST_F(GpuMoeSm90, DequantizedAboutZeroPoints) {
  for (const MoeMode mode : {MoeMode::none, MoeMode::gather})
    for (const std::int64_t depth : {288, 80}) {
      MixtureShape shape = small(mode, bf16, Weights::awq);
      shape.depth = depth;
      expect_right(shape);
    }
}
// More tiles than SMs: cp.async for the next tile, of another expert, are in flight while one is
// computed.
TEST_F(GpuMoeSm90, DequantizedConsecutiveTiles) {
  DeviceProps device = Device::named("cuda:0").props();
  device.compute_units = 2;
  for (const Weights weights : {Weights::mxfp4, Weights::int4}) {
    MixtureShape shape = small(MoeMode::gather, bf16, weights);
    shape.depth = 288;
    shape.columns = 200;
    expect_right(shape, true, device);
  }
}

}  // namespace
}  // namespace ashlar::cuda

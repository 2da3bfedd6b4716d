// Products of a mixture of experts on Hopper: kernels compile without spills, and small ones agree
// with the oracle.
#include <array>

#include "cuda/engines/engines.hpp"
#include "engine_agrees.hpp"
#include "engine_compiles.hpp"

namespace ashlar::cuda {
namespace {

using Op = MoeGroupedMatmul;

struct MixtureShape {
  MoeMode mode = MoeMode::none;
  std::int64_t tokens = 4096, rows = 8192, depth = 2048, columns = 1024, experts = 8, top_k = 2;
  DType dtype = bf16;
  bool scaled = false;  // weights of i8 times a scale
};
constexpr MixtureShape kSmallMixture = {
    .tokens = 90, .rows = 150, .depth = 80, .columns = 72, .experts = 3, .top_k = 2};

MixtureShape small(MoeMode mode, DType dtype = bf16, bool scaled = false) {
  MixtureShape shape = kSmallMixture;
  shape.mode = mode;
  shape.dtype = dtype;
  shape.scaled = scaled;
  if (mode != MoeMode::gather) shape.tokens = shape.rows;
  return shape;
}

Graph experts(const MixtureShape& shape) {
  Graph g;
  Op op;
  op.mode = shape.mode;
  op.top_k = shape.top_k;
  const std::int64_t rows = shape.mode == MoeMode::gather ? shape.rows : shape.tokens;
  std::vector<Operand> operands = {
      {Op::first_token_offset, g.input("first", {shape.experts, 1, 1}, i32)},
      {Op::token, g.input("token", {1, shape.tokens, shape.depth}, shape.dtype)}};
  const Dims weights = {shape.experts, shape.depth, shape.columns};
  const Layout by_column(Dims{shape.depth * shape.columns, 1, shape.depth});
  if (shape.scaled) {
    const Value scale = g.input("scale", {shape.experts, 1, shape.columns}, f32);
    operands.push_back(
        {Op::weight, g.pointwise(PointwiseMode::mul,
                                 std::array{g.input("weight", weights, i8, by_column), scale}, {},
                                 {.dtype = shape.dtype})});
  } else {
    operands.push_back({Op::weight, g.input("weight", weights, shape.dtype, by_column)});
  }
  if (shape.mode != MoeMode::none)
    operands.push_back({Op::token_index, g.input("index", {1, rows, 1}, i32)});
  if (shape.mode == MoeMode::scatter)
    operands.push_back({Op::token_ks, g.input("ks", {1, rows, 1}, i32)});
  const Value output = g.apply(op, operands, std::vector<Wanted>{Op::output})[0];
  g.output("y", relu(output));
  return g;
}

// Some rows of nobody's, an expert without rows, indices that come twice and that point nowhere.
void set_routing(support::BoundMemory& memory, const MixtureShape& shape) {
  const auto set = [&](const char* name, const auto& value) {
    const TensorId id = memory.graph().find_tensor(name);
    if (id == kNoTensor) return;
    const Tensor& tensor = memory.graph().tensor(id);
    for (std::int64_t i = 0; i < number_count(tensor); ++i)
      write_element(tensor, memory.data(id), i, static_cast<double>(value(i)));
  };
  const std::int64_t rows = shape.mode == MoeMode::gather ? shape.rows : shape.tokens;
  const std::int64_t limit =
      shape.mode == MoeMode::gather ? shape.tokens : shape.tokens / shape.top_k;
  set("first", [&](std::int64_t e) { return e == 0 ? 5 : 60 + (e > 2 ? rows / 4 : 0); });
  set("index", [&](std::int64_t i) { return i * 7 % (limit + 1) - (i % 50 == 49 ? 1000 : 0); });
  set("ks", [&](std::int64_t i) { return i % shape.top_k; });
}

void expect_right(const MixtureShape& shape, bool all_configs = false) {
  const Graph graph = experts(shape);
  const DeviceProps device = Device::named("cuda:0").props();
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

class MoeSm90 : public testing::Test {
 protected:
  void SetUp() override {
    if (!nvrtc().is_open) GTEST_SKIP() << nvrtc().reason;
  }
};

TEST_F(MoeSm90, CompileWithoutSpills) {
  for (const MoeMode mode : {MoeMode::none, MoeMode::gather, MoeMode::scatter})
    expect_compiles(moe_sm90_engine(), experts({.mode = mode}), {"sm_90a"});
  expect_compiles(moe_sm90_engine(), experts({.mode = MoeMode::gather, .scaled = true}),
                  {"sm_90a"});
}

class GpuMoeSm90 : public testing::Test {
 protected:
  void SetUp() override {
    if (device_count() == 0) GTEST_SKIP() << driver().reason;
  }
};

TEST_F(GpuMoeSm90, RowsInOrder) {
  expect_right(small(MoeMode::none), true);
  expect_right(small(MoeMode::none, f32));
}
TEST_F(GpuMoeSm90, Gather) {
  expect_right(small(MoeMode::gather));
  expect_right(small(MoeMode::gather, bf16, true));
}
TEST_F(GpuMoeSm90, Scatter) {
  expect_right(small(MoeMode::scatter));
  expect_right(small(MoeMode::scatter, e4m3));
}

}  // namespace
}  // namespace ashlar::cuda

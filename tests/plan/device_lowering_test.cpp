// Lowering asks the device's engines what to raise, expand or store joined.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "api/backends.hpp"
#include "support/gpt_graph.hpp"
#include "support/problem.hpp"

namespace ashlar {
namespace {

using support::GptShape;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

std::vector<std::string> engines_of(const PlanData& plan) {
  std::vector<std::string> ids;
  for (const PlanData::Step& step : plan.steps) ids.emplace_back(step.choice.engine->id());
  return ids;
}

TEST(DeviceLowering, GptBlockHasFewRegionsAndNoneIsNaive) {
  for (const bool composite : {false, true})
    for (const char* name : {"cpu", "h200", "a100", "rtx5090"}) {
      const Device device = Device::named(name);
      const auto plan = build_plan(support::gpt_graph({.composite_attention = composite}),
                                   device.props(), {}, nullptr, false);
      const std::size_t most = device.props().kind == DeviceKind::cpu ? 7 : 9;
      EXPECT_LE(plan->steps.size(), most) << name << (composite ? ", composite" : "");
      for (const std::string& engine : engines_of(*plan)) {
        EXPECT_NE(engine, "cuda.generic") << name;
        EXPECT_THAT(engine, Not(HasSubstr("reference"))) << name;
      }
    }
}

TEST(DeviceLowering, SmallBlockMatchesTheOracle) {
  for (const bool composite : {false, true}) {
    const GptShape shape{.layers = 2,
                         .batch = 2,
                         .sequence = 9,
                         .heads = 2,
                         .head_size = 8,
                         .dtype = f32,
                         .composite_attention = composite};
    EXPECT_EQ(support::check_plan(support::gpt_graph(shape)), "") << composite;
  }
}

// The CPU without its attention engines.
class BackendWithoutAttention final : public Backend {
 public:
  BackendWithoutAttention() {
    for (const Engine* engine : cpu_.engines())
      if (!engine->id().starts_with("cpu.attention")) engines_.push_back(engine);
  }
  EngineTable engines() const override { return engines_; }
  int owned_slots() const override { return cpu_.owned_slots(); }
  std::byte* allocate(const DeviceProps& d, std::int64_t bytes) const override {
    return cpu_.allocate(d, bytes);
  }
  void release(const DeviceProps& d, std::byte* memory, std::int64_t n) const noexcept override {
    cpu_.release(d, memory, n);
  }
  void upload(const DeviceProps& d, void* to, const void* from, std::int64_t n,
              void* stream) const override {
    cpu_.upload(d, to, from, n, stream);
  }
  void download(const DeviceProps& d, void* to, const void* from, std::int64_t n,
                void* stream) const override {
    cpu_.download(d, to, from, n, stream);
  }
  void enqueue_upload(const DeviceProps& d, void* to, std::span<const std::int32_t> words,
                      void* stream) const override {
    cpu_.enqueue_upload(d, to, words, stream);
  }
  void fill(const DeviceProps& d, void* to, std::byte value, std::int64_t n,
            void* stream) const override {
    cpu_.fill(d, to, value, n, stream);
  }
  void synchronize(const DeviceProps& d, void* stream) const override {
    cpu_.synchronize(d, stream);
  }
  std::unique_ptr<Marker> marker(const DeviceProps& d) const override { return cpu_.marker(d); }
  std::unique_ptr<Recording> recording(const DeviceProps& d,
                                       std::function<void(void*)> work) const override {
    return cpu_.recording(d, std::move(work));
  }

 private:
  const Backend& cpu_ = backend_for(DeviceKind::cpu);
  std::vector<const Engine*> engines_;
};

struct AttentionCase {
  const char* name;
  DType dtype = f32;
  std::int64_t key_heads = 4, rows = 6, columns = 9, bias_heads = 0;
  AttentionAttributes attributes = {};
  bool scale_tensor = false, stats = false;
  bool is_expanded = true;
};

Graph attention_graph(const AttentionCase& c) {
  using Op = AttentionForward;
  Graph g("attention");
  std::vector<Operand<Op>> operands = {
      {Op::q, g.input("q", {2, 4, c.rows, 8}, c.dtype)},
      {Op::k, g.input("k", {2, c.key_heads, c.columns, 8}, c.dtype)},
      {Op::v, g.input("v", {2, c.key_heads, c.columns, 5}, c.dtype)}};
  if (c.bias_heads > 0)
    operands.push_back({Op::bias, g.input("bias", {1, c.bias_heads, c.rows, c.columns}, c.dtype)});
  if (c.scale_tensor) operands.push_back({Op::scale_tensor, g.input("s", {1, 1, 1, 1}, f32)});
  if (c.attributes.dropout > 0) {
    operands.push_back({Op::dropout_seed, g.input("seed", {1, 1, 1, 1}, i64)});
    operands.push_back({Op::dropout_offset, g.input("offset", {1, 1, 1, 1}, i64)});
  }
  std::vector<Wanted<Op>> wanted = {Op::o};
  if (c.stats) wanted.push_back(Op::stats);
  const auto results = g.apply(Op{c.attributes}, operands, wanted);
  g.output("o", results[Op::o]);
  if (c.stats) g.output("stats", results[Op::stats]);
  return g;
}

const AttentionCase kAttentionCases[] = {
    {.name = "Plain"},
    {.name = "HalfPrecision", .dtype = bf16},
    {.name = "SharedKeys", .key_heads = 2, .stats = true},
    {.name = "Causal", .attributes = {.scale = 0.3, .right_bound = 0}, .stats = true},
    {.name = "CausalFromTheEnd",
     .attributes = {.right_bound = 0, .alignment = MaskAlignment::bottom_right}},
    {.name = "Window", .columns = 6, .attributes = {.left_bound = 3, .right_bound = 1}},
    {.name = "BiasOfEveryHead", .key_heads = 2, .bias_heads = 4, .scale_tensor = true},
    {.name = "BiasOfAllHeads", .dtype = f16, .key_heads = 1, .bias_heads = 1},
    {.name = "RowsWithoutKeys",
     .rows = 9,
     .columns = 6,
     .attributes = {.right_bound = 0, .alignment = MaskAlignment::bottom_right},
     .is_expanded = false},
    {.name = "BiasAndStatistics", .bias_heads = 4, .stats = true, .is_expanded = false},
    {.name = "Dropout", .attributes = {.dropout = 0.25}, .is_expanded = false},
    {.name = "SoftCap", .attributes = {.soft_cap = 5.0}, .is_expanded = false},
};
void PrintTo(const AttentionCase& c, std::ostream* out) { *out << c.name; }

class AttentionWithoutEngine : public testing::TestWithParam<AttentionCase> {};

TEST_P(AttentionWithoutEngine, IsExpandedWhereItCanBe) {
  const Graph graph = attention_graph(GetParam());
  const BackendWithoutAttention backend;
  const auto plan = build_plan(graph, backend, Device::cpu().props(), {}, nullptr, true);
  const auto notes = testing::AnyOf(Contains(HasSubstr("expanded attention_forward")));
  if (GetParam().is_expanded) {
    EXPECT_THAT(plan->lowered.notes, notes);
    EXPECT_THAT(engines_of(*plan), Not(Contains("cpu.reference")));
  } else {
    EXPECT_EQ(plan->steps.size(), 1u);
  }
  support::Problem problem(graph, 3);
  EXPECT_EQ(problem.run(*plan), "");
}

INSTANTIATE_TEST_SUITE_P(Case, AttentionWithoutEngine, testing::ValuesIn(kAttentionCases),
                         [](const auto& one) { return one.param.name; });

// A bias of -inf masks keys. A row of nothing else is 0, not NaN, as in an attention engine.
TEST(DeviceLowering, RowsHiddenByABiasAreZero) {
  for (const std::int64_t key_heads : {4, 2}) {
    const Graph graph =
        attention_graph({.name = "hidden rows", .key_heads = key_heads, .bias_heads = 4});
    const BackendWithoutAttention backend;
    const auto plan = build_plan(graph, backend, Device::cpu().props(), {}, nullptr, true);
    EXPECT_THAT(plan->lowered.notes, Contains(HasSubstr("expanded attention_forward")));
    support::Problem problem(graph, 5, support::Fill::plain, [&](support::BoundMemory& memory) {
      const TensorId bias = graph.find_tensor("bias");
      auto* values = reinterpret_cast<float*>(memory.data(bias));
      const Dims& dims = graph.tensor(bias).dims;
      const std::int64_t columns = dims[3];
      for (std::int64_t row = 0; row < element_count(dims) / columns; ++row)
        for (std::int64_t column = 0; column < columns; ++column)
          if (row % 3 == 0 || column % 2 == 0)
            values[row * columns + column] = -std::numeric_limits<float>::infinity();
    });
    EXPECT_EQ(problem.run(*plan), "");
    EXPECT_EQ(problem.compared(), problem.elements());
  }
}

// The bits of a byte would have writers of different rows.
TEST(DeviceLowering, BitsAreNotStoredJoined) {
  Graph g;
  const Value keep = g.apply(Rng{.seed = 3}, {}, {{Rng::y, boolean, {2, 5, 300, 7}}})[Rng::y];
  g.output("y", g.reshape(g.transpose(keep, {0, 2, 1, 3}), {2, 300, 35}));
  const LoweredGraph lowered = lower(g, true);
  for (const Node& node : lowered.graph.nodes())
    if (std::holds_alternative<Rng>(node.op)) {
      const Tensor& bits = lowered.graph.tensor(node.outputs[Rng::y]);
      EXPECT_EQ(bits.strides, row_major.strides_for(bits.dims));
    }
  EXPECT_EQ(support::check_plan(g), "");
}

TEST(DeviceLowering, CompositeAttentionIsRaisedOnlyForAnEngine) {
  const Graph graph = support::gpt_graph({.batch = 1,
                                          .sequence = 16,
                                          .heads = 2,
                                          .head_size = 8,
                                          .dtype = f32,
                                          .composite_attention = true});
  const auto has_attention = [](const PlanData& plan) {
    return std::ranges::any_of(plan.steps, [](const PlanData::Step& step) {
      return step.region.anchor_as<AttentionForward>() != nullptr;
    });
  };
  const BackendWithoutAttention without;
  const DeviceProps cpu = Device::cpu().props();
  EXPECT_TRUE(has_attention(*build_plan(graph, cpu, {}, nullptr, false)));
  EXPECT_FALSE(has_attention(*build_plan(graph, without, cpu, {}, nullptr, false)));
}

TEST(DeviceLowering, LargeScoreMatricesAreNotStored) {
  Graph g;
  const auto operand = [&](const char* name) { return g.input(name, {1, 16, 65536, 64}, bf16); };
  const Value q = operand("q"), k = operand("k"), v = operand("v");
  g.output("o", g.attention(q, k, v).first);
  const auto plan = build_plan(g, Device::named("h200").props(), {}, nullptr, false);
  EXPECT_EQ(plan->steps.size(), 1u) << "256 GB of scores";
}

}  // namespace
}  // namespace ashlar

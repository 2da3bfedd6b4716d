// The sm_80 attention engine: kernels compile without spills, and on a GPU, real or emulated, agree
// with the reference.
#include <cmath>
#include <limits>

#include "attention_graphs.hpp"
#include "cuda/engines/engines.hpp"
#include "engine_agrees.hpp"
#include "engine_compiles.hpp"
#include "gpu_check.hpp"

namespace ashlar::cuda::attention_sm80 {
namespace {

constexpr AttentionAttributes kCausal{.right_bound = 0};
constexpr AttentionAttributes kCausalFromTheEnd{.right_bound = 0,
                                                .alignment = MaskAlignment::bottom_right};

// --- without a GPU

AttentionGraph large(std::int64_t head_dim, bool causal) {
  return {.batch = 4,
          .heads = 32,
          .key_heads = 8,
          .queries = 4096,
          .keys = 4096,
          .head_dim = head_dim,
          .attributes = causal ? kCausal : AttentionAttributes{},
          .tokens_outside = true,
          .lengths = causal,
          .statistics = causal};
}

// With head dims of 128 accumulators take 192 or more of 255 registers: ptxas keeps a few loop
// invariants in local memory.
constexpr int kMostLocalBytes = 64;

TEST(AttentionSm80Engine, CompilesWithoutSpills) {
  if (!nvrtc().is_open) GTEST_SKIP() << nvrtc().reason;
  for (const auto& [head_dim, causal] :
       {std::pair{64, true}, {128, false}, {128, true}, {256, false}})
    expect_compiles(attention_sm80_engine(), large(head_dim, causal).graph(),
                    {"sm_80", "sm_89", kHopper, "sm_120"}, is_long(),
                    head_dim == 128 ? kMostLocalBytes : 0);
}

TEST(AttentionSm80Engine, IsTheFirstChoice) {
  for (const char* name : {"a100", "rtx5090"}) {
    const auto outline =
        build_plan(large(128, true).graph(), Device::named(name).props(), {}, nullptr, false);
    ASSERT_EQ(outline->steps.size(), 1u) << name;
    EXPECT_EQ(outline->steps[0].choice.engine->id(), "cuda.attention_sm80") << name;
  }
}

std::string refusal(const AttentionGraph& problem) {
  const Graph graph = problem.graph();
  const LoweredGraph lowered = lower(graph, false);
  const std::vector<Region> regions = partition(lowered, {FusionLimits{false, false}});
  return attention_sm80_engine().supports(regions.at(0), Device::named("h200").props()).reason();
}

TEST(AttentionSm80Engine, RefusesWithAReason) {
  EXPECT_EQ(refusal({}), "");
  EXPECT_EQ(refusal({.dtype = f32}), "q is f32, expected f16 or bf16");
  EXPECT_EQ(refusal({.head_dim = 264}), "head dim 264, expected 1 to 256");
  EXPECT_EQ(refusal({.value_dim = 320}), "head dim 320 of v, expected 1 to 256");
}

// --- on a GPU

class GpuAttentionSm80 : public GpuTest {
 protected:
  static void expect_agrees(const AttentionGraph& problem, bool all_configs = false,
                            const support::Problem::Change& change = {}) {
    cuda::expect_agrees(attention_sm80_engine(), problem.graph(), all_configs, 3,
                        support::Fill::plain, Device::named("cuda:0").props(), {}, change);
  }
};

TEST_F(GpuAttentionSm80, EveryTile) {
  for (const std::int64_t head_dim : {64, 128})
    expect_agrees({.heads = 1,
                   .key_heads = 1,
                   .queries = 130,
                   .keys = 150,
                   .head_dim = head_dim,
                   .attributes = kCausalFromTheEnd},
                  true);
}

TEST_F(GpuAttentionSm80, HeadDims) {
  for (const std::int64_t head_dim : {32, 96, 256, 40, 5})
    expect_agrees({.queries = 33, .keys = 47, .head_dim = head_dim});
  expect_agrees({.queries = 9, .keys = 70, .head_dim = 192, .value_dim = 128});
  expect_agrees({.queries = 9, .keys = 70, .head_dim = 12, .value_dim = 100, .dtype = f16});
}

TEST_F(GpuAttentionSm80, MasksAndLengths) {
  for (const MaskAlignment alignment : {MaskAlignment::top_left, MaskAlignment::bottom_right})
    for (const std::int64_t left : {0, 40})
      for (const bool lengths : {false, true}) {
        AttentionAttributes attributes{.right_bound = left == 0 ? 0 : 3, .alignment = alignment};
        if (left > 0) attributes.left_bound = left;
        expect_agrees({.batch = 3,
                       .heads = 1,
                       .key_heads = 1,
                       .queries = 75,
                       .keys = 140,
                       .head_dim = 16,
                       .attributes = attributes,
                       .lengths = lengths,
                       .statistics = true});
      }
}

TEST_F(GpuAttentionSm80, RowsWithoutKeys) {
  expect_agrees({.queries = 90,
                 .keys = 20,
                 .head_dim = 16,
                 .attributes = kCausalFromTheEnd,
                 .statistics = true});
  expect_agrees({.queries = 90,
                 .keys = 20,
                 .head_dim = 16,
                 .attributes = {.left_bound = 5, .right_bound = 0},
                 .sink = true,
                 .statistics = true});
}

TEST_F(GpuAttentionSm80, SharedHeadsAndStrides) {
  for (const bool tokens_outside : {false, true})
    expect_agrees({.batch = 2,
                   .heads = 6,
                   .key_heads = 2,
                   .queries = 20,
                   .keys = 35,
                   .head_dim = 24,
                   .dtype = f16,
                   .attributes = kCausal,
                   .tokens_outside = tokens_outside});
}

TEST_F(GpuAttentionSm80, SectionsOfHeads) {
  const AttentionGraph problem{
      .batch = 7, .heads = 2, .key_heads = 1, .queries = 70, .keys = 10, .head_dim = 8};
  DeviceProps device = Device::named("cuda:0").props();
  for (const std::int64_t groups : {3, 7}) {  // sections of 6, 6 and 2 heads; one of 14
    device.l2_bytes = 2 * groups * problem.keys * 2 * problem.head_dim * 2;
    cuda::expect_agrees(attention_sm80_engine(), problem.graph(), false, 3, support::Fill::plain,
                        device);
  }
}

TEST_F(GpuAttentionSm80, Scales) {
  for (const double scale : {0.0, -0.3, 2.0})
    expect_agrees({.queries = 9,
                   .keys = 40,
                   .head_dim = 16,
                   .attributes = {.scale = scale},
                   .statistics = true});
  expect_agrees({.queries = 9, .keys = 40, .head_dim = 16, .sink = true, .scale_tensor = true});
}

TEST_F(GpuAttentionSm80, ScoreOptions) {
  for (const std::int64_t keys : {46, 47}) {  // in pairs, and one by one
    const AttentionGraph plain{.queries = 20, .keys = keys, .head_dim = 16, .statistics = true};
    AttentionGraph problem = plain;
    problem.attributes = {.right_bound = 3, .dropout = 0.25, .alibi = true, .soft_cap = 2.0};
    problem.seeded = true;
    problem.bias = {1, 1, 20, keys};
    expect_agrees(problem);
    problem.bias = {};
    problem.attributes = {.block_rows = 8, .block_columns = 5};
    problem.seeded = false;
    problem.block_mask = true;
    expect_agrees(problem, false, [](support::BoundMemory& memory) {
      *reinterpret_cast<std::uint8_t*>(memory.data(memory.graph().find_tensor("blocks"))) = 0x5e;
    });
  }
}

TEST_F(GpuAttentionSm80, RaggedBatches) {
  for (const std::int64_t head_dim : {32, 20})
    expect_agrees({.batch = 3,
                   .key_heads = 1,
                   .queries = 40,
                   .keys = 75,
                   .head_dim = head_dim,
                   .attributes = kCausal,
                   .ragged = true,
                   .lengths = true,
                   .statistics = true});
}

TEST_F(GpuAttentionSm80, PagedCaches) {
  for (const std::int64_t page : {16, 10})
    expect_agrees(
        {.batch = 2,
         .heads = 4,
         .queries = 40,
         .keys = 75,
         .head_dim = 32,
         .attributes = kCausalFromTheEnd,
         .lengths = true,
         .statistics = true,
         .page = page},
        page == 16, [](support::BoundMemory& memory) {
          const auto entry = [&](const char* table) {
            return reinterpret_cast<std::int32_t*>(memory.data(memory.graph().find_tensor(table)));
          };
          entry("pages_k")[0] = -1;  // out of range: these keys are hidden
          entry("pages_v")[2] = 1000;
        });
}

TEST_F(GpuAttentionSm80, FusedEpilogue) {
  Graph graph("attention");
  const Dims dims = {1, 2, 20, 32};
  const Value o = graph
                      .attention(graph.input("q", dims, bf16), graph.input("k", dims, bf16),
                                 graph.input("v", dims, bf16))
                      .first;
  graph.output("y", pointwise(PointwiseMode::add, o, graph.input("residual", dims, bf16)));
  cuda::expect_agrees(attention_sm80_engine(), graph);
}

TEST_F(GpuAttentionSm80, UnalignedFallback) {
  for (const std::int64_t offset : {0, 4})
    cuda::expect_agrees(AttentionGraph{.queries = 20, .keys = 30, .head_dim = 32}.graph(),
                        "cuda.attention_sm80", {.offset = offset});
}

// Keys and values from `first` on of every head, and past the lengths, are NaN or infinity.
support::Problem::Change poisoned_from(std::int64_t first) {
  return [first](support::BoundMemory& memory) {
    for (const char* name : {"k", "v"}) {
      const TensorId id = memory.graph().find_tensor(name);
      const Dims& dims = memory.graph().tensor(id).dims;
      auto* const words = reinterpret_cast<std::uint16_t*>(memory.data(id));
      constexpr std::uint16_t kNan = 0x7fc0, kInfinity = 0x7f80;  // bf16
      const std::int64_t width = dims[3];
      for (std::int64_t row = 0; row < element_count(dims) / width; ++row)
        if (row % dims[2] >= first)
          std::fill_n(words + row * width, width, row % 2 == 0 ? kNan : kInfinity);
    }
  };
}

TEST_F(GpuAttentionSm80, UnseenValuesDoNotReachARow) {
  // Rows from 90 on see them, those before do not.
  AttentionGraph problem{.heads = 1,
                         .key_heads = 1,
                         .queries = 100,
                         .keys = 100,
                         .head_dim = 32,
                         .attributes = kCausal,
                         .statistics = true};
  expect_agrees(problem, true, poisoned_from(90));
  // Past a window no row sees them.
  problem.queries = 60;
  expect_agrees(problem, false, poisoned_from(60));
}

TEST_F(GpuAttentionSm80, ValuesPastTheLengthDoNotReachARow) {
  const AttentionGraph problem{
      .heads = 1, .key_heads = 1, .queries = 40, .keys = 100, .head_dim = 32, .lengths = true};
  expect_agrees(problem, true, [](support::BoundMemory& memory) {
    poisoned_from(55)(memory);
    const TensorId id = memory.graph().find_tensor("lengths_kv");
    *reinterpret_cast<std::int32_t*>(memory.data(id)) = 55;
  });
}

}  // namespace
}  // namespace ashlar::cuda::attention_sm80

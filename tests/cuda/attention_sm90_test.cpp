// Fused attention on Hopper: kernels compile without spills and with overlapping wgmma, and on a
// GPU, real or emulated, agree with the reference.
#include <cstring>
#include <limits>

#include "attention_graphs.hpp"
#include "base/element.hpp"
#include "cuda/engines/engines.hpp"
#include "cuda/engines/sm90/gemm_tile.hpp"
#include "engine_agrees.hpp"
#include "engine_compiles.hpp"
#include "gpu_check.hpp"

namespace ashlar::cuda {
namespace {

// Every configuration of a few problems with ASHLAR_TEST_LONG, else a sample.
TEST(AttentionSm90, Compiles) {
  if (!nvrtc().is_open) GTEST_SKIP() << nvrtc().reason;
  const auto compiles = [](AttentionGraph problem, std::size_t step) {
    problem.queries = problem.keys = 4096;
    SCOPED_TRACE(testing::Message()
                 << "head dim " << problem.head_dim << ", left bound "
                 << problem.attributes.left_bound.value_or(0) << ", right bound "
                 << problem.attributes.right_bound.value_or(-1) << ", lengths " << problem.lengths);
    expect_compiles(attention_sm90_engine(), problem.graph(), {kHopper}, true, 0, step);
  };
  constexpr std::size_t kStep = 8;
  for (const std::int64_t head_dim : {64, 128, 256}) {
    compiles({.head_dim = head_dim}, kStep);
    compiles({.head_dim = head_dim, .attributes = {.right_bound = 0}, .statistics = true}, kStep);
    if (!is_long() && head_dim != 128) continue;
    compiles({.head_dim = head_dim,
              .dtype = f16,
              .attributes = {.left_bound = 1024,
                             .right_bound = 0,
                             .alignment = MaskAlignment::bottom_right},
              .lengths = true,
              .scale_tensor = true,
              .statistics = true},
             kStep);
  }
  if (!is_long()) return;
  for (const std::int64_t head_dim : {32, 96, 160, 192, 224}) {
    compiles({.head_dim = head_dim, .attributes = {.right_bound = 0}}, 1);
    compiles({.head_dim = head_dim,
              .attributes = {.left_bound = 9},
              .lengths = true,
              .statistics = true},
             1);
  }
  compiles({.head_dim = 192, .value_dim = 128, .attributes = {.right_bound = 0}}, 1);
}

TEST(AttentionSm90, IsTheFirstChoice) {
  for (const std::int64_t head_dim : {64, 128}) {
    const auto outline = build_plan(
        AttentionGraph{.heads = 32, .queries = 2048, .keys = 2048, .head_dim = head_dim}.graph(),
        Device::named("h200").props(), {}, nullptr, false);
    ASSERT_EQ(outline->steps.size(), 1u);
    EXPECT_EQ(outline->steps[0].choice.engine->id(), "cuda.attention_sm90");
  }
}

// Refusals name what is not supported; other engines or the expansion run it.
TEST(AttentionSm90, Refusals) {
  const auto reason_of = [](const AttentionGraph& problem, const char* device = kHopper) {
    const LoweredGraph lowered = lower(problem.graph(), true);
    const std::vector<FusionLimits> limits(lowered.graph.nodes().size());
    for (const Region& region : partition(lowered, limits))
      if (region.anchor_as<AttentionForward>() != nullptr)
        return attention_sm90_engine().supports(region, known_gpu(device)).reason();
    return std::string("expanded");
  };
  EXPECT_EQ(reason_of({}), "");
  EXPECT_EQ(reason_of({.dtype = f32}), "q, k or v is f32, expected bf16 or f16");
  EXPECT_EQ(reason_of({.head_dim = 264}), "head dim 264, at most 256");
  EXPECT_EQ(reason_of({.head_dim = 64, .value_dim = 60}),
            "TMA: q, k or v has rows that are not contiguous or not 16-byte aligned");
  EXPECT_EQ(reason_of({}, "sm_80"), "requires sm_90a, the device is sm_80");
}

class GpuAttentionSm90 : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (!IsSkipped() && !requires_hopper(Device::named("cuda:0").props())) GTEST_SKIP();
  }
  // On a GPU with few SMs, so that CTAs compute several tiles.
  static void expect_agrees(const AttentionGraph& problem, bool all_configs = false,
                            const support::Problem::Change& change = {}) {
    DeviceProps device = Device::named("cuda:0").props();
    device.compute_units = 2;
    cuda::expect_agrees(attention_sm90_engine(), problem.graph(), all_configs, 3,
                        support::Fill::plain, device, {}, change);
  }
};

TEST_F(GpuAttentionSm90, HeadDims) {
  for (const std::int64_t head_dim : {32, 64, 96, 128, 256})
    expect_agrees({.queries = 200,
                   .keys = 300,
                   .head_dim = head_dim,
                   .dtype = head_dim == 64 ? f16 : bf16,
                   .statistics = true},
                  head_dim == 64);
  expect_agrees({.queries = 130, .keys = 200, .head_dim = 192, .value_dim = 128});
  expect_agrees({.queries = 130, .keys = 200, .head_dim = 40, .value_dim = 72});
}

// Every stage is used several times, and maxima grow. Two tiles.
TEST_F(GpuAttentionSm90, ManyBlocks) {
  for (const std::int64_t head_dim : {32, 128})
    expect_agrees({.heads = 1,
                   .key_heads = 1,
                   .queries = 200,
                   .keys = head_dim == 32 ? 1300 : 700,
                   .head_dim = head_dim,
                   .attributes = {.scale = 2.0},
                   .statistics = true},
                  head_dim == 128);
}

// Tiles of several heads per CTA.
TEST_F(GpuAttentionSm90, GroupedHeads) {
  expect_agrees({.batch = 2,
                 .heads = 6,
                 .key_heads = 2,
                 .queries = 70,
                 .keys = 150,
                 .dtype = f16,
                 .tokens_outside = true,
                 .value_heads = 3});
}

// Under a mask, CTAs take tiles from the counter.
TEST_F(GpuAttentionSm90, Causal) {
  for (const MaskAlignment alignment : {MaskAlignment::top_left, MaskAlignment::bottom_right})
    for (const std::int64_t keys : {200, 500})
      expect_agrees({.queries = 300,
                     .keys = keys,
                     .attributes = {.right_bound = 0, .alignment = alignment},
                     .statistics = true},
                    keys == 500);
}

TEST_F(GpuAttentionSm90, Windows) {
  for (const std::int64_t left : {1, 100})
    for (const std::int64_t right : {0, 70})
      expect_agrees({.queries = 300,
                     .keys = 450,
                     .attributes = {.left_bound = left,
                                    .right_bound = right,
                                    .alignment = MaskAlignment::bottom_right},
                     .statistics = true});
  expect_agrees({.queries = 300, .keys = 450, .attributes = {.left_bound = 100}});
}

TEST_F(GpuAttentionSm90, Lengths) {
  for (const bool causal : {false, true}) {
    AttentionGraph problem{.batch = 3,
                           .queries = 200,
                           .keys = 330,
                           .attributes = {.alignment = MaskAlignment::bottom_right},
                           .lengths = true,
                           .statistics = true};
    if (causal) problem.attributes.right_bound = 0;
    expect_agrees(problem);
  }
}

TEST_F(GpuAttentionSm90, Scales) {
  AttentionGraph problem{
      .queries = 70, .keys = 150, .attributes = {.right_bound = 20}, .statistics = true};
  for (const double scale : {0.3, -0.2, 0.0}) {
    problem.attributes.scale = scale;
    expect_agrees(problem);
  }
  problem.scale_tensor = true;
  expect_agrees(problem);
}

// Addresses that TMA does not support.
TEST_F(GpuAttentionSm90, UnalignedFallback) {
  const AttentionGraph problem{.attributes = {.right_bound = 0}, .statistics = true};
  for (const std::int64_t offset : {0, 8})
    cuda::expect_agrees(problem.graph(), "cuda.attention_sm90", {.offset = offset});
}

// NaN and infinity in keys and values reach only the rows that see them.
TEST_F(GpuAttentionSm90, NonfiniteValues) {
  const auto poison = [](const std::vector<std::int64_t>& keys, std::int64_t head_dim) {
    return [=](support::BoundMemory& memory) {
      for (const char* name : {"k", "v"}) {
        std::byte* const data = memory.data(memory.graph().find_tensor(name));
        for (const std::int64_t key : keys)
          store_element(bf16, data, key * head_dim + key % 7,
                        key % 2 == 0 ? std::numeric_limits<double>::infinity()
                                     : std::numeric_limits<double>::quiet_NaN());
      }
    };
  };
  AttentionGraph problem{.heads = 1,
                         .key_heads = 1,
                         .queries = 200,
                         .keys = 200,
                         .attributes = {.right_bound = 0},
                         .statistics = true};
  expect_agrees(problem, false, poison({90, 151}, 64));
  problem.attributes.left_bound = 40;
  problem.attributes.right_bound = 3;
  expect_agrees(problem, false, poison({20, 90, 151}, 64));
  problem.attributes.left_bound = problem.attributes.right_bound = {};
  problem.lengths = true;
  expect_agrees(problem, false, [&](support::BoundMemory& memory) {
    poison({150, 151, 160}, 64)(memory);
    const auto set = [&](const char* name, std::int32_t length) {
      std::memcpy(memory.data(memory.graph().find_tensor(name)), &length, sizeof length);
    };
    set("lengths_q", 170);
    set("lengths_kv", 150);
  });
}

}  // namespace
}  // namespace ashlar::cuda

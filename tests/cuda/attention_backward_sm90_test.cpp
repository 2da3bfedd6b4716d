// Backward pass of fused attention on Hopper: kernels compile without spills and with overlapping
// wgmma, and on a GPU, real or emulated, agree with the reference.
#include <cstring>
#include <limits>

#include "attention_backward_graphs.hpp"
#include "base/element.hpp"
#include "cuda/engines/engines.hpp"
#include "cuda/engines/sm90/gemm_tile.hpp"
#include "engine_agrees.hpp"
#include "engine_compiles.hpp"
#include "gpu_check.hpp"

namespace ashlar::cuda {
namespace {

TEST(AttentionBackwardSm90, Compiles) {
  if (!nvrtc().is_open) GTEST_SKIP() << nvrtc().reason;
  const auto compiles = [](AttentionBackwardGraph problem) {
    problem.queries = problem.keys = 4096;
    // All options together take more than 240 registers.
    const int most_local_bytes = problem.head_dim == 64 && problem.has_lengths ? 72 : 0;
    expect_compiles(attention_backward_sm90_engine(), problem.graph(), {kHopper}, true,
                    most_local_bytes, 2);
  };
  for (const std::int64_t head_dim : {64, 128}) {
    compiles({.head_dim = head_dim});
    compiles({.head_dim = head_dim, .right_bound = 0});
    if (!is_long() && head_dim != 128) continue;
    compiles({.dtype = f16,
              .head_dim = head_dim,
              .left_bound = 1024,
              .right_bound = 0,
              .alignment = MaskAlignment::bottom_right,
              .has_scale_tensor = true,
              .has_lengths = true});
  }
}

std::string engine_of(const AttentionBackwardGraph& problem, const CompileOptions& options = {}) {
  const auto outline =
      build_plan(problem.graph(), Device::named("h200").props(), options, nullptr, false);
  return std::string(outline->steps[0].choice.engine->id());
}

// The order of its additions is any: plans that must be deterministic do not use it.
TEST(AttentionBackwardSm90, IsTheFirstChoiceUnlessDeterministic) {
  for (const std::int64_t head_dim : {64, 128}) {
    const AttentionBackwardGraph problem{.queries = 512, .keys = 512, .head_dim = head_dim};
    EXPECT_EQ(engine_of(problem), "cuda.attention_backward_sm90");
    EXPECT_NE(engine_of(problem, {.deterministic = true}), "cuda.attention_backward_sm90");
  }
}

// Refusals name what is not supported; other engines run it.
TEST(AttentionBackwardSm90, Refusals) {
  const auto reason_of = [](const AttentionBackwardGraph& problem, const char* device = kHopper) {
    const LoweredGraph lowered = lower(problem.graph(), true);
    const std::vector<FusionLimits> limits(lowered.graph.nodes().size());
    for (const Region& region : partition(lowered, limits))
      if (region.anchor_as<AttentionBackward>() != nullptr)
        return attention_backward_sm90_engine().supports(region, known_gpu(device)).reason();
    return std::string("expanded");
  };
  EXPECT_EQ(reason_of({}), "");
  EXPECT_EQ(reason_of({.dtype = f32}), "q is f32, expected bf16 or f16");
  EXPECT_EQ(reason_of({.head_dim = 136}), "head dim 136, at most 128");
  EXPECT_EQ(reason_of({.head_dim = 64, .value_dim = 60}),
            "TMA: v has rows that are not contiguous or not 16-byte aligned");
  EXPECT_EQ(reason_of({}, "sm_80"), "requires sm_90a, the device is sm_80");
}

class GpuAttentionBackwardSm90 : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (!IsSkipped() && !requires_hopper(Device::named("cuda:0").props())) GTEST_SKIP();
  }
  static void expect_agrees(const AttentionBackwardGraph& problem, bool all_configs = false,
                            const support::Problem::Change& change = {}) {
    cuda::expect_agrees(attention_backward_sm90_engine(), problem.graph(), all_configs, 3,
                        support::Fill::plain, Device::named("cuda:0").props(), {}, change);
  }
};

// Several blocks of rows and keys, the last ones not whole.
TEST_F(GpuAttentionBackwardSm90, HeadDims) {
  for (const std::int64_t head_dim : {32, 64, 96, 128})
    expect_agrees({.dtype = head_dim == 64 ? f16 : bf16,
                   .heads = 1,
                   .key_heads = 1,
                   .queries = 200,
                   .keys = 300,
                   .head_dim = head_dim});
  expect_agrees(
      {.heads = 1, .key_heads = 1, .queries = 130, .keys = 100, .head_dim = 40, .value_dim = 72});
}

// Every stage is used several times.
TEST_F(GpuAttentionBackwardSm90, ManyBlocks) {
  for (const std::int64_t head_dim : {64, 128})
    expect_agrees({.heads = 1,
                   .key_heads = 1,
                   .queries = head_dim == 64 ? 900 : 500,
                   .keys = 130,
                   .head_dim = head_dim,
                   .scale = 0.2},
                  true);
}

TEST_F(GpuAttentionBackwardSm90, GroupedHeads) {
  for (const std::int64_t head_dim : {64, 128})
    expect_agrees({.dtype = f16,
                   .batch = 2,
                   .heads = 4,
                   .key_heads = 2,
                   .queries = 140,
                   .keys = 150,
                   .head_dim = head_dim,
                   .heads_inside = true});
}

TEST_F(GpuAttentionBackwardSm90, Causal) {
  for (const MaskAlignment alignment : {MaskAlignment::top_left, MaskAlignment::bottom_right})
    for (const std::int64_t keys : {200, 500})
      expect_agrees({.heads = 1,
                     .key_heads = 1,
                     .queries = 300,
                     .keys = keys,
                     .head_dim = keys == 200 ? 128 : 64,
                     .right_bound = 0,
                     .alignment = alignment});
}

TEST_F(GpuAttentionBackwardSm90, Windows) {
  for (const std::int64_t left : {1, 100})
    for (const std::int64_t right : {0, 70})
      expect_agrees({.heads = 1,
                     .key_heads = 1,
                     .queries = 300,
                     .keys = 450,
                     .head_dim = left == 1 ? 64 : 128,
                     .left_bound = left,
                     .right_bound = right,
                     .alignment = MaskAlignment::bottom_right});
  expect_agrees(
      {.heads = 1, .key_heads = 1, .queries = 300, .keys = 450, .head_dim = 64, .left_bound = 100});
}

TEST_F(GpuAttentionBackwardSm90, Lengths) {
  for (const bool causal : {false, true}) {
    AttentionBackwardGraph problem{.batch = 3,
                                   .heads = 1,
                                   .key_heads = 1,
                                   .queries = 200,
                                   .keys = 330,
                                   .head_dim = causal ? 64 : 128,
                                   .alignment = MaskAlignment::bottom_right,
                                   .has_lengths = true};
    if (causal) problem.right_bound = 0;
    expect_agrees(problem);
  }
}

TEST_F(GpuAttentionBackwardSm90, Scales) {
  AttentionBackwardGraph problem{
      .heads = 1, .key_heads = 1, .queries = 70, .keys = 150, .head_dim = 64, .right_bound = 20};
  for (const double scale : {0.3, -0.2, 0.0}) {
    problem.scale = scale;
    expect_agrees(problem);
  }
  problem.scale = {};
  problem.has_scale_tensor = true;
  expect_agrees(problem);
}

// Rows whose statistics say that they see nothing contribute nothing.
TEST_F(GpuAttentionBackwardSm90, EmptyRows) {
  const AttentionBackwardGraph problem{
      .heads = 1, .key_heads = 1, .queries = 150, .keys = 100, .head_dim = 64};
  expect_agrees(problem, false, [](support::BoundMemory& memory) {
    auto* stats = reinterpret_cast<float*>(memory.data(memory.graph().find_tensor("stats")));
    for (const int row : {0, 77, 149}) stats[row] = -std::numeric_limits<float>::infinity();
  });
}

// NaN and infinity reach only the gradients of pairs that attention sees.
TEST_F(GpuAttentionBackwardSm90, NonfiniteValues) {
  constexpr std::int64_t kHeadDim = 64;
  const auto poison = [](const std::vector<const char*>& names, std::int64_t row) {
    return [=](support::BoundMemory& memory) {
      for (const char* name : names)
        store_element(bf16, memory.data(memory.graph().find_tensor(name)), row * kHeadDim + row % 7,
                      row % 2 == 0 ? std::numeric_limits<double>::infinity()
                                   : std::numeric_limits<double>::quiet_NaN());
    };
  };
  AttentionBackwardGraph problem{.heads = 1,
                                 .key_heads = 1,
                                 .queries = 200,
                                 .keys = 200,
                                 .head_dim = kHeadDim,
                                 .right_bound = 0};
  expect_agrees(problem, false, poison({"k", "v"}, 151));
  expect_agrees(problem, false, poison({"q", "d_o"}, 90));
  problem.left_bound = 40;
  problem.right_bound = 3;
  expect_agrees(problem, false, poison({"k", "v", "q", "d_o"}, 90));
  problem.left_bound = problem.right_bound = {};
  problem.has_lengths = true;
  expect_agrees(problem, false, [&](support::BoundMemory& memory) {
    poison({"k", "v"}, 150)(memory);
    poison({"k", "v"}, 151)(memory);
    poison({"q", "d_o", "o"}, 170)(memory);
    poison({"q", "d_o", "o"}, 199)(memory);
    const auto set = [&](const char* name, std::int32_t length) {
      std::memcpy(memory.data(memory.graph().find_tensor(name)), &length, sizeof length);
    };
    set("seq_len_q", 170);
    set("seq_len_kv", 150);
  });
}

}  // namespace
}  // namespace ashlar::cuda

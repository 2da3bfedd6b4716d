// Partitioning into regions: what is fused, what is not, and the execution order.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <ashlar/ashlar.hpp>

#include "plan/partition.hpp"

namespace ashlar {
namespace {

std::vector<Region> regions_of(const Graph& g, bool fuse = true) {
  const LoweredGraph lowered = lower(g, fuse);
  return partition(
      lowered, std::vector<FusionLimits>(lowered.graph.nodes().size(), FusionLimits{fuse, fuse}));
}

TEST(Partition, FusesEpilogueOfConvolution) {
  Graph g;
  const Value x = g.input("x", {2, 8, 6, 6}, f16, channels_last),
              w = g.input("w", {4, 8, 3, 3}, f16, channels_last);
  const Value b = g.input("b", {1, 4, 1, 1}, f32);
  g.output("y", relu(g.conv(x, w, {.padding = {1, 1}}) + b));
  const auto regions = regions_of(g);
  ASSERT_EQ(regions.size(), 1u);
  EXPECT_TRUE(regions[0].anchor_as<ConvForward>());
  EXPECT_EQ(regions[0].epilogue.stores.size(), 1u);
  EXPECT_EQ(regions[0].nodes.size(), 3u);
}

TEST(Partition, StoresAnIntermediateThatIsAlsoAnOutput) {
  Graph g;
  const Value a = g.input("a", {4, 5}, f32), b = g.input("b", {5, 3}, f32);
  const Value c = g.matmul(a, b);
  g.output("y", relu(c));
  g.output("c", c);
  const auto regions = regions_of(g);
  ASSERT_EQ(regions.size(), 1u);
  EXPECT_EQ(regions[0].epilogue.stores.size(), 2u);
}

TEST(Partition, DoesNotFuseAcrossACycle) {
  // add reads the first matmul and a second matmul that depends on it: fusing add into the first
  // would create a cycle.
  Graph g;
  const Value a = g.input("a", {4, 4}, f32), b = g.input("b", {4, 4}, f32);
  const Value c = g.matmul(a, b);
  g.output("y", c + g.matmul(c, b));
  const auto regions = regions_of(g);
  ASSERT_EQ(regions.size(), 2u);
  EXPECT_EQ(regions[0].nodes.size(), 1u);
  EXPECT_EQ(regions[1].nodes.size(), 2u);
}

TEST(Partition, FusesCheapPrologue) {
  Graph g;
  const Value x = g.input("x", {4, 8}, f32);
  g.output("y", g.reduce(x * x, ReductionMode::add, {1}));
  const auto regions = regions_of(g);
  ASSERT_EQ(regions.size(), 1u);
  EXPECT_FALSE(regions[0].prologues[0].is_plain_load());
}

// A value written through a view of an output does not have that output's shape.
TEST(Partition, ReadsAnOutputThatIsWrittenTransposed) {
  Graph g;
  const Value x = g.input("x", {4, 4}, f32), scale = g.input("scale", {1, 4}, f32);
  const Value turned = g.transpose(x * x, {1, 0});
  g.output("turned", turned);
  g.output("y", g.norm(turned, {.mode = NormMode::rms}, {.scale = scale}).y);
  const auto regions = regions_of(g);
  ASSERT_EQ(regions.size(), 2u);
  EXPECT_FALSE(regions[0].anchor);
  EXPECT_TRUE(regions[1].prologues[0].is_plain_load());
}

TEST(Partition, ComputesAnInputOnceWhenTwoRegionsReadIt) {
  Graph g;
  const Value x = g.input("x", {4, 4}, f32);
  const Value activated = gelu(x);
  g.output("sum", g.reduce(activated, ReductionMode::add, {0}));
  g.output("max", g.reduce(activated, ReductionMode::max, {1}));
  EXPECT_EQ(regions_of(g).size(), 3u);
}

TEST(Partition, FusesSideInputsOfTheEpilogue) {
  Graph g;
  const Value a = g.input("a", {4, 5}, f32), b = g.input("b", {5, 3}, f32),
              z = g.input("z", {4, 3}, f32);
  g.output("y", g.matmul(a, b) + sigmoid(z));
  EXPECT_EQ(regions_of(g).size(), 1u);
}

// Batch norm of a residual block in training: y = relu(norm(x) + z), with the mask for its
// gradient.
TEST(Partition, FusesBatchNormAddReluMaskIntoOneRegion) {
  using N = NormForward;
  for (NormMode mode : {NormMode::batch, NormMode::instance, NormMode::layer}) {
    Graph g;
    const Dims dims = {2, 4, 3, 3};
    const Dims parameters = mode == NormMode::layer ? Dims{1, 4, 3, 3} : Dims{1, 4, 1, 1};
    std::vector<Operand<N>> operands = {{N::x, g.input("x", dims, f16, channels_last)},
                                        {N::scale, g.input("scale", parameters, f32)},
                                        {N::bias, g.input("bias", parameters, f32)}};
    std::vector<Wanted<N>> wanted = {N::y, N::out_mean, N::out_inv_variance};
    if (mode == NormMode::batch) {
      operands.push_back({N::running_mean, g.input("mean", parameters, f32)});
      operands.push_back({N::running_var, g.input("var", parameters, f32)});
      operands.push_back({N::momentum_tensor, g.scalar("momentum", f32)});
      wanted.insert(wanted.end(), {N::next_running_mean, N::next_running_var});
    }
    const auto r = g.apply(N{.mode = mode}, operands, wanted);
    const Value sum = r[N::y] + g.input("z", dims, f16, channels_last);
    g.output("y", relu(sum));
    g.output("mask", pointwise(PointwiseMode::cmp_gt, sum, g.constant(0.0)));
    for (std::size_t slot = 1; slot < r.all().size(); ++slot)
      if (r.all()[slot]) g.output("statistic" + std::to_string(slot), r.all()[slot]);
    const auto regions = regions_of(g);
    ASSERT_EQ(regions.size(), 1u);
    EXPECT_TRUE(regions[0].anchor_as<NormForward>());
    EXPECT_EQ(regions[0].epilogue.stores.size(), 2u);
    EXPECT_EQ(regions[0].nodes.size(), 4u);
  }
}

TEST(Partition, FusesLayerNormClippedReluMaskIntoOneRegion) {
  Graph g;
  const NormResults r = g.norm(
      g.input("x", {16, 8, 1, 1}, f32), {},
      {.scale = g.input("scale", {1, 8, 1, 1}, f32), .bias = g.input("bias", {1, 8, 1, 1}, f32)});
  const Value y = g.pointwise(PointwiseMode::relu_fwd, std::array{r.y}, {.relu_upper_clip = 6.0});
  const Value above = pointwise(PointwiseMode::cmp_gt, y, g.scalar("lower", f32)),
              below = pointwise(PointwiseMode::cmp_lt, y, g.scalar("upper", f32));
  g.output("y", y);
  g.output("mask", pointwise(PointwiseMode::logical_and, above, below));
  g.output("mean", r.mean);
  EXPECT_EQ(regions_of(g).size(), 1u);
}

TEST(Partition, FusesMaskedNormBackwardIntoOneRegion) {
  for (bool as_product : {false, true}) {
    Graph g;
    const Dims dims = {2, 4, 3, 3}, channels = {1, 4, 1, 1};
    const Value dy = g.input("dy", dims, f16), mask = g.input("mask", dims, boolean);
    const Value masked = as_product ? g.pointwise(PointwiseMode::mul, std::array{dy, mask})
                                    : select(mask, dy, g.constant(0.0, f16));
    const NormGradients r =
        g.norm_backward(g.input("x", dims, f16), masked, {.mode = NormMode::batch},
                        {.scale = g.input("scale", channels, f32),
                         .mean = g.input("mean", channels, f32),
                         .inv_variance = g.input("inv", channels, f32)});
    g.output("dx", r.dx);
    g.output("dscale", r.dscale);
    g.output("dbias", r.dbias);
    const auto regions = regions_of(g);
    ASSERT_EQ(regions.size(), 1u);
    EXPECT_TRUE(regions[0].anchor_as<NormBackward>());
    EXPECT_FALSE(regions[0].prologues[NormBackward::dy].is_plain_load());
  }
}

// The gradient of the residual branch is an output too: the prologue stores it, unless other nodes
// read it.
TEST(Partition, StoresForkedGradientInNormBackwardPrologue) {
  for (bool read_again : {false, true}) {
    Graph g;
    const Dims dims = {2, 4, 3, 3};
    const Value mask = g.input("mask", dims, boolean), dy = g.input("dy", dims, f16);
    const Value dz = select(mask, dy, g.constant(0.0, f16));
    const NormGradients r = g.norm_backward(g.input("x", dims, f16), dz, {.mode = NormMode::batch});
    g.output("dx", r.dx);
    g.output("dz", dz);
    if (read_again) g.output("sum", g.reduce(dz, ReductionMode::add));
    const auto regions = regions_of(g);
    ASSERT_EQ(regions.size(), read_again ? 3u : 1u);
    if (read_again) continue;
    EXPECT_EQ(regions[0].prologues[NormBackward::dy].stores.size(), 1u);
    EXPECT_EQ(regions[0].writes.size(), 2u);
  }
}

// The residual sum before a row norm is also an output; channel norms read their input too often to
// fuse it.
TEST(Partition, StoresResidualSumInRowNormPrologue) {
  for (NormMode mode : {NormMode::layer, NormMode::rms, NormMode::instance})
    for (bool read_again : {false, true}) {
      Graph g;
      const Dims dims = {2, 4, 3, 3};
      const Value sum = g.input("x", dims, f16) + g.input("residual", dims, f16);
      g.output("y", g.norm(sum, {.mode = mode}).y);
      g.output("sum", sum);
      if (read_again) g.output("all", g.reduce(sum, ReductionMode::add));
      const auto regions = regions_of(g);
      const bool is_one = mode != NormMode::instance && !read_again;
      ASSERT_EQ(regions.size(), is_one ? 1u : read_again ? 3u : 2u);
      if (!is_one) continue;
      EXPECT_EQ(regions[0].prologues[NormForward::x].stores.size(), 1u);
      EXPECT_EQ(regions[0].writes.size(), 2u);
    }
}

TEST(Partition, FusesActivationGradientIntoReduction) {
  using Bn = BnBackwardWeights;
  Graph g;
  const Dims dims = {2, 4, 3, 3}, channels = {1, 4, 1, 1};
  const Value dy = g.input("dy", dims, f32), y = g.input("y", dims, f32);
  const Value gradient = pointwise(PointwiseMode::relu_bwd, dy, y);
  const auto r = g.apply(Bn{},
                         {{Bn::x, g.input("x", dims, f32)},
                          {Bn::dy, gradient},
                          {Bn::mean, g.input("mean", channels, f32)},
                          {Bn::inv_variance, g.input("inv", channels, f32)},
                          {Bn::scale, g.input("scale", channels, f32)}},
                         {Bn::dscale, Bn::dbias});
  g.output("dscale", r[Bn::dscale]);
  g.output("dbias", r[Bn::dbias]);
  EXPECT_EQ(regions_of(g).size(), 1u);
}

TEST(Partition, SplitsAChainThatExceedsAProgram) {
  Graph g;
  Value y = g.input("x", {8}, f32);
  for (int i = 0; i < 60; ++i) y = y + g.input("x" + std::to_string(i), {8}, f32);
  g.output("y", y);
  const auto regions = regions_of(g);
  EXPECT_GT(regions.size(), 1u);
  for (const Region& region : regions) {
    int loads = 0;
    for (const auto& step : region.epilogue.steps)
      loads += step.kind == PointwiseProgram::Step::Kind::load;
    EXPECT_LE(loads, kMaxProgramLoads);
    EXPECT_LE(region.epilogue.steps.size(), static_cast<std::size_t>(kMaxProgramSteps));
    EXPECT_LE(region.epilogue.stores.size(), static_cast<std::size_t>(kMaxProgramStores));
  }
}

// If the device's programs support Step::blocks, dequantisation becomes steps of a prologue.
TEST(Partition, FusesBlockDequantizeIntoMatmul) {
  Graph g;
  const Value x = g.input("x", {4, 64}, bf16), w = g.input("w", {64, 8}, i4),
              scale = g.input("scale", {2, 8}, bf16);
  BlockScaleDequantize op;
  op.block_size = {32, 1};
  const Value weights =
      g.apply(op, {{BlockScaleDequantize::x, w}, {BlockScaleDequantize::scale, scale}},
              {BlockScaleDequantize::y}, {.dtype = bf16});
  g.output("y", g.matmul(x, weights));
  const LoweredGraph lowered = lower(g, true);
  const auto regions_with = [&](bool dequantize) {
    return partition(
        lowered, std::vector<FusionLimits>(lowered.graph.nodes().size(), {true, true, dequantize}));
  };
  const auto apart = regions_with(false), together = regions_with(true);
  ASSERT_EQ(apart.size(), 2u);
  EXPECT_TRUE(apart[0].anchor_as<BlockScaleDequantize>());
  ASSERT_EQ(together.size(), 1u);
  ASSERT_TRUE(together[0].anchor_as<Matmul>());
  const PointwiseProgram& of_weights = together[0].prologues[Matmul::b];
  ASSERT_EQ(of_weights.steps.size(), 3u);
  EXPECT_EQ(of_weights.steps[1].blocks, (Dims{32, 1}));
  EXPECT_EQ(of_weights.steps[1].view.strides, (Dims{8, 1}));

  // Only GEMMs fuse dequantisation.
  Graph unfused;
  const Value y =
      unfused.apply(op,
                    {{BlockScaleDequantize::x, unfused.input("w", {64, 8}, i4)},
                     {BlockScaleDequantize::scale, unfused.input("scale", {2, 8}, bf16)}},
                    {BlockScaleDequantize::y}, {.dtype = bf16});
  unfused.output("y", relu(y));
  const LoweredGraph lowered_unfused = lower(unfused, true);
  const auto one = partition(lowered_unfused, std::vector<FusionLimits>(2, {true, true, true}));
  ASSERT_EQ(one.size(), 1u);
  EXPECT_TRUE(one[0].anchor_as<BlockScaleDequantize>());
}

TEST(Partition, FusesDequantizeWithZeroPointIntoMatmul) {
  using Dequantize = BlockScaleDequantize;
  Graph g;
  Dequantize op;
  op.block_size = {32, 1};
  const Value weights = g.apply(op,
                                {{Dequantize::x, g.input("w", {64, 8}, u4)},
                                 {Dequantize::scale, g.input("scale", {2, 8}, bf16)},
                                 {Dequantize::zero_point, g.input("zero", {2, 8}, u4)}},
                                {Dequantize::y}, {.dtype = bf16});
  g.output("y", g.matmul(g.input("x", {4, 64}, bf16), weights));
  const LoweredGraph lowered = lower(g, true);
  const auto regions = partition(lowered, std::vector<FusionLimits>(2, {true, true, true}));
  ASSERT_EQ(regions.size(), 1u);
  const PointwiseProgram& program = regions[0].prologues[Matmul::b];
  ASSERT_EQ(program.steps.size(), 5u);
  EXPECT_EQ(program.steps[1].view.dtype, u4);
  EXPECT_EQ(program.steps[1].blocks, (Dims{32, 1}));
  EXPECT_EQ(program.steps[2].op.mode, PointwiseMode::sub);
  EXPECT_EQ(program.steps[2].args, (std::array{0, 1, -1}));
  EXPECT_EQ(program.steps[3].blocks, (Dims{32, 1}));
  EXPECT_EQ(program.steps[4].args, (std::array{2, 3, -1}));
}

// Blocks of one element may have scales that the same region computes.
TEST(Partition, FusesDequantizeWithComputedScales) {
  using Dequantize = BlockScaleDequantize;
  Graph g;
  Dequantize op;
  op.block_size = {1, 1};
  const Value scale = g.input("scale", {64, 8}, bf16), half = g.input("half", {64, 8}, bf16);
  const Value weights =
      g.apply(op, {{Dequantize::x, g.input("w", {64, 8}, i4)}, {Dequantize::scale, scale * half}},
              {Dequantize::y}, {.dtype = bf16});
  g.output("y", g.matmul(g.input("x", {4, 64}, bf16), weights));
  const LoweredGraph lowered = lower(g, true);
  const auto regions = partition(lowered, std::vector<FusionLimits>(3, {true, true, true}));
  ASSERT_EQ(regions.size(), 1u);
  EXPECT_FALSE(regions[0].prologues[Matmul::b].has_blocks());
  EXPECT_EQ(regions[0].prologues[Matmul::b].steps.size(), 5u);
}

TEST(Partition, OneRegionPerOperationWithoutFusion) {
  Graph g;
  const Value x = g.input("x", {4, 4}, f32);
  g.output("y", relu(g.transpose(x, {1, 0}) + 1.0));
  EXPECT_EQ(regions_of(g, false).size(), 3u);
}

TEST(Partition, RoundsIntegerIntermediatesInRegisters) {
  Graph g;
  const Value x = g.input("x", {4}, f32);
  g.output("y", cast(cast(x * 3.0, i8), f32) + 0.5);
  const auto regions = regions_of(g);
  ASSERT_EQ(regions.size(), 1u);
  bool rounds = false;
  for (const auto& step : regions[0].epilogue.steps) rounds = rounds || step.round_to == i8;
  EXPECT_TRUE(rounds);
}

// Random numbers are steps of the pointwise program that reads them: norm, activation and dropout
// form one region.
TEST(Partition, FusesRngIntoEpilogue) {
  Graph g;
  const Value x = g.input("x", {6, 1, 32}, f32), scale = g.input("scale", {1, 1, 32}, f32),
              bias = g.input("bias", {1, 1, 32}, f32), seed = g.scalar("seed", i64, 3);
  const Value normed = g.norm(x, {.mode = NormMode::layer}, {.scale = scale, .bias = bias}).y;
  const Value kept = g.rng({6, 1, 32}, {.probability = 0.8}, {}, seed);
  g.output("y", gelu(normed) * kept * 1.25);
  const auto regions = regions_of(g);
  ASSERT_EQ(regions.size(), 1u);
  EXPECT_TRUE(regions[0].anchor_as<NormForward>());
  EXPECT_TRUE(regions[0].epilogue.has_random());
  EXPECT_EQ(std::count(regions[0].reads.begin(), regions[0].reads.end(), g.find_tensor("seed")), 1);
}

TEST(Partition, FusesDropoutIntoEpilogueAndStoresMask) {
  Graph g;
  const Value x = g.input("x", {6, 32}, f32);
  using Dropout = DropoutForward;
  const auto dropped = g.apply(Dropout{{.probability = 0.25}}, {{Dropout::x, gelu(g.softmax(x))}},
                               {Dropout::y, Dropout::mask});
  g.output("y", dropped[Dropout::y]);
  g.output("mask", dropped[Dropout::mask]);
  const auto regions = regions_of(g);
  ASSERT_EQ(regions.size(), 1u);
  EXPECT_TRUE(regions[0].anchor_as<SoftmaxForward>());
  EXPECT_EQ(regions[0].epilogue.stores.size(), 2u);
}

TEST(Partition, RandomInputOfMatmulIsNotFused) {
  Graph g;
  const Value x = g.input("x", {6, 32}, f32);
  g.output("y", g.matmul(g.rng({4, 6}, {.probability = 0.5}), x));
  const auto regions = regions_of(g);
  ASSERT_EQ(regions.size(), 2u);
  EXPECT_TRUE(regions[0].anchor_as<Rng>());
}

}  // namespace
}  // namespace ashlar

// Batch, instance and group norm as kernel text: the main shapes compile without spills.
#include "cuda/engines/engines.hpp"
#include "engine_compiles.hpp"

namespace ashlar::cuda {
namespace {

class ChannelNorm : public testing::Test {
 protected:
  void SetUp() override {
    if (!nvrtc().is_open) GTEST_SKIP() << nvrtc().reason;
  }
};

constexpr const char* kHopper = "sm_90a";
const Dims kImages = {64, 64, 56, 56}, kPerChannel = {1, 64, 1, 1};

// Norm, residual, relu and its mask.
Graph training(DType dtype, const Layout& layout, const NormForward& op) {
  Graph graph;
  const Value x = graph.input("x", kImages, dtype, layout);
  const Value residual = graph.input("residual", kImages, dtype, layout);
  const Value scale = graph.input("scale", kPerChannel, f32);
  const Value bias = graph.input("bias", kPerChannel, f32);
  Value mean, variance;
  if (op.mode == NormMode::batch) {
    mean = graph.input("running_mean", kPerChannel, f32);
    variance = graph.input("running_var", kPerChannel, f32);
  }
  const NormResults r = graph.norm(x, scale, bias, op, {}, mean, variance);
  const Value y = relu(r.y + residual);
  graph.output("y", y, {.dtype = dtype, .layout = layout});
  graph.output("mask", pointwise(PointwiseMode::cmp_gt, y, graph.constant(0.0)),
               {.dtype = boolean, .layout = layout});
  if (op.phase == NormPhase::training) {
    graph.output("mean", r.mean);
    graph.output("inv_variance", r.inv_variance);
  }
  if (r.next_running_mean) graph.output("next_mean", r.next_running_mean);
  if (r.next_running_var) graph.output("next_var", r.next_running_var);
  return graph;
}

// The gradient of relu and norm, with the gradient of the residual as a result.
Graph gradient(DType dtype, const Layout& layout, const NormBackward& op, bool given) {
  Graph graph;
  const Value x = graph.input("x", kImages, dtype, layout);
  const Value dy = graph.input("dy", kImages, dtype, layout);
  const Value y = graph.input("y", kImages, dtype, layout);
  const Value scale = graph.input("scale", kPerChannel, f32);
  Value mean, inv_variance;
  if (given) {
    mean = graph.input("mean", kPerChannel, f32);
    inv_variance = graph.input("inv_variance", kPerChannel, f32);
  }
  const Value through = pointwise(PointwiseMode::relu_bwd, dy, y);
  graph.output("dresidual", through, {.dtype = dtype, .layout = layout});
  const NormGradients r = graph.norm_backward(x, through, scale, op, mean, inv_variance);
  graph.output("dx", r.dx, {.dtype = dtype, .layout = layout});
  graph.output("dscale", r.dscale);
  graph.output("dbias", r.dbias);
  return graph;
}

TEST_F(ChannelNorm, Forward) {
  for (const Layout& layout : {channels_last, row_major}) {
    expect_compiles(channel_norm_engine(), training(bf16, layout, {.mode = NormMode::batch}),
                    {kHopper});
    expect_compiles(channel_norm_engine(), training(f32, layout, {.mode = NormMode::batch}),
                    {kHopper});
  }
  expect_compiles(channel_norm_engine(),
                  training(f16, row_major, {.mode = NormMode::group, .groups = 8}), {kHopper});
  expect_compiles(
      channel_norm_engine(),
      training(bf16, channels_last, {.mode = NormMode::batch, .phase = NormPhase::inference}),
      {kHopper});
}

TEST_F(ChannelNorm, Backward) {
  for (const Layout& layout : {channels_last, row_major}) {
    expect_compiles(channel_norm_engine(), gradient(bf16, layout, {.mode = NormMode::batch}, true),
                    {kHopper});
    expect_compiles(channel_norm_engine(), gradient(f32, layout, {.mode = NormMode::batch}, true),
                    {kHopper});
  }
  expect_compiles(channel_norm_engine(),
                  gradient(f16, channels_last, {.mode = NormMode::group, .groups = 8}, false),
                  {kHopper});
}

TEST_F(ChannelNorm, OtherArchitectures) {
  expect_compiles(channel_norm_engine(), training(f16, channels_last, {.mode = NormMode::batch}),
                  {"sm_75", "sm_120"});
}

}  // namespace
}  // namespace ashlar::cuda

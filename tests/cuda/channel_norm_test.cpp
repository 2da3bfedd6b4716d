// Batch, instance and group norm: kernels of the main shapes compile without spills, and small
// problems agree with the reference.
#include <ashlar/memory.hpp>

#include "captured_run.hpp"
#include "cuda/driver/context.hpp"
#include "cuda/engines/engines.hpp"
#include "engine_agrees.hpp"
#include "engine_compiles.hpp"

namespace ashlar::cuda {
namespace {

class ChannelNorm : public testing::Test {
 protected:
  void SetUp() override {
    if (!nvrtc().is_open) GTEST_SKIP() << nvrtc().reason;
  }
};

const Dims kNormedImages = {64, 64, 56, 56};

Dims per_channel(const Dims& images) {
  Dims result = Dims::filled(images.rank(), 1);
  result[1] = images[1];
  return result;
}

// Norm, residual, relu and its mask.
Graph training(DType dtype, const Layout& layout, const NormForward& op,
               const Dims& images = kNormedImages) {
  Graph graph;
  const Dims parameters = per_channel(images);
  const Value x = graph.input("x", images, dtype, layout);
  const Value residual = graph.input("residual", images, dtype, layout);
  const Value scale = graph.input("scale", parameters, f32);
  const Value bias = graph.input("bias", parameters, f32);
  Value mean, variance;
  if (op.mode == NormMode::batch) {
    mean = graph.input("running_mean", parameters, f32);
    variance = graph.input("running_var", parameters, f32);
  }
  const NormResults r = graph.norm(
      x, op, {.scale = scale, .bias = bias, .running_mean = mean, .running_var = variance});
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

// Backward of norm + relu with the gradient of the residual as an output; or of the norm alone.
Graph gradient(DType dtype, const Layout& layout, const NormBackward& op, bool given,
               const Dims& images = kNormedImages, bool of_relu = true) {
  Graph graph;
  const Dims parameters = per_channel(images);
  const Value x = graph.input("x", images, dtype, layout);
  const Value dy = graph.input("dy", images, dtype, layout);
  const Value y = of_relu ? graph.input("y", images, dtype, layout) : Value();
  const Value scale = graph.input("scale", parameters, f32);
  Value mean, inv_variance;
  if (given) {
    mean = graph.input("mean", parameters, f32);
    inv_variance = graph.input("inv_variance", parameters, f32);
  }
  const Value through = of_relu ? pointwise(PointwiseMode::relu_bwd, dy, y) : dy;
  if (of_relu) graph.output("dresidual", through, {.dtype = dtype, .layout = layout});
  const NormGradients r = graph.norm_backward(
      x, through, op, {.scale = scale, .mean = mean, .inv_variance = inv_variance});
  graph.output("dx", r.dx, {.dtype = dtype, .layout = layout});
  graph.output("dscale", r.dscale);
  graph.output("dbias", r.dbias);
  return graph;
}

TEST_F(ChannelNorm, Forward) {
  const NormForward batch{.mode = NormMode::batch};
  expect_compiles(channel_norm_engine(), training(bf16, channels_last, batch), {kHopper},
                  is_long());
  expect_compiles(channel_norm_engine(), training(f32, row_major, batch), {kHopper}, is_long());
  expect_compiles(channel_norm_engine(),
                  training(f16, row_major, {.mode = NormMode::group, .groups = 8}, {8, 64, 64, 32}),
                  {"sm_75"});
}

TEST_F(ChannelNorm, Backward) {
  const NormBackward batch{.mode = NormMode::batch};
  expect_compiles(channel_norm_engine(),
                  gradient(bf16, row_major, batch, true, kNormedImages, false), {kHopper},
                  is_long());
  expect_compiles(channel_norm_engine(), gradient(bf16, channels_last, batch, true), {kHopper},
                  is_long());
  expect_compiles(channel_norm_engine(), gradient(f32, row_major, batch, true), {kHopper},
                  is_long());
  expect_compiles(channel_norm_engine(),
                  gradient(f16, channels_last, {.mode = NormMode::group, .groups = 8}, false),
                  {"sm_120"});
}

class ChannelNormRuns : public testing::Test {
 protected:
  void SetUp() override {
    if (device_count() == 0) GTEST_SKIP() << driver().reason;
  }
};

// NHWC and NCHW packets, several slices, partial packets.
TEST_F(ChannelNormRuns, Forward) {
  const Dims even = {5, 24, 12, 16}, odd = {3, 7, 9, 5};
  const NormForward batch{.mode = NormMode::batch};
  for (const Layout& layout : {channels_last, row_major}) {
    expect_agrees(channel_norm_engine(), training(bf16, layout, batch, even), is_long());
    expect_agrees(channel_norm_engine(), training(f32, layout, batch, odd));
    expect_agrees(channel_norm_engine(),
                  training(f16, layout, {.mode = NormMode::group, .groups = 3}, even));
    expect_agrees(channel_norm_engine(), training(f32, layout, {.mode = NormMode::instance}, even));
    expect_agrees(channel_norm_engine(),
                  training(f32, layout, {.mode = NormMode::instance}, {2, 3, 40, 44}));
    expect_agrees(
        channel_norm_engine(),
        training(f32, layout, {.mode = NormMode::batch, .phase = NormPhase::inference}, even));
  }
}

TEST_F(ChannelNormRuns, Backward) {
  const Dims even = {5, 24, 12, 16}, odd = {3, 7, 9, 5};
  const NormBackward batch{.mode = NormMode::batch};
  for (const Layout& layout : {channels_last, row_major}) {
    expect_agrees(channel_norm_engine(), gradient(bf16, layout, batch, true, even), is_long());
    expect_agrees(channel_norm_engine(), gradient(f32, layout, batch, false, odd));
    expect_agrees(channel_norm_engine(),
                  gradient(f16, layout, {.mode = NormMode::group, .groups = 3}, false, even));
    expect_agrees(channel_norm_engine(),
                  gradient(f32, layout, {.mode = NormMode::instance}, false, even));
  }
}

// The persistent kernel with several CTAs per group: NCHW, NHWC and joined packets, all or part of
// the elements in shared memory, redundant and distributed reductions.
TEST_F(ChannelNormRuns, Kept) {
  struct Case {
    Layout layout;
    Dims images;
    std::int64_t shared_bytes;
    bool forward, backward;
  };
  for (const Case& c : {Case{row_major, {20, 3, 24, 24}, 227 << 10, true, false},
                        Case{row_major, {20, 7, 24, 24}, 30 << 10, false, true},
                        Case{row_major, {42, 16, 7, 7}, 40 << 10, true, true},
                        Case{channels_last, {6, 32, 12, 12}, 40 << 10, true, false},
                        Case{channels_last, {2, 256, 12, 12}, 60 << 10, false, true}}) {
    DeviceProps device = Device::named("cuda:0").props();
    device.compute_units = 6;
    device.shared_bytes = c.shared_bytes;
    const auto agree = [&](const Graph& graph) {
      expect_agrees(channel_norm_engine(), graph, is_long(), 3, support::Fill::plain, device);
    };
    if (c.forward || is_long())
      agree(training(bf16, c.layout, {.mode = NormMode::batch}, c.images));
    if (c.backward || is_long())
      agree(gradient(f32, c.layout, {.mode = NormMode::batch}, true, c.images, !c.forward));
  }
}

// The mean of values with an infinity is that infinity.
TEST_F(ChannelNormRuns, Infinities) {
  for (const Layout& layout : {channels_last, row_major}) {
    const Graph graph = training(f32, layout, {.mode = NormMode::batch}, {3, 8, 4, 6});
    support::Problem problem(graph, 3, support::Fill::special);
    const Device device = Device::named("cuda:0");
    EXPECT_EQ(problem.run(compile(graph, device, {.engine = "cuda.channel_norm"})), "");
  }
}

// The cooperative kernel replayed by a CUDA graph: the barrier counters are reset before every
// launch.
TEST_F(ChannelNormRuns, PersistentInGraphs) {
  const Device device = Device::named("cuda:0");
  Graph graph;
  const Value x = graph.input("x", {20, 3, 24, 24}, f32);
  graph.output("y", graph.norm(x, {.mode = NormMode::batch}).y);
  const Plan plan = compile(graph, device);
  const std::size_t count = 20 * 3 * 24 * 24;
  Memory from(device, count * 4), to(device, count * 4), workspace(device, plan.workspace_size());
  Binding binding = plan.binding();
  binding.set("x", from.data());
  binding.set("y", to.data());
  const Stream stream;
  const Executable captured(stream, [&] { plan.run(binding, workspace.data(), stream.handle()); });
  for (std::size_t seed = 1; seed < 4; ++seed) {
    std::vector<float> values(count), replayed(count), expected(count);
    for (std::size_t i = 0; i < count; ++i)
      values[i] = static_cast<float>(i * seed * 37 % 101) / 16;
    from.upload(values.data(), from.bytes());
    device.synchronize();
    captured.launch(stream);
    to.download(replayed.data(), to.bytes());
    plan.run(binding, workspace.data());
    device.synchronize();
    to.download(expected.data(), to.bytes());
    EXPECT_EQ(replayed, expected) << "data " << seed;
  }
}

}  // namespace
}  // namespace ashlar::cuda

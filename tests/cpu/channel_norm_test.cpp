// Batch, instance and group norm: modes, layouts, dtypes.
#include "cpu/plan_check.hpp"
#include "cpu/without_caches.hpp"

namespace ashlar::cpu {
namespace {

struct ChannelNormCase {
  Dims dims;
  NormMode mode;
  std::int64_t groups = 1;
  DType dtype = f32;
  Layout layout = row_major;
};

Dims channel_dims(const Dims& dims) {
  Dims parameters = Dims::filled(dims.rank(), 1);
  parameters[1] = dims[1];
  return parameters;
}

void check(const ChannelNormCase& c) {
  SCOPED_TRACE(testing::Message() << to_string(c.dims) << " mode " << static_cast<int>(c.mode)
                                  << " groups " << c.groups << " " << to_string(c.dtype));
  const DType parameters = c.dtype == f64 ? f64 : f32;
  const bool batch = c.mode == NormMode::batch;
  {
    Graph graph;
    Value x = graph.input("x", c.dims, c.dtype, c.layout);
    Value scale = graph.input("scale", channel_dims(c.dims), parameters);
    Value bias = graph.input("bias", channel_dims(c.dims), parameters);
    Value mean = batch ? graph.input("running_mean", channel_dims(c.dims), parameters) : Value{};
    Value var = batch ? graph.input("running_var", channel_dims(c.dims), parameters) : Value{};
    NormForward op;
    op.mode = c.mode;
    op.groups = c.groups;
    const NormResults results =
        graph.norm(x, op, {.scale = scale, .bias = bias, .running_mean = mean, .running_var = var});
    graph.output("y", results.y);
    graph.output("mean", results.mean);
    graph.output("inv", results.inv_variance);
    if (batch) {
      graph.output("next_mean", results.next_running_mean);
      graph.output("next_var", results.next_running_var);
    }
    PlanCheck plan(std::move(graph));
    plan.fill("x", 1.0, 3.0);
    if (batch) plan.fill("running_var", 0.5, 2.0);
    plan.expect_agrees("cpu.channel_norm");
  }
  Graph graph;
  Value x = graph.input("x", c.dims, c.dtype, c.layout);
  Value dy = graph.input("dy", c.dims, c.dtype, c.layout);
  Value scale = graph.input("scale", channel_dims(c.dims), parameters);
  NormBackward op;
  op.mode = c.mode;
  op.groups = c.groups;
  const NormGradients gradients = graph.norm_backward(x, dy, op, {.scale = scale});
  graph.output("dx", gradients.dx);
  graph.output("dscale", gradients.dscale);
  graph.output("dbias", gradients.dbias);
  PlanCheck plan(std::move(graph));
  plan.fill("x", 1.0, 3.0);
  plan.expect_agrees("cpu.channel_norm");
}

TEST(ChannelNorm, ModesAndLayouts) {
  for (const Layout& layout : {row_major, channels_last})
    for (const ChannelNormCase& c : {ChannelNormCase{{3, 12, 5, 7}, NormMode::batch},
                                     ChannelNormCase{{3, 12, 5, 7}, NormMode::instance},
                                     ChannelNormCase{{3, 12, 5, 7}, NormMode::group, 4},
                                     ChannelNormCase{{3, 12, 5, 7}, NormMode::group, 1}}) {
      ChannelNormCase with_layout = c;
      with_layout.layout = layout;
      check(with_layout);
    }
}

TEST(ChannelNorm, Dtypes) {
  for (DType dtype : kFloats) {
    check({{2, 40, 9}, NormMode::batch, 1, dtype});
    check({{2, 40, 9}, NormMode::group, 8, dtype, channels_last});
  }
}

TEST(ChannelNorm, RanksAndExtremes) {
  check({{64, 10}, NormMode::batch});
  check({{1, 3, 70, 70}, NormMode::batch});
  check({{2, 600, 3, 3}, NormMode::batch, 1, f32, channels_last});
  check({{2, 4, 3, 4, 5}, NormMode::instance});
  check({{1, 1, 1, 2}, NormMode::batch});
  check({{2, 1024, 4}, NormMode::group, 2, f32, channels_last});
}

TEST(ChannelNorm, InferenceTakesStatistics) {
  for (bool running : {false, true}) {
    Graph graph;
    Value x = graph.input("x", {2, 6, 4, 4}, f16, channels_last);
    const Dims dims = channel_dims({2, 6, 4, 4});
    Value scale = graph.input("scale", dims, f32), bias = graph.input("bias", dims, f32);
    Value mean = graph.input("mean", dims, f32), var = graph.input("var", dims, f32);
    NormForward op;
    op.mode = NormMode::batch;
    op.phase = NormPhase::inference;
    Value y =
        running
            ? graph
                  .norm(x, op,
                        {.scale = scale, .bias = bias, .running_mean = mean, .running_var = var})
                  .y
            : graph.norm(x, op, {.scale = scale, .bias = bias, .mean = mean, .inv_variance = var})
                  .y;
    graph.output("y", relu(y));
    PlanCheck plan(std::move(graph));
    plan.fill("var", 0.5, 2.0);
    plan.expect_agrees("cpu.channel_norm");
  }
}

// Dense channels-last tensors are processed as a matrix: several blocks and chunks, widths that are
// no multiple of a vector, means far from zero, any fusion.
TEST(ChannelNorm, ChannelsLastAsAMatrix) {
  for (const Device& device : {Device::cpu(), without_caches()})
    for (const Dims& dims :
         {Dims{2, 3, 41, 43}, Dims{4, 37, 30, 30}, Dims{1, 2048, 5, 3}, Dims{3, 1500, 7, 9}}) {
      Graph graph;
      const Value x = graph.input("x", dims, f32, channels_last);
      const Value scale = graph.input("scale", channel_dims(dims), f32),
                  bias = graph.input("bias", channel_dims(dims), f32);
      NormForward op;
      op.mode = NormMode::batch;
      const NormResults results = graph.norm(x + x, op, {.scale = scale, .bias = bias});
      graph.output("y", relu(results.y), {.dtype = bf16});
      graph.output("mean", results.mean);
      graph.output("inv", results.inv_variance);
      PlanCheck plan(std::move(graph));
      plan.fill("x", 100.0, 101.0);
      plan.expect_agrees("cpu.channel_norm", {}, device);
    }
}

// A statistic per element of the row, one parameter for all of them.
TEST(ChannelNorm, OneChannelManyInstances) {
  check({.dims = {37, 1, 1, 1}, .mode = NormMode::instance});
  check({.dims = {2, 1, 3, 1}, .mode = NormMode::instance});
}

// Statistics per element of the row, parameters per row.
TEST(ChannelNorm, GroupsWithSamplesInnermost) {
  check({.dims = {17, 11}, .mode = NormMode::group, .layout = Layout(Dims{1, 17})});
}

TEST(ChannelNorm, ChannelsLastInference) {
  for (const Device& device : {Device::cpu(), without_caches()}) {
    const Dims dims = {3, 70, 20, 21};
    Graph graph;
    const Value x = graph.input("x", dims, f32, channels_last);
    const Value scale = graph.input("scale", channel_dims(dims), f32),
                bias = graph.input("bias", channel_dims(dims), f32),
                mean = graph.input("mean", channel_dims(dims), f32),
                var = graph.input("var", channel_dims(dims), f32);
    NormForward op;
    op.mode = NormMode::batch;
    op.phase = NormPhase::inference;
    graph.output(
        "y",
        graph.norm(x, op, {.scale = scale, .bias = bias, .running_mean = mean, .running_var = var})
            .y);
    PlanCheck plan(std::move(graph));
    plan.fill("var", 0.5, 2.0);
    plan.expect_agrees("cpu.channel_norm", {}, device);
  }
}

}  // namespace
}  // namespace ashlar::cpu

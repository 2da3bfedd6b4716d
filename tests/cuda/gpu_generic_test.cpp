// The generic engine on a GPU, real or emulated: cases that the operation tests do not cover. Every
// operation, dtype and layout is covered by tests/ops/engine_sweep_test.cpp.
#include "cuda/gpu_check.hpp"

namespace ashlar::cuda {
namespace {

class GpuGeneric : public GpuTest {};

// A convolution with prologue and epilogue, several stores, and host scalars.
TEST_F(GpuGeneric, FusedConvolution) {
  Graph graph;
  const Value x = graph.input("x", {2, 6, 9, 7}, f16, channels_last);
  const Value w = graph.input("w", {4, 3, 3, 2}, f16);
  const Value scale = graph.scalar("scale", f32, 4);
  const Value bias = graph.input("bias", {1, 4, 1, 1}, f32);
  ConvAttributes attributes;
  attributes.padding = {1, 0};
  attributes.stride = {2, 1};
  const Value y = graph.conv(x * scale, w, attributes) + bias;
  graph.output("y", y, {.dtype = f16, .layout = channels_last});
  graph.output("mask", pointwise(PointwiseMode::cmp_gt, y, bias), {.dtype = boolean});
  expect_agrees(graph, kGenericEngine);
}

// Integers are exact: int8 convolution, and data movement of 64-bit integers.
TEST_F(GpuGeneric, Integers) {
  Graph graph;
  const Value x = graph.input("x", {1, 8, 5, 5}, i8), w = graph.input("w", {3, 8, 3, 3}, i8);
  graph.output("y", graph.conv(x, w, {}, {.dtype = i32, .compute = i32}));
  const Value words = graph.input("words", {3, 4, 5}, i64);
  graph.output("moved", graph.reshape(graph.transpose(words, {2, 0, 1}), {15, 4}));
  expect_agrees(graph, kGenericEngine, {.fill = support::Fill::whole_numbers});
}

// Few outputs of many terms: threads split them, over inner or outer axes.
TEST_F(GpuGeneric, LongReductions) {
  for (const ReductionMode mode : {ReductionMode::avg, ReductionMode::mul_no_zeros}) {
    Graph graph;
    const Value x = graph.input("x", {2, 3, 40, 31}, bf16, channels_last);
    graph.output("all", graph.reduce(x, mode), {.dtype = f32});
    graph.output("channels", graph.reduce(x, mode, {0, 2, 3}), {.dtype = f32});
    expect_agrees(graph, kGenericEngine);
  }
  for (const ReductionMode mode : {ReductionMode::min, ReductionMode::amax}) {
    Graph graph;
    Reduction op;
    op.mode = mode;
    op.axes = {1};
    const Value x = graph.input("x", {3, 5000}, e4m3);  // many equal elements
    const auto results =
        graph.apply(op, {{Reduction::x, x}}, {Reduction::y, {Reduction::index, i32}});
    graph.output("y", results[Reduction::y]);
    graph.output("index", results[Reduction::index]);
    for (const support::Fill fill : {support::Fill::plain, support::Fill::special})
      expect_agrees(graph, kGenericEngine, {.fill = fill});
  }
}

}  // namespace
}  // namespace ashlar::cuda

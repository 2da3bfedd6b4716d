// Small convolutions for the tests of cuda.conv_sm90.
#pragma once

#include "cuda/engines/engines.hpp"
#include "engine_agrees.hpp"
#include "gpu_check.hpp"
#include "odd_channels.hpp"

namespace ashlar::cuda {

struct Convolution {
  DType dtype = bf16;
  bool backward = false;
  std::int64_t images = 2, channels = 64, filters = 64, groups = 1;
  Dims extent = {8, 8}, window = {3, 3};
  ConvAttributes op = {};
  Layout layout = channels_last;
  bool fused = false;  // bias, residual, relu
  // max(2 x scale - bias, bias): a prologue with per-channel operands that maps zero to another
  // value.
  bool worked_on = false;
  bool adds_image = false;    // an image of the same shape is added first
  std::int64_t left_out = 0;  // channels of the image before and after the slice

  Graph graph() const {
    Graph graph;
    Dims x = {images, channels}, y = {images, filters}, w = {filters, channels / groups};
    for (int axis = 0; axis < extent.rank(); ++axis) {
      const auto of = [&](const Dims& values, std::int64_t absent) {
        return values.empty() ? absent : values[axis];
      };
      const std::int64_t before = of(op.padding, 0);
      const std::int64_t after = op.post_padding ? (*op.post_padding)[axis] : before;
      x.push_back(extent[axis]);
      w.push_back(window[axis]);
      y.push_back((extent[axis] + before + after - of(op.dilation, 1) * (window[axis] - 1) - 1) /
                      of(op.stride, 1) +
                  1);
    }
    Value first = input_channels(graph, backward ? y : x, left_out, dtype, layout);
    const Value second = graph.input("w", w, dtype, layout);
    if (adds_image)
      first =
          graph.pointwise(PointwiseMode::add,
                          std::array{first, graph.input("other", backward ? y : x, dtype, layout)},
                          {}, {.dtype = dtype, .layout = layout});
    if (worked_on) {
      Dims channel = backward ? y : x;
      for (int axis = 0; axis < channel.rank(); ++axis) channel[axis] = axis == 1 ? channel[1] : 1;
      const Value bias = graph.input("shift", channel, f32, layout);
      first = graph.pointwise(PointwiseMode::mul,
                              std::array{first, graph.input("scale", channel, f32, layout)}, {},
                              {.dtype = f32, .layout = layout});
      first = graph.pointwise(PointwiseMode::sub, std::array{first, bias}, {},
                              {.dtype = f32, .layout = layout});
      first = graph.pointwise(PointwiseMode::max, std::array{first, bias}, {},
                              {.dtype = dtype, .layout = layout});
    }
    Value result = backward ? graph.conv_backward_data(first, second, op, {.dims = x})
                            : graph.conv(first, second, op);
    if (fused) {
      Dims bias = backward ? x : y;
      const Value residual = graph.input("residual", bias, dtype, layout);
      for (int axis = 0; axis < bias.rank(); ++axis) bias[axis] = axis == 1 ? bias[1] : 1;
      result = relu(result + graph.input("bias", bias, f32, layout) + residual);
    }
    graph.output("y", result, {.dtype = dtype == DType::i8 ? f32 : dtype, .layout = layout});
    return graph;
  }
};

class GpuConvSm90 : public testing::Test {
 protected:
  void SetUp() override {
    if (device_count() == 0) GTEST_SKIP() << driver().reason;
    if (Device::named("cuda:0").props().compute_capability != 90) GTEST_SKIP() << "no sm_90a";
  }
  static void expect_right(const Convolution& convolution, bool all_configs = false) {
    expect_agrees(conv_sm90_engine(), convolution.graph(), all_configs);
  }
};

}  // namespace ashlar::cuda

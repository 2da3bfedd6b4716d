// Every convolution engine but Winograd, in all directions and layouts.
#include "cpu/plan_check.hpp"

namespace ashlar::cpu {
namespace {

struct ConvCase {
  Dims x, w;
  ConvAttributes attributes = {};
  const char* engine = "cpu.conv_";  // any convolution engine
};

const std::vector<ConvCase>& conv_cases() {
  static const std::vector<ConvCase> list = {
      {{2, 20, 9, 11}, {24, 20, 3, 3}, {.padding = {1, 1}}},
      {{1, 3, 17, 19}, {8, 3, 5, 5}, {.padding = {2, 2}, .stride = {2, 2}}},
      {{2, 6, 8, 7}, {5, 6, 1, 1}},
      {{1, 4, 10, 12},
       {6, 4, 3, 2},
       {.padding = {2, 0}, .post_padding = Dims{1, 3}, .stride = {1, 3}, .dilation = {2, 1}}},
      {{1, 18, 8, 8}, {36, 9, 3, 3}, {.padding = {1, 1}, .mode = ConvMode::convolution}},
      {{2, 5, 30}, {7, 5, 4}, {.padding = {3}, .stride = {2}, .dilation = {2}}},
      {{1, 3, 5, 6, 7},
       {4, 3, 3, 2, 3},
       {.padding = {1, 0, 1}, .stride = {2, 1, 2}, .mode = ConvMode::convolution}},
      {{1, 2, 4, 4}, {3, 2, 4, 4}},
      {{2, 33, 6, 7}, {33, 1, 3, 3}, {.padding = {1, 1}}, "cpu.conv_depthwise"},
      {{1, 150, 9, 9}, {150, 1, 3, 3}, {.padding = {1, 1}, .stride = {2, 2}}, "cpu.conv_depthwise"},
      {{1, 7, 9, 8},
       {21, 1, 3, 3},
       {.padding = {1, 2}, .dilation = {1, 2}, .mode = ConvMode::convolution},
       "cpu.conv_depthwise"},
      {{1, 6, 5, 6, 7}, {6, 1, 3, 3, 3}, {.padding = {1, 1, 1}}, "cpu.conv_depthwise"},
      {{2, 9, 33}, {9, 1, 5}, {.padding = {2}, .stride = {3}}, "cpu.conv_depthwise"},
  };
  return list;
}

// Winograd has tests of its own.
CompileOptions without_winograd(CompileOptions options) {
  options.allow_winograd = false;
  return options;
}

void forward(const ConvCase& c, DType dtype, bool last, CompileOptions options = {}) {
  Graph graph;
  Value x = graph.input("x", c.x, dtype, layout_of(last));
  Value w = graph.input("w", c.w, dtype, layout_of(last));
  graph.output("y", graph.conv(x, w, c.attributes));
  PlanCheck(std::move(graph)).expect_agrees(c.engine, without_winograd(options));
}

Dims result_dims(const ConvCase& c) {
  Graph graph;
  return graph.conv(graph.input("x", c.x, f32), graph.input("w", c.w, f32), c.attributes).dims();
}

void backward_data(const ConvCase& c, DType dtype, bool last, CompileOptions options = {}) {
  Graph graph;
  Value dy = graph.input("dy", result_dims(c), dtype, layout_of(last));
  Value w = graph.input("w", c.w, dtype, layout_of(last));
  graph.output("dx", graph.conv_backward_data(dy, w, c.attributes, {.dims = c.x}));
  PlanCheck(std::move(graph)).expect_agrees(c.engine, without_winograd(options));
}

void backward_filter(const ConvCase& c, DType dtype, bool last, CompileOptions options = {}) {
  Graph graph;
  Value x = graph.input("x", c.x, dtype, layout_of(last));
  Value dy = graph.input("dy", result_dims(c), dtype, layout_of(last));
  graph.output("dw", graph.conv_backward_filter(x, dy, c.attributes, {.dims = c.w}));
  PlanCheck(std::move(graph)).expect_agrees(c.engine, without_winograd(options));
}

TEST(Conv, EveryCaseInAllDirectionsAndLayouts) {
  for (const ConvCase& c : conv_cases())
    for (const bool last : {false, true}) {
      SCOPED_TRACE(testing::Message()
                   << to_string(c.x) << " by " << to_string(c.w) << (last ? " channels last" : ""));
      forward(c, f32, last);
      backward_data(c, f32, last);
      backward_filter(c, f32, last);
    }
}

TEST(Conv, Dtypes) {
  for (DType dtype : {f64, f16, bf16, e4m3})
    for (std::size_t i : {std::size_t{0}, std::size_t{8}})
      for (const bool last : {false, true}) {
        SCOPED_TRACE(testing::Message() << to_string(dtype) << " case " << i);
        forward(conv_cases()[i], dtype, last);
        backward_data(conv_cases()[i], dtype, last);
        backward_filter(conv_cases()[i], dtype, last);
      }
}

TEST(Conv, WithoutScratch) {
  CompileOptions options;
  options.workspace_limit = 0;
  for (std::size_t i : {std::size_t{0}, std::size_t{9}})
    for (const bool last : {false, true}) {
      ConvCase c = conv_cases()[i];
      if (i == 0) c.engine = "cpu.conv_implicit_gemm";
      forward(c, f32, last, options);
      backward_data(c, f32, last, options);
      backward_filter(c, f32, last, options);
    }
}

TEST(Conv, AlphaBetaAndEpilogue) {
  for (const bool last : {false, true})
    for (const std::int64_t channels : {std::int64_t{16}, std::int64_t{1}}) {
      Graph graph;
      Value x = graph.input("x", {2, 16, 7, 9}, f16, layout_of(last));
      Value w = graph.input("w", {32, channels, 3, 3}, f16, layout_of(last));
      Value z = graph.input("z", {2, 32, 7, 9}, f32, layout_of(last));
      Value bias = graph.input("bias", {1, 32, 1, 1}, f32);
      Value residual = graph.input("residual", {2, 32, 7, 9}, f16, layout_of(last));
      Value y = graph.conv(relu(x), w, {.padding = {1, 1}, .alpha = 0.5, .beta = -2.0}, {}, z);
      graph.output("y", relu(y + bias) + residual, {.dtype = f16});
      PlanCheck plan(std::move(graph));
      plan.expect_agrees(channels == 1 ? "cpu.conv_depthwise" : "cpu.conv_implicit_gemm");
    }
}

TEST(Conv, SmallGroups) {
  for (const bool last : {false, true}) {
    const ConvCase c{{2, 32, 6, 6}, {32, 4, 3, 3}, {.padding = {1, 1}}, "cpu.conv_"};
    forward(c, f32, last);
    backward_data(c, f32, last);
    backward_filter(c, f32, last);
  }
}

TEST(Conv, ZeroExtents) {
  const ConvCase c{{0, 4, 5, 5}, {6, 4, 3, 3}, {}};
  forward(c, f32, true);
  backward_data(c, f32, true);
  backward_filter(c, f32, true);
}

}  // namespace
}  // namespace ashlar::cpu

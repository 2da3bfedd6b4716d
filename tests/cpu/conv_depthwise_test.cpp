// Depthwise and small-group convolutions: channel and line tails, borders, groups that do and do
// not fill a vector, staged copies, post-ops.
#include <limits>

#include "cpu/plan_check.hpp"
#include "cpu/without_caches.hpp"

namespace ashlar::cpu {
namespace {

constexpr const char* kDepthwiseEngine = "cpu.conv_depthwise";

struct DepthwiseProblem {
  Dims x, w;
  ConvAttributes attributes = {};
};

Dims result_dims(const DepthwiseProblem& p) {
  Graph graph;
  return graph.conv(graph.input("x", p.x, f32), graph.input("w", p.w, f32), p.attributes).dims();
}

void check(const DepthwiseProblem& p, DType dtype, bool last, const CompileOptions& options = {}) {
  SCOPED_TRACE(testing::Message() << to_string(p.x) << " by " << to_string(p.w) << " "
                                  << to_string(dtype) << (last ? " channels last" : ""));
  const Layout layout = layout_of(last);
  const Dims y = result_dims(p);
  {
    Graph graph;
    Value x = graph.input("x", p.x, dtype, layout), w = graph.input("w", p.w, dtype, layout);
    graph.output("y", graph.conv(x, w, p.attributes));
    PlanCheck(std::move(graph)).expect_agrees(kDepthwiseEngine, options);
  }
  {
    Graph graph;
    Value dy = graph.input("dy", y, dtype, layout), w = graph.input("w", p.w, dtype, layout);
    graph.output("dx", graph.conv_backward_data(dy, w, p.attributes, {.dims = p.x}));
    PlanCheck(std::move(graph)).expect_agrees(kDepthwiseEngine, options);
  }
  Graph graph;
  Value x = graph.input("x", p.x, dtype, layout), dy = graph.input("dy", y, dtype, layout);
  graph.output("dw", graph.conv_backward_filter(x, dy, p.attributes, {.dims = p.w}));
  PlanCheck(std::move(graph)).expect_agrees(kDepthwiseEngine, options);
}

void check_layouts(const DepthwiseProblem& p, DType dtype = f32) {
  for (const bool last : {true, false}) check(p, dtype, last);
}

TEST(ConvDepthwise, TailsOfChannels) {
  for (const std::int64_t channels : {2, 3, 7, 15, 16, 17, 31, 33, 48, 150})
    check_layouts({{2, channels, 5, 9}, {channels, 1, 3, 3}, {.padding = {1, 1}}});
}

TEST(ConvDepthwise, TailsOfLines) {
  for (const std::int64_t width : {1, 2, 6, 7, 8, 13, 14, 15, 21, 22, 29})
    for (const std::int64_t taps : {3, 5, 7})
      check_layouts({{1, 20, 4, width},
                     {20, 1, 3, taps},
                     {.padding = {1, taps / 2}, .stride = {1, width % 2 + 1}}});
}

// Tiles of lines that share source rows: whole, partial, with non-temporal stores.
TEST(ConvDepthwise, LinesTogether) {
  for (std::int64_t height = 1; height <= 10; ++height)
    for (const std::int64_t stride : {1, 2})
      check({{1, 32, height, 12 - height},
             {32, 1, 3, 3},
             {.padding = {1, 1}, .stride = {stride, stride}}},
            f32, true);
  for (const Device& device : {Device::cpu(), without_caches()})
    for (const bool residual : {false, true}) {
      Graph graph;
      Value x = graph.input("x", {2, 48, 13, 9}, f32, channels_last);
      Value w = graph.input("w", {48, 1, 3, 3}, f32, channels_last);
      Value y = graph.conv(x, w, {.padding = {1, 1}});
      if (residual)
        y = relu(y + graph.input("bias", {1, 48, 1, 1}, f32) +
                 graph.input("residual", {2, 48, 13, 9}, f32, channels_last));
      graph.output("y", y);
      PlanCheck(std::move(graph)).expect_agrees(kDepthwiseEngine, {}, device);
    }
}

// Stride 2: every phase has its own prepacked weights.
TEST(ConvDepthwise, KeepsConstantWeights) {
  for (const bool forward : {true, false}) {
    const Dims large{2, 40, 11, 10}, small{2, 40, 6, 5}, filter{40, 1, 3, 3};
    Graph graph;
    Value x = graph.input("x", forward ? large : small, f32, channels_last);
    Value w = graph.input("w", filter, f32, channels_last);
    const ConvAttributes attributes{.padding = {1, 1}, .stride = {2, 2}};
    graph.output("y", forward ? graph.conv(x, w, attributes)
                              : graph.conv_backward_data(x, w, attributes, {.dims = large}));
    std::vector<float> in(static_cast<std::size_t>(element_count(x.dims()))), weights(40 * 9);
    fill_random(graph.tensor(graph.find_tensor("x")), in.data(), 1);
    fill_random(graph.tensor(graph.find_tensor("w")), weights.data(), 2);
    std::vector<std::vector<float>> results;
    for (const bool constant : {false, true}) {
      CompileOptions options;
      options.guard = true;
      if (constant) options.constants = {{"w", weights.data()}};
      const Plan plan = compile(graph, Device::cpu(), options);
      EXPECT_NE(plan.explain().find(kDepthwiseEngine), std::string::npos);
      std::vector<float> out(static_cast<std::size_t>(element_count(forward ? small : large)),
                             -1.0f);
      std::vector<std::byte> block(static_cast<std::size_t>(plan.workspace_size()) + 64);
      void* workspace = block.data();
      std::size_t space = block.size();
      std::align(64, block.size() - 64, workspace, space);
      plan.run({{"x", in.data()}, {"w", weights.data()}, {"y", out.data()}}, workspace);
      results.push_back(std::move(out));
    }
    EXPECT_EQ(results[0], results[1]);
  }
}

TEST(ConvDepthwise, StridesAndTapsWithoutCodeOfTheirOwn) {
  for (const std::int64_t stride : {1, 2, 3, 4})
    for (const std::int64_t taps : {1, 2, 4, 9})
      check_layouts({{1, 18, 19, 23},
                     {18, 1, taps, taps},
                     {.padding = {taps / 2, taps - 1}, .stride = {stride, stride}}});
}

TEST(ConvDepthwise, DilationAndUnequalPadding) {
  check_layouts({{2, 17, 12, 15},
                 {17, 1, 3, 5},
                 {.padding = {3, 0}, .post_padding = Dims{0, 5}, .dilation = {3, 2}}});
  check_layouts({{1, 17, 30, 31},
                 {17, 1, 3, 3},
                 {.padding = {4, 1},
                  .post_padding = Dims{2, 3},
                  .stride = {2, 3},
                  .dilation = {3, 2},
                  .mode = ConvMode::convolution}});
}

TEST(ConvDepthwise, FilterLargerThanTheImage) {
  check_layouts({{1, 16, 3, 4}, {16, 1, 9, 11}, {.padding = {4, 5}}});
  check_layouts({{1, 16, 2, 20}, {16, 1, 1, 31}, {.padding = {0, 15}}});
}

TEST(ConvDepthwise, TapsFarApart) {
  check_layouts({{1, 3, 3, 4}, {3, 1, 2, 2}, {.padding = {2000, 1}, .dilation = {4000, 1}}});
  check_layouts({{1, 3, 3, 4},
                 {3, 1, 2, 3},
                 {.padding = {1, 100000000}, .stride = {1, 1000}, .dilation = {1, 100000000}}});
}

TEST(ConvDepthwise, OneAndThreeAxes) {
  check_layouts({{1, 19, 3000}, {19, 1, 7}, {.padding = {3}}});
  check_layouts({{3, 5, 41}, {10, 1, 4}, {.padding = {3}, .stride = {2}}});
  check_layouts({{2, 21, 5, 6, 17}, {21, 1, 3, 3, 3}, {.padding = {1, 1, 1}, .stride = {2, 1, 1}}});
  check_layouts({{1, 4, 4, 5, 16}, {4, 2, 2, 3, 3}, {.padding = {1, 1, 1}, .dilation = {2, 1, 1}}});
}

TEST(ConvDepthwise, GroupsOfEveryShape) {
  struct Group {
    std::int64_t channels, filters;
  };
  for (const Group g : {Group{2, 2}, Group{4, 4}, Group{8, 8}, Group{3, 3}, Group{5, 5},
                        Group{1, 2}, Group{1, 3}, Group{2, 1}, Group{4, 2}, Group{3, 7}})
    for (const std::int64_t groups : {2, 9}) {
      const DepthwiseProblem p{{1, groups * g.channels, 6, 16},
                               {groups * g.filters, g.channels, 3, 3},
                               {.padding = {1, 1}}};
      check_layouts(p);
      if (groups == 9) check_layouts({p.x, p.w, {.stride = {2, 2}}}, bf16);
    }
}

TEST(ConvDepthwise, CopiesOfManyChannelsAndTypes) {
  check({{1, 600, 4, 9}, {600, 1, 3, 3}, {.padding = {1, 1}}}, bf16, true);
  check({{1, 530, 3, 5}, {1060, 1, 3, 3}, {.padding = {1, 1}}}, f32, true);
  for (const DType dtype : {f16, f64, e4m3}) {
    check_layouts({{2, 40, 7, 8}, {40, 1, 3, 3}, {.padding = {1, 1}}}, dtype);
    check_layouts({{1, 24, 7, 8}, {24, 4, 3, 3}, {.padding = {1, 1}}}, dtype);
  }
}

TEST(ConvDepthwise, OperandsInDifferentLayouts) {
  for (const bool x_last : {false, true}) {
    Graph graph;
    Value x = graph.input("x", {2, 24, 6, 15}, f32, layout_of(x_last));
    Value dy = graph.input("dy", {2, 24, 6, 15}, f32, layout_of(!x_last));
    graph.output("dw",
                 graph.conv_backward_filter(x, dy, {.padding = {1, 1}}, {.dims = {24, 1, 3, 3}}));
    PlanCheck(std::move(graph)).expect_agrees(kDepthwiseEngine);
  }
}

TEST(ConvDepthwise, EpiloguesInRegistersAndBeyond) {
  const auto result_of = [](Graph& graph, int kind, bool last) {
    Value x = graph.input("x", {2, 37, 6, 16}, f32, layout_of(last));
    Value w = graph.input("w", {37, 1, 3, 3}, f32, layout_of(last));
    const auto channels = [&](const char* name) { return graph.input(name, {1, 37, 1, 1}, f32); };
    const auto residual = [&](bool alike) {
      return graph.input("residual", {2, 37, 6, 16}, f32, layout_of(alike == last));
    };
    const ConvAttributes scaled{.padding = {1, 1}, .alpha = 0.5};
    Value y = graph.conv(x, w, kind == 1 ? scaled : ConvAttributes{.padding = {1, 1}});
    switch (kind) {
      case 0: return y + channels("bias");
      case 1: return relu(y + channels("bias"));
      case 2: return relu(y * channels("factor") + channels("bias") + residual(true));
      case 3: return relu(y) + residual(true);
      case 4: return (y + channels("bias")) * channels("factor");
      case 5: return relu(y + residual(false));
      case 6: return y + graph.input("rows", {1, 1, 6, 1}, f32);
      default: return sigmoid(y) * y;
    }
  };
  for (int kind = 0; kind < 8; ++kind)
    for (const bool last : {true, false}) {
      SCOPED_TRACE(testing::Message() << "kind " << kind << (last ? " channels last" : ""));
      Graph graph;
      Value y = result_of(graph, kind, last);
      graph.output("y", y);
      PlanCheck(std::move(graph)).expect_agrees(kDepthwiseEngine);
    }
}

TEST(ConvDepthwise, NonFiniteValuesDoNotSpread) {
  for (const bool last : {true, false}) {
    Graph graph;
    Value x = graph.input("x", {1, 16, 3, 18}, f32, layout_of(last));
    Value dy = graph.input("dy", {1, 16, 3, 18}, f32, layout_of(last));
    Value w = graph.input("w", {16, 1, 3, 3}, f32, layout_of(last));
    graph.output("dw",
                 graph.conv_backward_filter(x, dy, {.padding = {1, 1}}, {.dims = {16, 1, 3, 3}}));
    graph.output("y", relu(graph.conv(x, w, {.padding = {1, 1}})));
    PlanCheck plan(std::move(graph));
    std::vector<double> values(16 * 3 * 18, 0.5);
    for (std::size_t i = 17; i < values.size(); i += 18)  // the last column
      values[i] = std::numeric_limits<double>::quiet_NaN();
    plan.set("x", values);
    plan.expect_agrees(kDepthwiseEngine);
  }
}

// Results larger than the caches use non-temporal stores: an intermediate is aligned for that.
TEST(ConvDepthwise, ResultsPastTheCaches) {
  Graph graph;
  Value x = graph.input("x", {1, 64, 224, 226}, f32, channels_last);
  Value w = graph.input("w", {64, 1, 1, 3}, f32, channels_last);
  graph.output("y", graph.conv(x, w, {.padding = {0, 1}}) * 2.0);
  CompileOptions options;
  options.fuse = false;
  PlanCheck(std::move(graph)).expect_agrees(kDepthwiseEngine, options);
}

}  // namespace
}  // namespace ashlar::cpu

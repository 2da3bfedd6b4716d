// int8 convolution: signs, shapes, layouts, epilogues.
#include <array>

#include "cpu/plan_check.hpp"

namespace ashlar::cpu {
namespace {

struct ConvInt8Case {
  Dims x, w;
  ConvAttributes attributes = {};
};

const std::vector<ConvInt8Case>& int8_cases() {
  static const std::vector<ConvInt8Case> list = {
      {{2, 20, 9, 11}, {24, 20, 3, 3}, {.padding = {1, 1}}},
      {{1, 64, 15, 16}, {70, 64, 3, 3}},
      {{1, 3, 17, 19}, {8, 3, 5, 5}, {.padding = {2, 2}, .stride = {2, 2}}},
      {{2, 6, 8, 7}, {5, 6, 1, 1}},
      {{2, 16, 8, 7}, {40, 16, 1, 1}},
      {{2, 16, 9, 13}, {40, 16, 1, 1}, {.stride = {2, 2}}},
      {{2, 17, 9, 13}, {40, 17, 1, 1}, {.padding = {1, 2}, .stride = {3, 2}}},
      {{1, 4, 10, 12},
       {6, 4, 3, 2},
       {.padding = {2, 0}, .post_padding = Dims{1, 3}, .stride = {1, 3}, .dilation = {2, 1}}},
      {{1, 8, 11, 12}, {6, 8, 3, 3}, {.padding = {2, 2}, .dilation = {2, 2}}},
      {{1, 8, 20, 12}, {6, 8, 2, 3}, {.padding = {0, 1}, .stride = {5, 1}}},
      {{1, 18, 8, 8}, {36, 9, 3, 3}, {.padding = {1, 1}, .mode = ConvMode::convolution}},
      {{2, 16, 8, 8}, {36, 8, 3, 3}},
      {{2, 5, 30}, {7, 5, 4}, {.padding = {3}, .stride = {2}, .dilation = {2}}},
      {{1, 3, 5, 6, 7},
       {4, 3, 3, 2, 3},
       {.padding = {1, 0, 1}, .stride = {2, 1, 2}, .mode = ConvMode::convolution}},
      {{2, 4, 5, 6, 7}, {40, 4, 3, 2, 3}},
      {{1, 2, 4, 4}, {3, 2, 4, 4}},
  };
  return list;
}

constexpr std::pair<DType, DType> kConvPairs[] = {{u8, i8}, {i8, i8}, {u8, u8},
                                                  {i8, u8}, {i4, u4}, {i8, i4}};

void check(const ConvInt8Case& c, DType left, DType right, DType result, int layouts) {
  SCOPED_TRACE(testing::Message() << to_string(c.x) << " " << to_string(left) << " * "
                                  << to_string(c.w) << " " << to_string(right) << " -> "
                                  << to_string(result) << " layouts " << layouts);
  const auto layout = [&](int bit) { return layouts & bit ? channels_last : row_major; };
  Graph graph;
  const Value x = graph.input("x", c.x, left, layout(1));
  const Value w = graph.input("w", c.w, right, layout(2));
  graph.output("y", graph.conv(x, w, c.attributes, {.compute = i32}),
               {.dtype = result, .layout = layout(4)});
  PlanCheck plan(std::move(graph));
  plan.fill("x", -200, 300);  // saturated: many values are extreme
  plan.fill("w", -200, 300);
  // Widening small images of 4-bit values to bytes may cost more than it saves.
  plan.expect_agrees(bit_width(left) == 8 ? "cpu.conv_int8" : "cpu.conv_");
}

TEST(ConvInt8, SignsAndShapes) {
  for (const ConvInt8Case& c : int8_cases())
    for (const auto& [left, right] : kConvPairs) check(c, left, right, i32, 7);
}

TEST(ConvInt8, Layouts) {
  for (const ConvInt8Case& c : int8_cases())
    for (int layouts = 0; layouts < 7; ++layouts)
      check(c, layouts % 2 ? i8 : u8, i8, layouts % 3 ? i32 : i8, layouts);
}

TEST(ConvInt8, BlocksAndThreads) {
  for (const DType dtype : {i8, u8}) {
    check({{3, 64, 30, 28}, {64, 64, 3, 3}, {.padding = {1, 1}}}, dtype, i8, i8, 7);
    check({{2, 128, 14, 14}, {300, 128, 1, 1}}, dtype, i8, i32, 7);
    check({{2, 256, 7, 7}, {96, 256, 3, 3}, {.padding = {1, 1}}}, dtype, u8, i32, 7);
  }
}

TEST(ConvInt8, QuantisedEpilogue) {
  for (const bool last : {false, true}) {
    Graph graph;
    const Value x = graph.input("x", {2, 32, 12, 13}, u8, last ? channels_last : row_major);
    const Value w = graph.input("w", {48, 32, 3, 3}, i8, channels_last);
    const Value scale = graph.input("scale", {1, 48, 1, 1}, f32);
    const Value bias = graph.input("bias", {1, 48, 1, 1}, f32);
    const Value sum = graph.conv(x, w, {.padding = {1, 1}}, {.dtype = i32, .compute = i32});
    const Value scaled =
        graph.pointwise(PointwiseMode::mul, std::array{sum, scale}, {}, {.dtype = f32});
    graph.output("y", relu(scaled + bias),
                 {.dtype = i8, .layout = last ? channels_last : row_major});
    PlanCheck plan(std::move(graph));
    plan.fill("x", 0, 255);
    plan.fill("w", -128, 127);
    plan.fill("scale", 0, 0.001);
    plan.expect_agrees("cpu.conv_int8");
  }
}

TEST(ConvInt8, NarrowIntermediates) {
  for (const DType narrow : {e4m3, e5m2, i8}) {
    SCOPED_TRACE(to_string(narrow));
    Graph graph;
    const Value x = graph.input("x", {2, 8, 6, 7}, i8, channels_last);
    const Value w = graph.input("w", {40, 8, 3, 3}, i8, channels_last);
    const Value sum = graph.conv(x, w, {.padding = {1, 1}}, {.dtype = narrow, .compute = i32});
    graph.output("y", graph.pointwise(PointwiseMode::mul,
                                      std::array{sum, graph.input("scale", {1, 40, 1, 1}, f32)}, {},
                                      {.dtype = f32}));
    PlanCheck plan(std::move(graph));
    plan.fill("x", -9, 9);
    plan.fill("w", -9, 9);
    plan.expect_agrees("cpu.conv_int8");
  }
}

TEST(ConvInt8, AddsToWhatIsThere) {
  Graph graph;
  const Value x = graph.input("x", {2, 8, 6, 7}, i8, channels_last);
  const Value w = graph.input("w", {40, 8, 3, 3}, i8, channels_last);
  const Value z = graph.input("z", {2, 40, 6, 7}, i32);
  const Value y = graph.conv(x, w, {.padding = {1, 1}, .alpha = 3, .beta = -2},
                             {.dtype = i32, .compute = i32}, z);
  graph.output("y", y);
  PlanCheck plan(std::move(graph));
  plan.fill("x", -128, 127);
  plan.fill("w", -128, 127);
  plan.fill("z", -10000, 10000);
  plan.expect_agrees("cpu.conv_int8");
}

}  // namespace
}  // namespace ashlar::cpu

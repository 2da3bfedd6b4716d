// Nearest and linear resampling.
#include "cpu/plan_check.hpp"

namespace ashlar::cpu {
namespace {

void check(const Dims& x, const Dims& size, ResampleMode mode, bool align,
           const Layout& layout = row_major, DType dtype = f32,
           std::string_view engine = "cpu.interpolation") {
  SCOPED_TRACE(testing::Message() << to_string(x) << " to " << to_string(size) << " mode "
                                  << static_cast<int>(mode) << " " << to_string(dtype)
                                  << (align ? " aligned" : ""));
  const ResampleAttributes op{.mode = mode, .size = size, .align_corners = align};
  Graph graph;
  const Value y = graph.resample(graph.input("x", x, dtype, layout), op);
  graph.output("y", y);
  const Value dy = graph.input("dy", y.dims(), dtype, layout);
  graph.output("dx", graph.resample_backward(dy, op, {.dims = x}));
  PlanCheck(std::move(graph)).expect_agrees(engine);
}

TEST(Interpolation, UpAndDown) {
  for (const Layout& layout : {row_major, channels_last})
    for (ResampleMode mode : {ResampleMode::nearest, ResampleMode::bilinear})
      for (bool align : {false, true}) {
        check({2, 19, 21, 17}, {37, 50}, mode, align, layout);
        check({1, 33, 40, 31}, {13, 16}, mode, align, layout);
      }
}

// Rows longer than a chunk of results, and results with many sources.
TEST(Interpolation, LongRows) {
  for (ResampleMode mode : {ResampleMode::nearest, ResampleMode::bilinear}) {
    check({1, 2, 700}, {3000}, mode, false);
    check({1, 2, 9000}, {1100}, mode, false);
    check({1, 2, 3}, {3500}, mode, true);
    check({1, 2, 2, 2, 900}, {3, 1, 1900}, mode, false);
  }
}

TEST(Interpolation, Dtypes) {
  for (DType dtype : {f64, f16, bf16, e4m3})
    check({2, 9, 6, 7}, {11, 5}, ResampleMode::bilinear, false, channels_last, dtype);
  for (DType dtype : {i64, i32, i8, u8})
    check({2, 3, 6, 7}, {11, 5}, ResampleMode::nearest, false, row_major, dtype);
}

TEST(Interpolation, LongWeightedSumsGoToTheReference) {
  Graph graph;
  const Value dy = graph.input("dy", {1, 1, 5000}, f32);
  const ResampleAttributes op{.mode = ResampleMode::nearest, .size = {5000}};
  graph.output("dx", graph.resample_backward(dy, op, {.dims = {1, 1, 1}}));
  PlanCheck(std::move(graph)).expect_agrees("cpu.reference");
}

TEST(Interpolation, NeighboursWithoutWeightAreNotRead) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  Graph graph;
  const Value x = graph.input("x", {1, 1, 4}, f32);
  graph.output(
      "y", graph.resample(x, {.mode = ResampleMode::bilinear, .size = {7}, .align_corners = true}));
  PlanCheck plan(std::move(graph));
  plan.set("x", {1, kInf, 3, 4});
  plan.expect_agrees("cpu.interpolation");
  EXPECT_EQ(plan.get("y")[0], 1.0);
  EXPECT_EQ(plan.get("y")[4], 3.0);
}

TEST(Interpolation, Fused) {
  Graph graph;
  const Value x = graph.input("x", {2, 16, 8, 8}, f16, channels_last);
  const Value b = graph.input("b", {1, 16, 1, 1}, f32);
  graph.output("y",
               relu(graph.resample(x + b, {.mode = ResampleMode::bilinear, .size = {16, 16}}) - b));
  PlanCheck(std::move(graph)).expect_agrees("cpu.interpolation");
}

}  // namespace
}  // namespace ashlar::cpu

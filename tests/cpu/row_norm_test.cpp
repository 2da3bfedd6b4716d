// Layer and RMS norm.
#include "cpu/plan_check.hpp"
#include "cpu/without_caches.hpp"

namespace ashlar::cpu {
namespace {

struct RowNormCase {
  Dims dims;
  Dims axes;
  NormMode mode;
  DType dtype = f32;
  Layout layout = row_major;
};

Dims parameter_dims(const RowNormCase& c) {
  Dims dims = Dims::filled(c.dims.rank(), 1);
  for (std::int64_t axis : c.axes) dims[static_cast<int>(axis)] = c.dims[static_cast<int>(axis)];
  return dims;
}

void check(const RowNormCase& c, bool affine = true) {
  SCOPED_TRACE(testing::Message() << to_string(c.dims) << " over " << to_string(c.axes) << " "
                                  << (c.mode == NormMode::rms ? "rms " : "layer ")
                                  << to_string(c.dtype));
  const DType parameters = c.dtype == f64 ? f64 : f32;
  {
    Graph graph;
    Value x = graph.input("x", c.dims, c.dtype, c.layout);
    Value scale = affine ? graph.input("scale", parameter_dims(c), parameters) : Value{};
    Value bias = affine ? graph.input("bias", parameter_dims(c), parameters) : Value{};
    NormForward op;
    op.mode = c.mode;
    op.axes = c.axes;
    const NormResults results = graph.norm(x, op, {.scale = scale, .bias = bias});
    graph.output("y", results.y);
    if (results.mean) graph.output("mean", results.mean);
    if (results.inv_variance) graph.output("inv", results.inv_variance);
    PlanCheck plan(std::move(graph));
    plan.fill("x", 1.0, 3.0);
    plan.expect_agrees("cpu.row_norm");
  }
  {
    Graph graph;
    Value x = graph.input("x", c.dims, c.dtype, c.layout);
    Value dy = graph.input("dy", c.dims, c.dtype, c.layout);
    Value scale = affine ? graph.input("scale", parameter_dims(c), parameters) : Value{};
    NormBackward op;
    op.mode = c.mode;
    op.axes = c.axes;
    const NormGradients gradients = graph.norm_backward(x, dy, op, {.scale = scale});
    graph.output("dx", gradients.dx);
    if (gradients.dscale) graph.output("dscale", gradients.dscale);
    if (gradients.dbias) graph.output("dbias", gradients.dbias);
    PlanCheck plan(std::move(graph));
    plan.fill("x", 1.0, 3.0);
    plan.expect_agrees("cpu.row_norm");
  }
}

TEST(RowNorm, LayerAndRmsOverAnyAxes) {
  for (NormMode mode : {NormMode::layer, NormMode::rms})
    for (const Dims& axes : {Dims{2}, Dims{1, 2}, Dims{1}, Dims{0, 2}, Dims{0}})
      check({{6, 11, 70}, axes, mode});
}

TEST(RowNorm, Dtypes) {
  for (DType dtype : kFloats) {
    check({{9, 130}, {1}, NormMode::layer, dtype});
    check({{9, 130}, {1}, NormMode::rms, dtype}, false);
  }
}

TEST(RowNorm, LongRowsAndOddStrides) {
  check({{3, 5000}, {1}, NormMode::layer});
  check({{2, 50, 100}, {1, 2}, NormMode::layer});
  check({{4, 6, 10}, {2}, NormMode::layer, f32, Layout(Dims{211, 31, 3})});
  check({{4, 1}, {1}, NormMode::layer});
  check({{2, 8, 5, 6}, {1, 2, 3}, NormMode::layer, f16, channels_last});
}

// Many rows, so that the parameter gradients are summed in chunks; statistics computed or given; dx
// with non-temporal stores.
TEST(RowNorm, GradientsInOnePass) {
  for (const std::int64_t width : {1, 19, 130, 8192, 8193})
    for (const NormMode mode : {NormMode::layer, NormMode::rms})
      for (const bool given : {false, true}) {
        SCOPED_TRACE(testing::Message() << width << (given ? " given" : ""));
        const std::int64_t rows = std::max<std::int64_t>(40000 / width, 7);
        Graph graph;
        const Value x = graph.input("x", {rows, width}, f32),
                    dy = graph.input("dy", {rows, width}, f32);
        const Value scale = graph.input("scale", {1, width}, f32);
        NormBackward op;
        op.mode = mode;
        op.axes = {1};
        const bool with_mean = given && mode == NormMode::layer;
        const Value mean = with_mean ? graph.input("mean", {rows, 1}, f32) : Value{};
        const Value inv = given ? graph.input("inv", {rows, 1}, f32) : Value{};
        const NormGradients gradients =
            graph.norm_backward(x, dy, op, {.scale = scale, .mean = mean, .inv_variance = inv});
        graph.output("dx", gradients.dx);
        graph.output("dscale", gradients.dscale);
        if (gradients.dbias) graph.output("dbias", gradients.dbias);
        PlanCheck plan(std::move(graph));
        plan.fill("x", 1.0, 3.0);
        if (given) plan.fill("inv", 0.5, 2.0);
        plan.expect_agrees("cpu.row_norm");
        plan.expect_agrees("cpu.row_norm", {}, without_caches());
      }
}

TEST(RowNorm, LargeMeanKeepsItsVariance) {
  Graph graph;
  Value x = graph.input("x", {4, 1000}, f32);
  NormForward op;
  op.axes = {1};
  graph.output("y", graph.norm(x, op).y);
  PlanCheck plan(std::move(graph));
  plan.fill("x", 1000.0, 1001.0);
  plan.expect_agrees("cpu.row_norm");
}

TEST(RowNorm, FusedResidualAndActivation) {
  Graph graph;
  Value x = graph.input("x", {16, 96}, f16), r = graph.input("r", {16, 96}, f16);
  Value scale = graph.input("scale", {1, 96}, f32), bias = graph.input("bias", {1, 96}, f32);
  NormForward op;
  op.phase = NormPhase::inference;
  graph.output("y", gelu(graph.norm(x + r, op, {.scale = scale, .bias = bias}).y));
  PlanCheck plan(std::move(graph));
  plan.expect_agrees("cpu.row_norm");
  EXPECT_EQ(compile(plan.graph(), Device::cpu()).region_count(), 1);
}

// The normalised input is also an output: rows in blocks, rows longer than a buffer, boxes of
// several rows, strides.
TEST(RowNorm, WritesTheSumItNormalises) {
  for (const RowNormCase& c :
       {RowNormCase{{37, 40}, {1}, NormMode::layer, bf16},
        RowNormCase{{3, 5000}, {1}, NormMode::rms, f16},
        RowNormCase{{5, 6, 70}, {1, 2}, NormMode::layer},
        RowNormCase{{3, 8, 5, 5}, {1, 2, 3}, NormMode::rms, bf16, channels_last}}) {
    Graph graph;
    const Value sum =
        graph.input("x", c.dims, c.dtype, c.layout) + graph.input("residual", c.dims, c.dtype);
    graph.output("y", graph.norm(sum, {.mode = c.mode, .axes = c.axes}).y);
    graph.output("sum", sum);
    PlanCheck plan(std::move(graph));
    plan.expect_agrees("cpu.row_norm");
    EXPECT_EQ(compile(plan.graph(), Device::cpu()).region_count(), 1);
  }
}

TEST(RowNorm, ResultsLargerThanTheCaches) {
  for (const std::int64_t width : {5, 1000, 8192, 9001})
    for (const NormMode mode : {NormMode::layer, NormMode::rms}) {
      Graph graph;
      const Value x = graph.input("x", {7, width}, f32),
                  scale = graph.input("scale", {1, width}, f32);
      NormForward op;
      op.mode = mode;
      op.axes = {1};
      graph.output("y", graph.norm(x, op, {.scale = scale}).y);
      PlanCheck plan(std::move(graph));
      plan.fill("x", 1.0, 3.0);
      plan.expect_agrees("cpu.row_norm", {}, without_caches());
    }
}

}  // namespace
}  // namespace ashlar::cpu

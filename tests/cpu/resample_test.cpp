// Max and average pooling.
#include "cpu/plan_check.hpp"

namespace ashlar::cpu {
namespace {

struct PoolingCase {
  Dims dims;
  ResampleAttributes op;
  DType dtype = f32;
  Layout layout = row_major;
};

void check_forward(const PoolingCase& c, bool with_index = false) {
  SCOPED_TRACE(testing::Message() << to_string(c.dims) << " window " << to_string(c.op.window)
                                  << " mode " << static_cast<int>(c.op.mode) << " "
                                  << to_string(c.dtype));
  Graph graph;
  Value x = graph.input("x", c.dims, c.dtype, c.layout);
  if (with_index) {
    const auto [y, index] = graph.resample_with_index(x, c.op);
    graph.output("y", y);
    graph.output("index", index);
  } else {
    graph.output("y", graph.resample(x, c.op));
  }
  PlanCheck(std::move(graph)).expect_agrees("cpu.resample");
}

void check_backward(const PoolingCase& c, bool from_index) {
  SCOPED_TRACE(testing::Message() << to_string(c.dims) << " window " << to_string(c.op.window)
                                  << " mode " << static_cast<int>(c.op.mode)
                                  << (from_index ? " from index" : ""));
  // Forward and backward in one graph, so that the index matches its x.
  Graph graph;
  Value x = graph.input("x", c.dims, c.dtype, c.layout);
  Value index;
  Dims y_dims;
  if (c.op.mode == ResampleMode::maxpool) {
    const auto results = graph.resample_with_index(x, c.op);
    y_dims = results.first.dims();
    graph.output("y", results.first);
    graph.output("index", results.second);
    index = results.second;
  } else {
    Value y = graph.resample(x, c.op);
    y_dims = y.dims();
    graph.output("y", y);
  }
  Value dy = graph.input("dy", y_dims, c.dtype, c.layout);
  graph.output("dx", graph.resample_backward(dy, c.op, {.dims = c.dims}, from_index ? Value{} : x,
                                             from_index ? index : Value{}));
  PlanCheck(std::move(graph)).expect_agrees("cpu.resample");
}

ResampleAttributes pooling(ResampleMode mode, Dims window, Dims stride, Dims padding,
                           PaddingMode padding_mode = PaddingMode::neg_inf) {
  ResampleAttributes op;
  op.mode = mode;
  op.window = window;
  op.stride = stride;
  op.padding = padding;
  op.padding_mode = padding_mode;
  return op;
}

constexpr ResampleMode kPoolings[] = {ResampleMode::maxpool, ResampleMode::avgpool_include_padding,
                                      ResampleMode::avgpool_exclude_padding};

TEST(Resample, PoolingForwardAndBackward) {
  for (const Layout& layout : {row_major, channels_last})
    for (ResampleMode mode : kPoolings)
      for (const Dims& stride : {Dims{1, 1}, Dims{2, 2}, Dims{3, 1}}) {
        const PoolingCase c{{2, 9, 11, 13}, pooling(mode, {3, 2}, stride, {1, 1}), f32, layout};
        check_forward(c);
        check_backward(c, false);
        if (mode == ResampleMode::maxpool) {
          check_forward(c, true);
          check_backward(c, true);
        }
      }
}

TEST(Resample, PaddingModes) {
  for (const Layout& layout : {row_major, channels_last})
    for (PaddingMode padding : {PaddingMode::zero, PaddingMode::neg_inf, PaddingMode::edge}) {
      const PoolingCase c{{1, 10, 6, 7},
                          pooling(ResampleMode::maxpool, {3, 3}, {2, 2}, {2, 1}, padding),
                          f32,
                          layout};
      check_forward(c);
      check_forward(c, true);
      check_backward(c, false);
      check_backward(c, true);
    }
}

TEST(Resample, RanksAndDtypes) {
  for (ResampleMode mode : kPoolings) {
    check_forward({{2, 3, 3001}, pooling(mode, {5}, {2}, {2})});
    check_backward({{2, 3, 3001}, pooling(mode, {5}, {2}, {2})}, false);
    check_forward({{1, 2, 5, 6, 7}, pooling(mode, {2, 3, 2}, {1, 2, 2}, {1, 1, 0})});
    check_forward(
        {{2, 71, 4, 5, 6}, pooling(mode, {2, 3, 2}, {1, 2, 2}, {1, 1, 0}), f32, channels_last});
    check_forward({{2, 130, 9, 9}, pooling(mode, {9, 9}, {1, 1}, {0, 0}), f32, channels_last});
    for (DType dtype : {f64, f16, bf16, i8})
      check_forward({{2, 16, 8, 8}, pooling(mode, {2, 2}, {2, 2}, {0, 0}), dtype, channels_last});
  }
  check_forward(
      {{2, 1, 40, 40}, pooling(ResampleMode::avgpool_include_padding, {40, 40}, {1, 1}, {0, 0})});
}

TEST(Resample, MaximumOfMinusInfinityAndNaN) {
  constexpr double kInf = std::numeric_limits<double>::infinity(),
                   kNaN = std::numeric_limits<double>::quiet_NaN();
  for (const Layout& layout : {row_major, channels_last}) {
    Graph graph;
    Value x = graph.input("x", {1, 8, 2, 4}, f32, layout);
    const auto [y, index] =
        graph.resample_with_index(x, pooling(ResampleMode::maxpool, {2, 2}, {2, 2}, {1, 1}));
    graph.output("y", y);
    graph.output("index", index);
    PlanCheck plan(std::move(graph));
    std::vector<double> values(64, -kInf);
    values[5] = kNaN;
    values[6] = kNaN;
    values[20] = 1.0;
    plan.set("x", values);
    plan.expect_agrees("cpu.resample");
  }
}

TEST(Resample, Fused) {
  Graph graph;
  Value x = graph.input("x", {2, 16, 8, 8}, f16, channels_last);
  Value b = graph.input("b", {1, 16, 1, 1}, f32);
  graph.output("y", relu(graph.resample(x + b, pooling(ResampleMode::avgpool_include_padding,
                                                       {2, 2}, {2, 2}, {0, 0})) -
                         b));
  PlanCheck(std::move(graph)).expect_agrees("cpu.resample");
}

}  // namespace
}  // namespace ashlar::cpu

// Every operation on values small enough to verify manually.
#include <cmath>

#include "base/dropout.hpp"
#include "reference/harness.hpp"

namespace ashlar::reference {
namespace {

TEST(HandComputed, ConvolutionForward) {
  Graph g;
  const Value x = g.input("x", {1, 1, 3, 3}, f32), w = g.input("w", {1, 1, 2, 2}, f32);
  g.output("valid", g.conv(x, w));
  g.output("flipped", g.conv(x, w, {.mode = ConvMode::convolution}));
  g.output("padded",
           g.conv(x, w, {.padding = {1, 0}, .post_padding = Dims{0, 1}, .stride = {2, 1}}));
  g.output("dilated", g.conv(x, w, {.dilation = {2, 2}, .alpha = 3.0}));
  Evaluation e(g);
  e.set("x", {1, 2, 3, 4, 5, 6, 7, 8, 9});
  e.set("w", {1, 10, 100, 1000});
  expect_result(e, "valid", {5421, 6532, 8754, 9865});
  expect_result(e, "flipped", {1245, 2356, 4578, 5689});
  // Rows start at -1 and 1, columns at 0, 1, 2 with a zero after the last.
  expect_result(e, "padded", {2100, 3200, 300, 8754, 9865, 900 + 6});
  expect_result(e, "dilated", {3 * 9731});
}

TEST(HandComputed, GroupedConvolutionWithBlend) {
  Graph g;
  const Value x = g.input("x", {1, 4, 1}, f32), w = g.input("w", {2, 2, 1}, f32),
              z = g.input("z", {1, 2, 1}, f32);
  g.output("y", g.conv(x, w, {.alpha = 2.0, .beta = -1.0}, {}, z));
  Evaluation e(g);
  e.set("x", {1, 2, 3, 4});
  e.set("w", {10, 1, 100, 7});
  e.set("z", {5, 6});
  expect_result(e, "y", {2 * 12 - 5, 2 * 328 - 6});
}

TEST(HandComputed, ConvolutionBackward) {
  Graph g;
  const Value dy = g.input("dy", {1, 1, 2}, f32), w = g.input("w", {1, 1, 2}, f32),
              x = g.input("x", {1, 1, 4}, f32);
  const ConvAttributes stride_two{.stride = {2}};
  g.output("dx", g.conv_backward_data(dy, w, stride_two, of_dims({1, 1, 4})));
  g.output("dw", g.conv_backward_filter(x, dy, stride_two, of_dims({1, 1, 2})));
  Evaluation e(g);
  e.set("dy", {3, 5});
  e.set("w", {1, 10});
  e.set("x", {1, 2, 4, 8});
  expect_result(e, "dx", {3, 30, 5, 50});
  expect_result(e, "dw", {3 * 1 + 5 * 4, 3 * 2 + 5 * 8});
}

TEST(HandComputed, MatmulWithBroadcastAndOverrides) {
  Graph g;
  const Value a = g.input("a", {2, 2, 2}, f32), b = g.input("b", {1, 2, 2}, f32);
  g.output("c", g.matmul(a, b));
  Node node{.name = "m",
            .op = Matmul{.padding_value = -7.0},
            .inputs = {},
            .outputs = {},
            .compute = f32};
  const Value m = g.input("m", {2, 1, 1}, i32), n = g.input("n", {2, 1, 1}, i32),
              k = g.input("k", {2, 1, 1}, i32);
  node.inputs = {a.id(), b.id(), m.id(), n.id(), k.id()};
  Tensor cut;
  cut.name = "cut";
  cut.kind = TensorKind::output;
  node.outputs = {g.add_tensor(cut)};
  g.add_node(node);
  Evaluation e(g);
  e.set("a", {1, 2, 3, 4, 5, 6, 7, 8});
  e.set("b", {1, 10, 100, 1000});
  e.set("m", {1, 2});
  e.set("n", {2, 1});
  e.set("k", {2, 1});
  expect_result(e, "c", {201, 2010, 403, 4030, 605, 6050, 807, 8070});
  expect_result(e, "cut", {201, 2010, -7, -7, 5, -7, 7, -7});
}

TEST(HandComputed, Reductions) {
  const std::vector<std::pair<ReductionMode, std::vector<double>>> cases = {
      {ReductionMode::add, {-1, 3}},
      {ReductionMode::mul, {0, -36}},
      {ReductionMode::min, {-4, -4}},
      {ReductionMode::max, {3, 9}},
      {ReductionMode::amax, {4, 9}},
      {ReductionMode::avg, {-1.0 / 3, 1}},
      {ReductionMode::norm1, {7, 14}},
      {ReductionMode::mul_no_zeros, {-12, -36}},
      {ReductionMode::norm2, {5, std::sqrt(98.0)}}};
  for (const auto& [mode, expected] : cases) {
    Graph g;
    g.output("y", g.reduce(g.input("x", {2, 3}, f64), mode, {1}));
    Evaluation e(g);
    e.set("x", {3, -4, 0, 1, -4, 9});
    if (mode == ReductionMode::add) e.set("x", {3, -4, 0, 1, -4, 6});
    if (mode == ReductionMode::avg) e.set("x", {3, -4, 0, 1, -4, 6});
    expect_result(e, "y", expected, 1e-14);
  }
}

TEST(HandComputed, ReductionsOfBooleans) {
  Graph g;
  const Value x = g.input("x", {3, 4}, boolean), empty = g.input("empty", {1, 0}, boolean);
  const auto reduce = [&](const char* name, Value value, ReductionMode mode, DType dtype) {
    g.output(name, g.reduce(value, mode, {1}, {.dtype = dtype}));
  };
  reduce("any", x, ReductionMode::max, boolean);
  reduce("all", x, ReductionMode::min, boolean);
  reduce("count", x, ReductionMode::add, i64);
  reduce("share", x, ReductionMode::avg, f32);
  reduce("any of nothing", empty, ReductionMode::max, boolean);
  reduce("all of nothing", empty, ReductionMode::min, boolean);
  reduce("count of nothing", empty, ReductionMode::add, i32);
  Evaluation e(g);
  e.set("x", {0, 0, 0, 0, 0, 1, 0, 1, 1, 1, 1, 1});
  expect_result(e, "any", {0, 1, 1});
  expect_result(e, "all", {0, 0, 1});
  expect_result(e, "count", {0, 2, 4});
  expect_result(e, "share", {0, 0.5, 1});
  expect_result(e, "any of nothing", {0});
  expect_result(e, "all of nothing", {1});
  expect_result(e, "count of nothing", {0});
}

TEST(HandComputed, ReductionsOverEmptyAxes) {
  const std::vector<std::pair<ReductionMode, double>> cases = {
      {ReductionMode::add, 0},     {ReductionMode::mul, 1},   {ReductionMode::min, kInf},
      {ReductionMode::max, -kInf}, {ReductionMode::amax, 0},  {ReductionMode::avg, kNaN},
      {ReductionMode::norm1, 0},   {ReductionMode::norm2, 0}, {ReductionMode::mul_no_zeros, 1}};
  for (const auto& [mode, expected] : cases) {
    Graph g;
    g.output("y", g.reduce(g.input("x", {1, 0}, f32), mode, {1}));
    Evaluation e(g);
    expect_result(e, "y", {expected});
  }
}

TEST(HandComputed, Pooling) {
  const auto pooled = [](ResampleAttributes attributes, const std::vector<double>& expected) {
    Graph g;
    g.output("y", g.resample(g.input("x", {1, 1, 4}, f32), attributes));
    Evaluation e(g);
    e.set("x", {-4, -2, 8, 6});
    expect_result(e, "y", expected);
  };
  using enum ResampleMode;
  pooled({.mode = avgpool_include_padding, .window = {2}, .stride = {2}, .padding = {1}},
         {-2, 3, 3});
  pooled({.mode = avgpool_exclude_padding, .window = {2}, .stride = {2}, .padding = {1}},
         {-4, 3, 6});
  pooled({.mode = maxpool, .window = {2}, .stride = {2}, .padding = {1}}, {-4, 8, 6});
  pooled({.mode = maxpool,
          .window = {2},
          .stride = {2},
          .padding = {1},
          .padding_mode = PaddingMode::zero},
         {0, 8, 6});
  pooled({.mode = maxpool, .window = {3}, .stride = {1}}, {8, 8});
}

TEST(HandComputed, MaxPoolIndexTakesTheFirstMaximumAndRoutesTheGradient) {
  Graph g;
  const ResampleAttributes pool{
      .mode = ResampleMode::maxpool, .window = {2, 2}, .stride = {1, 2}, .padding = {0, 1}};
  const Value x = g.input("x", {1, 1, 2, 3}, f32), dy = g.input("dy", {1, 1, 1, 2}, f32);
  const auto [y, index] = g.resample_with_index(x, pool);
  g.output("y", y);
  g.output("index", index);
  g.output("by_index", g.resample_backward(dy, pool, of_dims({1, 1, 2, 3}), {}, index));
  g.output("by_x", g.resample_backward(dy, pool, of_dims({1, 1, 2, 3}), x));
  Evaluation e(g);
  e.set("x", {5, 1, 7, 5, 7, 2});
  e.set("dy", {10, 20});
  expect_result(e, "y", {5, 7});
  expect_result(e, "index", {1, 1});  // the window of the first output begins in the padding
  expect_result(e, "by_index", {10, 0, 20, 0, 0, 0});
  expect_result(e, "by_x", {10, 0, 20, 0, 0, 0});
}

TEST(HandComputed, MaxPoolPropagatesNaN) {
  Graph g;
  g.output("y", g.resample(g.input("x", {1, 1, 4}, f32),
                           {.mode = ResampleMode::maxpool, .window = {2}}));
  Evaluation e(g);
  e.set("x", {1, kNaN, 3, kInf});
  expect_result(e, "y", {kNaN, kInf});
}

TEST(HandComputed, Interpolation) {
  const auto resampled = [](ResampleAttributes attributes, const std::vector<double>& expected) {
    Graph g;
    g.output("y", g.resample(g.input("x", {1, 1, 2}, f64), attributes));
    Evaluation e(g);
    e.set("x", {10, 20});
    expect_result(e, "y", expected, 1e-13);
  };
  using enum ResampleMode;
  resampled({.mode = nearest, .size = {5}}, {10, 10, 10, 20, 20});
  resampled({.mode = bilinear, .size = {4}}, {10, 12.5, 17.5, 20});
  resampled({.mode = bilinear, .size = {5}, .align_corners = true}, {10, 12.5, 15, 17.5, 20});
  resampled({.mode = bilinear, .size = {1}}, {15});
  resampled({.mode = bilinear, .size = {1}, .align_corners = true}, {10});
}

TEST(HandComputed, BatchNormTraining) {
  Graph g;
  const Value x = g.input("x", {2, 1, 2}, f64), scale = g.input("scale", {1, 1, 1}, f64);
  const Value bias = g.input("bias", {1, 1, 1}, f64), mean = g.input("mean", {1, 1, 1}, f64),
              var = g.input("var", {1, 1, 1}, f64);
  NormForward norm;
  norm.mode = NormMode::batch;
  norm.epsilon = 4.0;
  norm.momentum = 0.25;
  const NormResults r =
      g.norm(x, norm, {.scale = scale, .bias = bias, .running_mean = mean, .running_var = var});
  g.output("y", r.y);
  g.output("out_mean", r.mean);
  g.output("out_inv", r.inv_variance);
  g.output("next_mean", r.next_running_mean);
  g.output("next_var", r.next_running_var);
  Evaluation e(g);
  e.set("x", {1, 3, 5, 7});  // mean 4, variance 5
  e.set("scale", {6});
  e.set("bias", {1});
  e.set("mean", {8});
  e.set("var", {3});
  expect_result(e, "y", {-5, -1, 3, 7}, 1e-14);
  expect_result(e, "out_mean", {4});
  expect_result(e, "out_inv", {1.0 / 3.0}, 1e-16);
  expect_result(e, "next_mean", {0.75 * 8 + 0.25 * 4});
  expect_result(e, "next_var", {0.75 * 3 + 0.25 * 5.0 * 4.0 / 3.0}, 1e-14);
}

TEST(HandComputed, OtherNorms) {
  const auto normed = [](NormForward norm, const std::vector<double>& expected) {
    Graph g;
    g.output("y", g.norm(g.input("x", {1, 4, 1}, f64), norm).y);
    Evaluation e(g);
    e.set("x", {1, 3, 10, 20});
    expect_result(e, "y", expected, 1e-14);
  };
  NormForward group;
  group.mode = NormMode::group;
  group.groups = 2;
  group.epsilon = 0.0;
  normed(group, {-1, 1, -1, 1});
  NormForward layer;
  layer.mode = NormMode::layer;
  layer.epsilon = 0.0;
  const double sigma = std::sqrt((7.5 * 7.5 + 5.5 * 5.5 + 1.5 * 1.5 + 11.5 * 11.5) / 4.0);
  normed(layer, {-7.5 / sigma, -5.5 / sigma, 1.5 / sigma, 11.5 / sigma});
  NormForward rms;
  rms.mode = NormMode::rms;
  rms.epsilon = 0.0;
  const double root = std::sqrt(510.0 / 4.0);
  normed(rms, {1 / root, 3 / root, 10 / root, 20 / root});
  NormForward instance;
  instance.mode = NormMode::instance;
  normed(instance, {0, 0, 0, 0});
}

TEST(HandComputed, BatchNormInferenceFromRunningStatistics) {
  Graph g;
  const Value x = g.input("x", {1, 2, 2}, f64);
  NormForward norm;
  norm.mode = NormMode::batch;
  norm.phase = NormPhase::inference;
  norm.epsilon = 1.0;
  const Value mean = g.input("mean", {1, 2, 1}, f64), var = g.input("var", {1, 2, 1}, f64);
  g.output("y", g.norm(x, norm, {.running_mean = mean, .running_var = var}).y);
  Evaluation e(g);
  e.set("x", {1, 3, 10, 20});
  e.set("mean", {1, 5});
  e.set("var", {3, 24});
  expect_result(e, "y", {0, 1, 1, 3});
}

TEST(HandComputed, Softmax) {
  Graph g;
  const Value x = g.input("x", {2, 3}, f64);
  g.output("y", g.softmax(x));
  g.output("log", g.softmax(x, {.axis = 1, .log = true}));
  g.output("columns", g.softmax(x, {.axis = 0}));
  Evaluation e(g);
  const double l2 = std::log(2.0), l5 = std::log(5.0);
  e.set("x", {0, l2, l5, -kInf, 1000, 1000});
  expect_result(e, "y", {1.0 / 8, 2.0 / 8, 5.0 / 8, 0, 0.5, 0.5}, 1e-15);
  expect_result(e, "log", {-std::log(8.0), l2 - std::log(8.0), l5 - std::log(8.0), -kInf, -l2, -l2},
                1e-12);
  expect_result(e, "columns", {1, 0, 0, 0, 1, 1}, 1e-15);
}

TEST(HandComputed, RandomNumbers) {
  Graph g;
  Rng bernoulli_op;
  bernoulli_op.probability = 0.3;
  bernoulli_op.seed = 77;
  bernoulli_op.offset = 5;
  Rng uniform_op = bernoulli_op, normal_op = bernoulli_op;
  uniform_op.distribution = RngDistribution::uniform;
  uniform_op.minimum = 2.0;
  uniform_op.maximum = 6.0;
  normal_op.distribution = RngDistribution::normal;
  normal_op.mean = 10.0;
  normal_op.standard_deviation = 2.0;
  OutputSpec in_f64;
  in_f64.dtype = f64;
  in_f64.compute = f64;
  g.output("bits", g.rng({10, 100}, bernoulli_op));
  g.output("uniform", g.rng({10, 100}, uniform_op, in_f64));
  g.output("normal", g.rng({10, 1000}, normal_op, in_f64));
  Evaluation e(g);
  e.expect_nodes_agree();
  const std::vector<double> bits = e.get("bits"), uniform = e.get("uniform"),
                            normal = e.get("normal");
  double ones = 0.0, sum = 0.0, squares = 0.0;
  for (std::size_t i = 0; i < bits.size(); ++i) {
    const double u = static_cast<double>(uniform_open(philox_element(77, 5, i)));
    EXPECT_EQ(bits[i], u < 0.3f ? 1.0 : 0.0);
    EXPECT_NEAR(uniform[i], 2.0 + 4.0 * u, 1e-14);
    ones += bits[i];
  }
  EXPECT_NEAR(ones / 1000.0, 0.3, 0.06);  // four standard deviations
  for (double value : normal) {
    sum += value - 10.0;
    squares += (value - 10.0) * (value - 10.0);
  }
  EXPECT_NEAR(sum / 10000.0, 0.0, 0.08);
  EXPECT_NEAR(squares / 10000.0, 4.0, 0.25);
  const double u = static_cast<double>(uniform_open(philox_element(77, 5, 2)));
  const double v = static_cast<double>(uniform_open(philox_element(77, 5, 3)));
  EXPECT_NEAR(
      normal[3],
      10.0 + 2.0 * std::sqrt(-2.0 * std::log(u)) * std::sin(2.0 * 3.14159265358979323846 * v),
      1e-13);
}

TEST(HandComputed, DataMovement) {
  Graph g;
  const Value x = g.input("x", {2, 3}, i32);
  g.output("reshaped", g.reshape(x, {3, -1}));
  g.output("transposed", g.transpose(x, {1, 0}));
  g.output("sliced", g.slice(x, {0, 0}, {2, 3}, {1, 2}));
  const Value parts[] = {x, g.slice(x, {0, 1}, {2, 2})};
  g.output("joined", g.concat(parts, 1));
  Evaluation e(g);
  e.set("x", {1, 2, 3, 4, 5, 6});
  expect_result(e, "reshaped", {1, 2, 3, 4, 5, 6});
  expect_result(e, "transposed", {1, 4, 2, 5, 3, 6});
  expect_result(e, "sliced", {1, 3, 4, 6});
  expect_result(e, "joined", {1, 2, 3, 2, 4, 5, 6, 5});
}

}  // namespace
}  // namespace ashlar::reference

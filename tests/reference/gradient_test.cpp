// Every backward operation against central differences of its forward, in f64.
#include "reference/harness.hpp"

namespace ashlar::reference {
namespace {

struct ConvCase {
  const char* name;
  Dims x, w;
  ConvAttributes attributes;
};

class ConvGradients : public testing::TestWithParam<ConvCase> {};

TEST_P(ConvGradients, MatchFiniteDifferences) {
  const ConvCase& test = GetParam();
  Graph f;
  const Value y = f.conv(f.input("x", test.x, f64), f.input("w", test.w, f64), test.attributes);
  f.output("y", y);
  Graph b;
  const Value dy = b.input("dy", y.dims(), f64);
  b.output("dx",
           b.conv_backward_data(dy, b.input("w", test.w, f64), test.attributes, of_dims(test.x)));
  b.output("dw",
           b.conv_backward_filter(b.input("x", test.x, f64), dy, test.attributes, of_dims(test.w)));
  Evaluation forward(f), backward(b);
  forward.fill_inputs(1);
  expect_gradients(forward, "y", backward, {"x", "w"});
}

INSTANTIATE_TEST_SUITE_P(
    All, ConvGradients,
    testing::Values(
        ConvCase{"one_axis",
                 {2, 3, 7},
                 {4, 3, 3},
                 {.padding = {1}, .post_padding = Dims{2}, .stride = {2}}},
        ConvCase{"one_axis_grouped_dilated",
                 {1, 4, 9},
                 {6, 2, 3},
                 {.padding = {2}, .dilation = {2}, .alpha = 1.5}},
        ConvCase{"two_axes",
                 {2, 2, 5, 6},
                 {3, 2, 3, 2},
                 {.padding = {1, 0}, .post_padding = Dims{0, 1}, .stride = {2, 1}}},
        ConvCase{"two_axes_flipped",
                 {1, 2, 5, 4},
                 {2, 2, 3, 2},
                 {.padding = {1, 1}, .mode = ConvMode::convolution}},
        ConvCase{"depthwise", {1, 4, 5, 5}, {8, 1, 3, 3}, {.padding = {1, 1}, .stride = {2, 2}}},
        ConvCase{"three_axes",
                 {1, 2, 4, 3, 4},
                 {2, 1, 2, 3, 2},
                 {.padding = {0, 1, 1}, .stride = {1, 2, 1}, .dilation = {2, 1, 1}}}),
    [](const auto& param_info) { return param_info.param.name; });

TEST(PointwiseGradients, MatchFiniteDifferences) {
  using M = PointwiseMode;
  Pointwise attributes;
  attributes.relu_lower_clip = -0.5;
  attributes.relu_upper_clip = 1.5;
  attributes.relu_lower_slope = 0.2;
  attributes.elu_alpha = 0.7;
  attributes.softplus_beta = 1.7;
  attributes.swish_beta = 1.3;
  for (int i = 0; i <= static_cast<int>(M::gelu_approx_tanh_fwd) - static_cast<int>(M::relu_fwd);
       ++i) {
    const auto mode_at = [&](M first) { return static_cast<M>(static_cast<int>(first) + i); };
    SCOPED_TRACE(testing::Message() << "activation " << i);
    Graph f;
    const Value x = f.input("x", {40}, f64);
    f.output("y", f.pointwise(mode_at(M::relu_fwd), std::vector{x}, attributes));
    Graph b;
    const Value operands[] = {b.input("dy", {40}, f64), b.input("x", {40}, f64)};
    b.output("dx", b.pointwise(mode_at(M::relu_bwd), operands, attributes));
    Evaluation forward(f), backward(b);
    forward.fill_inputs(3, -3.0, 3.0);
    expect_gradients(forward, "y", backward, {"x"});
  }
}

struct NormCase {
  const char* name;
  NormMode mode;
  Dims x, parameters;
  std::int64_t groups = 1;
};

class NormGradients : public testing::TestWithParam<NormCase> {};

TEST_P(NormGradients, MatchFiniteDifferences) {
  const NormCase& test = GetParam();
  NormForward norm;
  norm.mode = test.mode;
  norm.groups = test.groups;
  norm.epsilon = 0.01;
  Graph f;
  const NormResults results = f.norm(f.input("x", test.x, f64), norm,
                                     {.scale = f.input("scale", test.parameters, f64),
                                      .bias = f.input("bias", test.parameters, f64)});
  f.output("y", results.y);
  if (results.mean) f.output("mean", results.mean);
  f.output("inv_variance", results.inv_variance);
  NormBackward gradient;
  gradient.mode = test.mode;
  gradient.groups = test.groups;
  gradient.epsilon = 0.01;
  for (bool recompute : {false, true}) {
    SCOPED_TRACE(recompute ? "statistics recomputed" : "statistics given");
    Graph b;
    Value mean, inv_variance;
    if (!recompute) {
      if (results.mean) mean = b.input("mean", results.mean.dims(), f64);
      inv_variance = b.input("inv_variance", results.inv_variance.dims(), f64);
    }
    const ashlar::NormGradients gradients =
        b.norm_backward(b.input("x", test.x, f64), b.input("dy", test.x, f64), gradient,
                        {.scale = b.input("scale", test.parameters, f64),
                         .mean = mean,
                         .inv_variance = inv_variance});
    b.output("dx", gradients.dx);
    b.output("dscale", gradients.dscale);
    if (gradients.dbias) b.output("dbias", gradients.dbias);
    Evaluation forward(f), backward(b);
    forward.fill_inputs(5);
    std::vector<std::string> inputs = {"x", "scale"};
    if (gradients.dbias) inputs.push_back("bias");
    expect_gradients(forward, "y", backward, inputs);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, NormGradients,
    testing::Values(NormCase{"layer", NormMode::layer, {3, 4, 5}, {1, 4, 5}},
                    NormCase{"layer_last_axis", NormMode::layer, {3, 2, 7}, {1, 1, 7}},
                    NormCase{"rms", NormMode::rms, {3, 2, 7}, {1, 1, 7}},
                    NormCase{"ada_layer", NormMode::ada_layer, {3, 2, 7}, {3, 1, 7}},
                    NormCase{"ada_layer_image", NormMode::ada_layer, {2, 3, 4}, {2, 3, 4}},
                    NormCase{"batch", NormMode::batch, {3, 4, 2, 3}, {1, 4, 1, 1}},
                    NormCase{"instance", NormMode::instance, {2, 3, 4, 3}, {1, 3, 1, 1}},
                    NormCase{"group", NormMode::group, {2, 6, 5}, {1, 6, 1}, 3}),
    [](const auto& param_info) { return param_info.param.name; });

TEST(SoftmaxGradients, MatchFiniteDifferences) {
  for (bool log : {false, true})
    for (std::int64_t axis : {-1, 0}) {
      const SoftmaxAttributes attributes{.axis = axis, .log = log};
      Graph f;
      f.output("y", f.softmax(f.input("x", {4, 6}, f64), attributes));
      Graph b;
      b.output("dx", b.softmax_backward(b.input("y", {4, 6}, f64), b.input("dy", {4, 6}, f64),
                                        attributes));
      Evaluation forward(f), backward(b);
      forward.fill_inputs(7, -2.0, 2.0);
      expect_gradients(forward, "y", backward, {"x"});
    }
}

struct ResampleCase {
  const char* name;
  Dims x;
  ResampleAttributes attributes;
  bool by_index = false;
};

class ResampleGradients : public testing::TestWithParam<ResampleCase> {};

TEST_P(ResampleGradients, MatchFiniteDifferences) {
  const ResampleCase& test = GetParam();
  const bool maxpool = test.attributes.mode == ResampleMode::maxpool;
  Graph f;
  Value y, index;
  const Value x = f.input("x", test.x, f64);
  if (test.by_index)
    std::tie(y, index) = f.resample_with_index(x, test.attributes);
  else
    y = f.resample(x, test.attributes);
  f.output("y", y);
  if (index) f.output("index", index);
  Graph b;
  const Value dy = b.input("dy", y.dims(), f64);
  b.output("dx",
           b.resample_backward(dy, test.attributes, of_dims(test.x),
                               maxpool && !test.by_index ? b.input("x", test.x, f64) : Value(),
                               test.by_index ? b.input("index", y.dims(), i32) : Value()));
  Evaluation forward(f), backward(b);
  forward.fill_inputs(11);
  expect_gradients(forward, "y", backward, {"x"});
}

INSTANTIATE_TEST_SUITE_P(
    All, ResampleGradients,
    testing::Values(
        ResampleCase{"avg_including",
                     {2, 2, 7, 6},
                     {.mode = ResampleMode::avgpool_include_padding,
                      .window = {3, 2},
                      .stride = {2, 2},
                      .padding = {1, 1}}},
        ResampleCase{"avg_excluding",
                     {1, 2, 7, 6},
                     {.mode = ResampleMode::avgpool_exclude_padding,
                      .window = {3, 3},
                      .stride = {2, 1},
                      .padding = {2, 1},
                      .post_padding = Dims{0, 1}}},
        ResampleCase{
            "max_by_index",
            {2, 2, 7, 6},
            {.mode = ResampleMode::maxpool, .window = {3, 2}, .stride = {2, 1}, .padding = {1, 1}},
            true},
        ResampleCase{
            "max_by_x",
            {2, 2, 7, 6},
            {.mode = ResampleMode::maxpool, .window = {3, 2}, .stride = {2, 1}, .padding = {1, 1}}},
        ResampleCase{"max_zero_padding",
                     {2, 2, 9},
                     {.mode = ResampleMode::maxpool,
                      .window = {4},
                      .stride = {2},
                      .padding = {2},
                      .padding_mode = PaddingMode::zero}},
        ResampleCase{"max_edge_padding",
                     {2, 2, 9},
                     {.mode = ResampleMode::maxpool,
                      .window = {4},
                      .stride = {2},
                      .padding = {3},
                      .padding_mode = PaddingMode::edge},
                     true},
        ResampleCase{"max_three_axes",
                     {1, 1, 4, 5, 4},
                     {.mode = ResampleMode::maxpool, .window = {2, 3, 2}, .stride = {1, 2, 2}}},
        ResampleCase{"nearest_up", {1, 2, 3, 4}, {.mode = ResampleMode::nearest, .size = {7, 9}}},
        ResampleCase{"nearest_down", {1, 2, 9, 8}, {.mode = ResampleMode::nearest, .size = {4, 3}}},
        ResampleCase{"linear_up", {2, 2, 5}, {.mode = ResampleMode::bilinear, .size = {13}}},
        ResampleCase{
            "bilinear_down", {1, 2, 9, 8}, {.mode = ResampleMode::bilinear, .size = {4, 5}}},
        ResampleCase{"bilinear_corners",
                     {1, 2, 3, 4},
                     {.mode = ResampleMode::bilinear, .size = {7, 10}, .align_corners = true}},
        ResampleCase{
            "trilinear", {1, 1, 2, 3, 4}, {.mode = ResampleMode::bilinear, .size = {4, 6, 3}}},
        ResampleCase{
            "bilinear_from_one", {1, 1, 1, 3}, {.mode = ResampleMode::bilinear, .size = {4, 6}}}),
    [](const auto& param_info) { return param_info.param.name; });

}  // namespace
}  // namespace ashlar::reference

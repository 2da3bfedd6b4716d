// Numerical tests of the translation of operation descriptors, in particular of its pitfalls.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "cudnn/backend_client.hpp"

namespace {

using namespace ashlar;
using test::Attribute;
using test::BackendClient;
using test::Numbers;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::Pointwise;

constexpr auto kFloat = CUDNN_DATA_FLOAT;
constexpr auto kDescriptor = CUDNN_TYPE_BACKEND_DESCRIPTOR;

Numbers counting(std::size_t count, double first = 0, double step = 1) {
  Numbers numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = first + step * static_cast<double>(i);
  return numbers;
}

testing::Matcher<const Numbers&> near(const Numbers& expected, double error = 1e-5) {
  return Pointwise(DoubleNear(error), expected);
}

cudnnBackendDescriptor_t matmul(BackendClient& client, cudnnBackendDescriptor_t a,
                                cudnnBackendDescriptor_t b, cudnnBackendDescriptor_t c) {
  const auto descriptor =
      client.make(CUDNN_BACKEND_MATMUL_DESCRIPTOR,
                  {{CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, std::int64_t{kFloat}}});
  return client.make(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
                     {{CUDNN_ATTR_OPERATION_MATMUL_ADESC, kDescriptor, a},
                      {CUDNN_ATTR_OPERATION_MATMUL_BDESC, kDescriptor, b},
                      {CUDNN_ATTR_OPERATION_MATMUL_CDESC, kDescriptor, c},
                      {CUDNN_ATTR_OPERATION_MATMUL_DESC, kDescriptor, descriptor}});
}

cudnnBackendDescriptor_t reduction(BackendClient& client, cudnnReduceTensorOp_t mode,
                                   cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t y) {
  const auto descriptor = client.make(
      CUDNN_BACKEND_REDUCTION_DESCRIPTOR,
      {{CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, std::int64_t{kFloat}},
       {CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, std::int64_t{mode}}});
  return client.make(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
                     {{CUDNN_ATTR_OPERATION_REDUCTION_XDESC, kDescriptor, x},
                      {CUDNN_ATTR_OPERATION_REDUCTION_YDESC, kDescriptor, y},
                      {CUDNN_ATTR_OPERATION_REDUCTION_DESC, kDescriptor, descriptor}});
}

// --- pointwise

struct PointwiseCase {
  cudnnPointwiseMode_t mode;
  double (*expected)(double x, double b);
};
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
const PointwiseCase kPointwise[] = {
    {CUDNN_POINTWISE_ADD, [](double x, double b) { return x + b; }},
    {CUDNN_POINTWISE_MUL, [](double x, double b) { return x * b; }},
    {CUDNN_POINTWISE_MIN, [](double x, double b) { return std::min(x, b); }},
    {CUDNN_POINTWISE_MAX, [](double x, double b) { return std::max(x, b); }},
    {CUDNN_POINTWISE_ADD_SQUARE, [](double x, double b) { return x + b * b; }},
    {CUDNN_POINTWISE_DIV, [](double x, double b) { return x / b; }},
    {CUDNN_POINTWISE_MOD, [](double x, double b) { return std::fmod(x, b); }},
    {CUDNN_POINTWISE_POW, [](double x, double b) { return std::pow(x, b); }},
    {CUDNN_POINTWISE_SUB, [](double x, double b) { return x - b; }},
    {CUDNN_POINTWISE_ATAN2, [](double x, double b) { return std::atan2(x, b); }},
    {CUDNN_POINTWISE_SQRT, [](double x, double) { return std::sqrt(x); }},
    {CUDNN_POINTWISE_ABS, [](double x, double) { return std::fabs(x); }},
    {CUDNN_POINTWISE_CEIL, [](double x, double) { return std::ceil(x); }},
    {CUDNN_POINTWISE_COS, [](double x, double) { return std::cos(x); }},
    {CUDNN_POINTWISE_EXP, [](double x, double) { return std::exp(x); }},
    {CUDNN_POINTWISE_FLOOR, [](double x, double) { return std::floor(x); }},
    {CUDNN_POINTWISE_LOG, [](double x, double) { return std::log(x); }},
    {CUDNN_POINTWISE_NEG, [](double x, double) { return -x; }},
    {CUDNN_POINTWISE_RSQRT, [](double x, double) { return 1 / std::sqrt(x); }},
    {CUDNN_POINTWISE_SIN, [](double x, double) { return std::sin(x); }},
    {CUDNN_POINTWISE_TAN, [](double x, double) { return std::tan(x); }},
    {CUDNN_POINTWISE_ERF, [](double x, double) { return std::erf(x); }},
    {CUDNN_POINTWISE_IDENTITY, [](double x, double) { return x; }},
    {CUDNN_POINTWISE_RECIPROCAL, [](double x, double) { return 1 / x; }},
    {CUDNN_POINTWISE_RELU_FWD, [](double x, double) { return std::max(x, 0.0); }},
    {CUDNN_POINTWISE_TANH_FWD, [](double x, double) { return std::tanh(x); }},
    {CUDNN_POINTWISE_SIGMOID_FWD, [](double x, double) { return sigmoid(x); }},
    {CUDNN_POINTWISE_ELU_FWD, [](double x, double) { return x > 0 ? x : std::expm1(x); }},
    {CUDNN_POINTWISE_GELU_FWD,
     [](double x, double) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }},
    {CUDNN_POINTWISE_SOFTPLUS_FWD, [](double x, double) { return std::log1p(std::exp(x)); }},
    {CUDNN_POINTWISE_SWISH_FWD, [](double x, double) { return x * sigmoid(x); }},
    // Backward modes: x is dy, b is the input of the activation.
    {CUDNN_POINTWISE_RELU_BWD, [](double dy, double x) { return x > 0 ? dy : 0; }},
    {CUDNN_POINTWISE_TANH_BWD,
     [](double dy, double x) { return dy * (1 - std::tanh(x) * std::tanh(x)); }},
    {CUDNN_POINTWISE_SIGMOID_BWD,
     [](double dy, double x) { return dy * sigmoid(x) * (1 - sigmoid(x)); }},
    {CUDNN_POINTWISE_ELU_BWD, [](double dy, double x) { return x > 0 ? dy : dy * std::exp(x); }},
    {CUDNN_POINTWISE_SOFTPLUS_BWD, [](double dy, double x) { return dy * sigmoid(x); }},
    {CUDNN_POINTWISE_SWISH_BWD,
     [](double dy, double x) { return dy * (sigmoid(x) + x * sigmoid(x) * (1 - sigmoid(x))); }},
};

TEST(Translate, PointwiseModesComputeTheirNames) {
  for (const PointwiseCase& row : kPointwise) {
    SCOPED_TRACE(static_cast<int>(row.mode));
    BackendClient client;
    const bool is_unary =
        (row.mode >= CUDNN_POINTWISE_RELU_FWD &&
         row.mode <= CUDNN_POINTWISE_GELU_APPROX_TANH_FWD) ||
        row.mode == CUDNN_POINTWISE_SQRT ||
        (row.mode >= CUDNN_POINTWISE_ABS && row.mode <= CUDNN_POINTWISE_RECIPROCAL);
    const auto x = client.tensor(1, kFloat, {1, 5, 1}), b = client.tensor(2, kFloat, {1, 5, 1}),
               y = client.tensor(3, kFloat, {1, 5, 1});
    const Numbers xs = {0.5, 1.25, 2, 0.75, 3.5}, bs = {2, -0.5, 1.5, 0.25, -2};
    Numbers expected;
    for (std::size_t i = 0; i < xs.size(); ++i) expected.push_back(row.expected(xs[i], bs[i]));
    if (row.mode == CUDNN_POINTWISE_MOD) continue;  // the sign of a remainder is a convention
    const auto after =
        client.run(client.plan({client.pointwise(row.mode, x, is_unary ? nullptr : b, y)}),
                   {{1, xs}, {2, bs}, {3, Numbers(5)}});
    EXPECT_THAT(after.at(3), near(expected, 2e-5));
  }
}

TEST(Translate, SelectReturnsXWhereThePredicateIsTrue) {
  BackendClient client;
  const auto x = client.tensor(1, kFloat, {1, 4, 1}), b = client.tensor(2, kFloat, {1, 1, 1}),
             y = client.tensor(3, kFloat, {1, 4, 1}),
             t = client.tensor(4, CUDNN_DATA_BOOLEAN, {1, 4, 1});
  const auto after =
      client.run(client.plan({client.pointwise(CUDNN_POINTWISE_BINARY_SELECT, x, b, y, t)}),
                 {{1, {1, 2, 3, 4}}, {2, {-9}}, {3, Numbers(4)}, {4, {1, 0, 0, 1, 0, 0, 0, 0}}});
  EXPECT_THAT(after.at(3), ElementsAre(1, -9, -9, 4));
}

TEST(Translate, ActivationGradientsCanReadTheOutput) {
  for (const auto mode :
       {CUDNN_POINTWISE_TANH_BWD, CUDNN_POINTWISE_SIGMOID_BWD, CUDNN_POINTWISE_RELU_BWD,
        CUDNN_POINTWISE_ELU_BWD, CUDNN_POINTWISE_SOFTPLUS_BWD}) {
    SCOPED_TRACE(static_cast<int>(mode));
    BackendClient client;
    const double x = mode == CUDNN_POINTWISE_RELU_BWD ? -1 : -0.5;
    const auto dy = client.tensor(1, kFloat, {1, 1, 1}), y = client.tensor(2, kFloat, {1, 1, 1}),
               dx = client.tensor(3, kFloat, {1, 1, 1});
    const auto descriptor =
        client.make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR,
                    {{CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, std::int64_t{mode}},
                     {CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, std::int64_t{kFloat}}});
    const auto operation =
        client.make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
                    {{CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, kDescriptor, descriptor},
                     {CUDNN_ATTR_OPERATION_POINTWISE_DYDESC, kDescriptor, dy},
                     {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, kDescriptor, y},
                     {CUDNN_ATTR_OPERATION_POINTWISE_DXDESC, kDescriptor, dx}});
    const auto [result, slope] = [&]() -> std::pair<double, double> {
      switch (mode) {
        case CUDNN_POINTWISE_TANH_BWD: return {std::tanh(x), 1 - std::tanh(x) * std::tanh(x)};
        case CUDNN_POINTWISE_SIGMOID_BWD: return {sigmoid(x), sigmoid(x) * (1 - sigmoid(x))};
        case CUDNN_POINTWISE_ELU_BWD: return {std::expm1(x), std::exp(x)};
        case CUDNN_POINTWISE_SOFTPLUS_BWD: return {std::log1p(std::exp(x)), sigmoid(x)};
        default: return {0.0, 0.0};
      }
    }();
    const auto after = client.run(client.plan({operation}), {{1, {3}}, {2, {result}}, {3, {0}}});
    EXPECT_THAT(after.at(3), near({3 * slope}));
  }
}

// --- shapes

TEST(Translate, ReshapeReadsTheSameMemory) {
  BackendClient client;
  // The same dims with swapped strides: a transpose.
  const auto x = client.tensor(1, kFloat, {1, 2, 2}),
             turned =
                 client.tensor(2, kFloat, {1, 2, 2}, {.strides = {4, 1, 2}, .is_virtual = true}),
             y = client.tensor(3, kFloat, {1, 2, 2});
  const auto reshape = client.make(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
                                   {{CUDNN_ATTR_OPERATION_RESHAPE_XDESC, kDescriptor, x},
                                    {CUDNN_ATTR_OPERATION_RESHAPE_YDESC, kDescriptor, turned}});
  const auto copy = client.pointwise(CUDNN_POINTWISE_IDENTITY, turned, nullptr, y);
  // Operations may come in any order.
  const auto after = client.run(client.plan({copy, reshape}), {{1, {1, 2, 3, 4}}, {3, Numbers(4)}});
  EXPECT_THAT(after.at(3), ElementsAre(1, 3, 2, 4));
}

TEST(Translate, GroupedQueriesShareKeyHeads) {
  BackendClient client;
  const auto a = client.tensor(1, kFloat, {1, 4, 1, 1}), b = client.tensor(2, kFloat, {1, 2, 1, 1}),
             c = client.tensor(3, kFloat, {1, 4, 1, 1}),
             sums = client.tensor(4, kFloat, {1, 2, 1, 1});
  const auto after = client.run(
      client.plan({matmul(client, a, b, c), reduction(client, CUDNN_REDUCE_TENSOR_ADD, c, sums)}),
      {{1, {1, 2, 3, 4}}, {2, {10, 100}}, {3, Numbers(4)}, {4, Numbers(2)}});
  EXPECT_THAT(after.at(3), ElementsAre(10, 20, 300, 400));
  EXPECT_THAT(after.at(4), ElementsAre(30, 700));
}

TEST(Translate, OneTensorMayBeReadInTwoShapes) {
  BackendClient client;
  const auto a = client.tensor(1, kFloat, {1, 2, 2}),
             turned = client.tensor(1, kFloat, {1, 2, 2}, {.strides = {4, 1, 2}}),
             c = client.tensor(2, kFloat, {1, 2, 2});
  const auto after =
      client.run(client.plan({matmul(client, a, turned, c)}), {{1, {1, 2, 3, 4}}, {2, Numbers(4)}});
  EXPECT_THAT(after.at(2), ElementsAre(5, 11, 11, 25));  // a a^T
}

TEST(Translate, VectorsOfChannels) {
  BackendClient client;
  // 8 channels of 2 positions, in vectors of 4: [1, 2 vectors, 1, 2 positions] of 4 each.
  const auto x = client.tensor(1, CUDNN_DATA_INT8, {1, 2, 1, 2}, {.vector = 4}),
             y = client.tensor(2, kFloat, {1, 8, 1, 2});
  const auto after =
      client.run(client.plan({client.pointwise(CUDNN_POINTWISE_IDENTITY, x, nullptr, y)}),
                 {{1, counting(16)}, {2, Numbers(16)}});
  Numbers expected(16);
  for (int channel = 0; channel < 8; ++channel)
    for (int index = 0; index < 2; ++index)
      expected[static_cast<std::size_t>(channel * 2 + index)] =
          channel / 4 * 8 + index * 4 + channel % 4;
  EXPECT_EQ(after.at(2), expected);
}

TEST(Translate, RaggedRowsAreReadAndWrittenInPlace) {
  BackendClient client;
  // Two sequences of at most 3 positions with 1 head and 2 elements: 2 and 3 positions to read,
  // room for 3 and 3 to write.
  const auto from = client.tensor(10, CUDNN_DATA_INT32, {3, 1, 1, 1}),
             to = client.tensor(11, CUDNN_DATA_INT32, {3, 1, 1, 1});
  const auto x = client.tensor(1, kFloat, {2, 1, 3, 2},
                               {.strides = {6, 2, 2, 1}, .ragged_offset = from}),
             y = client.tensor(2, kFloat, {2, 1, 3, 2},
                               {.strides = {6, 2, 2, 1}, .ragged_offset = to});
  const auto after =
      client.run(client.plan({client.pointwise(CUDNN_POINTWISE_NEG, x, nullptr, y)}),
                 {{1, counting(12, 1)}, {2, Numbers(12, 77)}, {10, {0, 4, 10}}, {11, {0, 6, 12}}});
  EXPECT_THAT(after.at(2), ElementsAre(-1, -2, -3, -4, 0, 0, -5, -6, -7, -8, -9, -10));
}

// --- other operations

TEST(Translate, ConvolutionBlendsWithThePreviousResult) {
  BackendClient client;
  const auto x = client.tensor(1, kFloat, {1, 1, 3}), w = client.tensor(2, kFloat, {1, 1, 2}),
             y = client.tensor(3, kFloat, {1, 1, 3});
  const std::vector<std::int64_t> none = {0}, one = {1};
  const auto convolution =
      client.make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR,
                  {{CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, std::int64_t{kFloat}},
                   {CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE,
                    std::int64_t{CUDNN_CONVOLUTION}},
                   {CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, std::int64_t{1}},
                   {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, one},
                   {CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, none},
                   {CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, one},
                   {CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, one}});
  const auto operation =
      client.make(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                  {{CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, kDescriptor, convolution},
                   {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, kDescriptor, x},
                   {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, kDescriptor, w},
                   {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, kDescriptor, y},
                   {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, 2.0},
                   {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, 0.5}});
  const auto after =
      client.run(client.plan({operation}), {{1, {1, 2, 3}}, {2, {10, 1}}, {3, {100, 200, 300}}});
  // The filter is flipped: x[i - 1] * 1 + x[i] * 10.
  EXPECT_THAT(after.at(3), ElementsAre(2 * 10 + 50, 2 * 21 + 100, 2 * 32 + 150));
}

TEST(Translate, LayerNormAxesFollowFromItsStatistics) {
  BackendClient client;
  // Over both channels and positions (the statistics say so), with a scale per channel.
  const auto x = client.tensor(1, kFloat, {1, 2, 2}), scale = client.tensor(2, kFloat, {1, 2, 1}),
             bias = client.tensor(3, kFloat, {1, 2, 1}),
             epsilon = client.tensor(4, kFloat, {1, 1, 1}, {.is_by_value = true}),
             y = client.tensor(5, kFloat, {1, 2, 2}), mean = client.tensor(6, kFloat, {1, 1, 1}),
             inv = client.tensor(7, kFloat, {1, 1, 1});
  const auto operation = client.make(
      CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR,
      {{CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_TYPE_NORM_MODE, std::int64_t{CUDNN_LAYER_NORM}},
       {CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_TYPE_NORM_FWD_PHASE,
        std::int64_t{CUDNN_NORM_FWD_TRAINING}},
       {CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, kDescriptor, x},
       {CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, kDescriptor, scale},
       {CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC, kDescriptor, bias},
       {CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC, kDescriptor, epsilon},
       {CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, kDescriptor, y},
       {CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC, kDescriptor, mean},
       {CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC, kDescriptor, inv}});
  const auto after = client.run(client.plan({operation}), {{1, {1, 3, 5, 7}},
                                                           {2, {1, 10}},
                                                           {3, {0, 100}},
                                                           {4, {0}},
                                                           {5, Numbers(4)},
                                                           {6, {0}},
                                                           {7, {0}}});
  const double s = 1 / std::sqrt(5.0);
  EXPECT_THAT(after.at(6), near({4}));
  EXPECT_THAT(after.at(7), near({s}));
  EXPECT_THAT(after.at(5), near({-3 * s, -s, 100 + 10 * s, 100 + 30 * s}, 1e-4));
}

TEST(Translate, SeedsAreScalarsOrTensors) {
  const auto draw = [](bool by_tensor) {
    BackendClient client;
    const auto y = client.tensor(1, kFloat, {1, 8, 8}),
               seed = client.tensor(2, CUDNN_DATA_INT64, {1, 1, 1});
    const auto rng =
        client.make(CUDNN_BACKEND_RNG_DESCRIPTOR,
                    {{CUDNN_ATTR_RNG_DISTRIBUTION, CUDNN_TYPE_RNG_DISTRIBUTION,
                      std::int64_t{CUDNN_RNG_DISTRIBUTION_BERNOULLI}},
                     {CUDNN_ATTR_RNG_BERNOULLI_DIST_PROBABILITY, CUDNN_TYPE_DOUBLE, 0.5}});
    const Attribute given =
        by_tensor ? Attribute{CUDNN_ATTR_OPERATION_RNG_SEED, kDescriptor, seed}
                  : Attribute{CUDNN_ATTR_OPERATION_RNG_SEED, CUDNN_TYPE_INT64, std::int64_t{42}};
    const auto operation = client.make(CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR,
                                       {{CUDNN_ATTR_OPERATION_RNG_YDESC, kDescriptor, y},
                                        {CUDNN_ATTR_OPERATION_RNG_DESC, kDescriptor, rng},
                                        given});
    return client.run(client.plan({operation}), {{1, Numbers(64)}, {2, {42}}}).at(1);
  };
  const Numbers numbers = draw(false);
  EXPECT_EQ(numbers, draw(true));
  const double ones = std::accumulate(numbers.begin(), numbers.end(), 0.0);
  EXPECT_GT(ones, 16);
  EXPECT_LT(ones, 48);
}

TEST(Translate, SignalsForwardDataAndSetTheirFlag) {
  BackendClient client;
  const auto x = client.tensor(1, kFloat, {1, 2, 1}), y = client.tensor(2, kFloat, {1, 2, 1}),
             flag = client.tensor(3, CUDNN_DATA_INT32, {1, 1, 1});
  const auto operation = client.make(
      CUDNN_BACKEND_OPERATION_SIGNAL_DESCRIPTOR,
      {{CUDNN_ATTR_OPERATION_SIGNAL_MODE, CUDNN_TYPE_SIGNAL_MODE, std::int64_t{CUDNN_SIGNAL_SET}},
       {CUDNN_ATTR_OPERATION_SIGNAL_FLAGDESC, kDescriptor, flag},
       {CUDNN_ATTR_OPERATION_SIGNAL_VALUE, CUDNN_TYPE_INT64, std::int64_t{7}},
       {CUDNN_ATTR_OPERATION_SIGNAL_XDESC, kDescriptor, x},
       {CUDNN_ATTR_OPERATION_SIGNAL_YDESC, kDescriptor, y}});
  const auto after = client.run(client.plan({operation}), {{1, {4, 5}}, {2, {0, 0}}, {3, {0}}});
  EXPECT_THAT(after.at(2), ElementsAre(4, 5));
  EXPECT_THAT(after.at(3), ElementsAre(7));
}

TEST(Translate, PoolingWindowsThatContainOnlyPadding) {
  BackendClient client;
  const auto x = client.tensor(1, kFloat, {1, 1, 2, 1}), y = client.tensor(2, kFloat, {1, 1, 4, 1});
  const std::vector<cudnnFraction_t> one_by_one = {{1, 1}, {1, 1}}, pad = {{1, 1}, {0, 1}};
  const auto resample = client.make(
      CUDNN_BACKEND_RESAMPLE_DESCRIPTOR,
      {{CUDNN_ATTR_RESAMPLE_MODE, CUDNN_TYPE_RESAMPLE_MODE, std::int64_t{CUDNN_RESAMPLE_MAXPOOL}},
       {CUDNN_ATTR_RESAMPLE_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, std::int64_t{kFloat}},
       {CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS, CUDNN_TYPE_INT64, std::int64_t{2}},
       {CUDNN_ATTR_RESAMPLE_PADDING_MODE, CUDNN_TYPE_PADDING_MODE, std::int64_t{CUDNN_ZERO_PAD}},
       {CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, CUDNN_TYPE_FRACTION, one_by_one},
       {CUDNN_ATTR_RESAMPLE_STRIDES, CUDNN_TYPE_FRACTION, one_by_one},
       {CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, CUDNN_TYPE_FRACTION, pad},
       {CUDNN_ATTR_RESAMPLE_POST_PADDINGS, CUDNN_TYPE_FRACTION, pad}});
  const auto operation =
      client.make(CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR,
                  {{CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC, kDescriptor, x},
                   {CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC, kDescriptor, y},
                   {CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC, kDescriptor, resample}});
  const auto after = client.run(client.plan({operation}), {{1, {-5, -6}}, {2, Numbers(4)}});
  EXPECT_THAT(after.at(2), ElementsAre(0, -5, -6, 0));
}

}  // namespace

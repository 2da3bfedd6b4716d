// The group dimension of convolutions: x [N, G, C, ...], w [G, K, C, ...], y [N, G, K, ...].
// Clients may give it, and read it back where they did not (recorded answers of NVIDIA's
// cuDNN 9.19).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>

#include "cudnn/backend_client.hpp"

namespace {

using namespace ashlar;
using test::BackendClient;
using test::Numbers;
using testing::ElementsAre;
using Extents = std::vector<std::int64_t>;

constexpr auto kDescriptor = CUDNN_TYPE_BACKEND_DESCRIPTOR;

struct Names {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t alpha, beta, convolution, x, w, y;
};
constexpr Names kForward = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
                            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y};
constexpr Names kBackwardData = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                                 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                                 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
                                 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                                 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                                 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                                 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY};
constexpr Names kBackwardFilter = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
                                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY};

struct Tensors {
  cudnnBackendDescriptor_t x, w, y;
};

// A convolution with a padding of 1.
cudnnBackendDescriptor_t convolution(BackendClient& client, const Names& names, std::int64_t axes,
                                     const Tensors& tensors, double beta = 0.0) {
  const Extents ones(static_cast<std::size_t>(axes), 1);
  const auto descriptor = client.make(
      CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR,
      {{CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, std::int64_t{CUDNN_DATA_FLOAT}},
       {CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE,
        std::int64_t{CUDNN_CROSS_CORRELATION}},
       {CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, axes},
       {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, ones},
       {CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, ones},
       {CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, ones},
       {CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, ones}});
  return client.make(names.type, {{names.alpha, CUDNN_TYPE_DOUBLE, 1.0},
                                  {names.beta, CUDNN_TYPE_DOUBLE, beta},
                                  {names.convolution, kDescriptor, descriptor},
                                  {names.x, kDescriptor, tensors.x},
                                  {names.w, kDescriptor, tensors.w},
                                  {names.y, kDescriptor, tensors.y}});
}

// A descriptor that an operation holds, read into a new one.
class ReadBack {
 public:
  ReadBack(cudnnBackendDescriptor_t operation, cudnnBackendAttributeName_t name,
           cudnnBackendDescriptorType_t type = CUDNN_BACKEND_TENSOR_DESCRIPTOR) {
    EXPECT_EQ(cudnnBackendCreateDescriptor(type, &descriptor_), CUDNN_STATUS_SUCCESS);
    std::int64_t count = 0;
    EXPECT_EQ(cudnnBackendGetAttribute(operation, name, kDescriptor, 1, &count, &descriptor_),
              CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(count, 1);
  }
  ~ReadBack() { cudnnBackendDestroyDescriptor(descriptor_); }
  ReadBack(const ReadBack&) = delete;
  ReadBack& operator=(const ReadBack&) = delete;

  cudnnBackendDescriptor_t descriptor() const { return descriptor_; }
  Extents integers(cudnnBackendAttributeName_t name) const {
    Extents values(CUDNN_DIM_MAX);
    std::int64_t count = 0;
    EXPECT_EQ(cudnnBackendGetAttribute(descriptor_, name, CUDNN_TYPE_INT64, CUDNN_DIM_MAX, &count,
                                       values.data()),
              CUDNN_STATUS_SUCCESS);
    values.resize(static_cast<std::size_t>(count));
    return values;
  }
  Extents dims() const { return integers(CUDNN_ATTR_TENSOR_DIMENSIONS); }
  Extents strides() const { return integers(CUDNN_ATTR_TENSOR_STRIDES); }

 private:
  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

Tensors tensors_of(BackendClient& client, const Dims& x, const Dims& w, const Dims& y,
                   const std::array<Dims, 3>& strides = {}) {
  return {client.tensor(1, CUDNN_DATA_FLOAT, x, {.strides = strides[0]}),
          client.tensor(2, CUDNN_DATA_FLOAT, w, {.strides = strides[1]}),
          client.tensor(3, CUDNN_DATA_FLOAT, y, {.strides = strides[2]})};
}

TEST(CudnnConvolutionGroups, AreReadBackAsADimension) {
  for (const Names& names : {kForward, kBackwardData, kBackwardFilter}) {
    BackendClient client;
    const Tensors plain = tensors_of(client, {8, 64, 14, 14}, {32, 16, 3, 3}, {8, 32, 14, 14});
    const auto operation = convolution(client, names, 2, plain);
    const ReadBack x(operation, names.x), w(operation, names.w), y(operation, names.y);
    EXPECT_THAT(x.dims(), ElementsAre(8, 4, 16, 14, 14));
    EXPECT_THAT(x.strides(), ElementsAre(12544, 3136, 196, 14, 1));
    EXPECT_THAT(w.dims(), ElementsAre(4, 8, 16, 3, 3));
    EXPECT_THAT(w.strides(), ElementsAre(1152, 144, 9, 3, 1));
    EXPECT_THAT(y.dims(), ElementsAre(8, 4, 8, 14, 14));
    EXPECT_THAT(y.strides(), ElementsAre(6272, 1568, 196, 14, 1));
    // What was read makes the same operation again.
    const auto again =
        convolution(client, names, 2, {x.descriptor(), w.descriptor(), y.descriptor()});
    EXPECT_THAT(ReadBack(again, names.w).dims(), ElementsAre(4, 8, 16, 3, 3));
  }
}

TEST(CudnnConvolutionGroups, OneGroupIsADimensionToo) {
  BackendClient client;
  const Tensors plain = tensors_of(client, {2, 6, 5, 5}, {4, 6, 3, 3}, {2, 4, 5, 5},
                                   {Dims{150, 1, 30, 6}, Dims{54, 1, 18, 6}, Dims{100, 1, 20, 4}});
  const auto operation = convolution(client, kForward, 2, plain);
  const ReadBack x(operation, kForward.x), w(operation, kForward.w);
  EXPECT_THAT(x.dims(), ElementsAre(2, 1, 6, 5, 5));
  EXPECT_THAT(x.strides(), ElementsAre(150, 6, 1, 30, 6));
  EXPECT_THAT(w.dims(), ElementsAre(1, 4, 6, 3, 3));
  EXPECT_THAT(w.strides(), ElementsAre(216, 54, 1, 18, 6));
}

TEST(CudnnConvolutionGroups, OneAxisIsReadBackAsTwo) {
  BackendClient client;
  const Tensors plain = tensors_of(client, {8, 64, 14}, {32, 64, 3}, {8, 32, 14},
                                   {Dims{90000, 1000, 3}, Dims{192, 1, 64}, Dims{}});
  const auto operation = convolution(client, kForward, 1, plain);
  const ReadBack x(operation, kForward.x), w(operation, kForward.w);
  EXPECT_THAT(x.dims(), ElementsAre(8, 1, 64, 1, 14));
  EXPECT_THAT(x.strides(), ElementsAre(90000, 64000, 1000, 42, 3));
  EXPECT_THAT(w.dims(), ElementsAre(1, 32, 64, 1, 3));
  EXPECT_THAT(w.strides(), ElementsAre(6144, 192, 1, 192, 64));
  const ReadBack descriptor(operation, kForward.convolution, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  EXPECT_THAT(descriptor.integers(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS), ElementsAre(0, 1));
  EXPECT_THAT(descriptor.integers(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES), ElementsAre(1, 1));
}

Numbers numbers(std::size_t count, int seed) {
  Numbers values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<double>((static_cast<int>(i) * 7 + seed) % 11 - 5);
  return values;
}

// Plain tensors [N, G * C, ...] and tensors with a group dimension name the same memory.
TEST(CudnnConvolutionGroups, MayBeGivenAsADimension) {
  const std::map<std::int64_t, Numbers> memory = {{1, numbers(2 * 6 * 5 * 4, 1)},
                                                  {2, numbers(4 * 3 * 3 * 3, 2)},
                                                  {3, numbers(2 * 4 * 5 * 4, 3)}};
  for (const Names& names : {kForward, kBackwardData, kBackwardFilter})
    for (const double beta : {0.0, 2.0}) {
      BackendClient one, two;
      const Tensors plain = tensors_of(one, {2, 6, 5, 4}, {4, 3, 3, 3}, {2, 4, 5, 4}),
                    grouped = tensors_of(two, {2, 2, 3, 5, 4}, {2, 2, 3, 3, 3}, {2, 2, 2, 5, 4});
      const auto expected = one.run(one.plan({convolution(one, names, 2, plain, beta)}), memory);
      const auto found = two.run(two.plan({convolution(two, names, 2, grouped, beta)}), memory);
      for (const auto& [uid, values] : expected) EXPECT_EQ(found.at(uid), values) << uid;
      const std::int64_t result = names.type == kForward.type        ? 3
                                  : names.type == kBackwardData.type ? 1
                                                                     : 2;
      EXPECT_NE(found.at(result), memory.at(result));
    }
}

// A virtual result with a group dimension, read by a pointwise operation.
TEST(CudnnConvolutionGroups, ReachTheOperationsBehind) {
  BackendClient client;
  const Dims y_dims = {2, 2, 2, 5, 4};
  const Tensors tensors = {client.tensor(1, CUDNN_DATA_FLOAT, {2, 2, 3, 5, 4}),
                           client.tensor(2, CUDNN_DATA_FLOAT, {2, 2, 3, 3, 3}),
                           client.tensor(3, CUDNN_DATA_FLOAT, y_dims, {.is_virtual = true})};
  const auto y = client.tensor(4, CUDNN_DATA_FLOAT, y_dims);
  const auto plan =
      client.plan({convolution(client, kForward, 2, tensors),
                   client.pointwise(CUDNN_POINTWISE_RELU_FWD, tensors.y, nullptr, y)});
  const Numbers x = numbers(2 * 6 * 5 * 4, 1), w = numbers(4 * 3 * 3 * 3, 2);
  const auto found = client.run(plan, {{1, x}, {2, w}, {4, Numbers(2 * 4 * 5 * 4)}});

  BackendClient other;
  const Tensors plain = tensors_of(other, {2, 6, 5, 4}, {4, 3, 3, 3}, {2, 4, 5, 4});
  const auto expected = other.run(other.plan({convolution(other, kForward, 2, plain)}),
                                  {{1, x}, {2, w}, {3, Numbers(2 * 4 * 5 * 4)}});
  Numbers relu = expected.at(3);
  for (double& value : relu) value = std::max(value, 0.0);
  EXPECT_EQ(found.at(4), relu);
}

TEST(CudnnConvolutionGroups, MustAgree) {
  const auto message = [](const Dims& x, const Dims& w, const Dims& y) -> std::string {
    BackendClient client;
    try {
      convolution(client, kForward, 2, tensors_of(client, x, w, y));
      return "accepted";
    } catch (const test::CallFailed& failed) {
      return failed.what();
    }
  };
  using testing::HasSubstr;
  EXPECT_THAT(message({8, 4, 16, 14, 14}, {2, 16, 16, 3, 3}, {8, 4, 8, 14, 14}),
              HasSubstr("got 2 groups, expected 4"));
  EXPECT_THAT(message({8, 4, 16, 14, 14}, {4, 8, 8, 3, 3}, {8, 4, 8, 14, 14}),
              HasSubstr("got 8 channels per group, expected 16"));
  EXPECT_THAT(message({8, 4, 16, 14, 14}, {4, 8, 16, 3, 3}, {8, 2, 16, 14, 14}),
              HasSubstr("got 2 groups, expected 4"));
  EXPECT_THAT(message({8, 64, 14, 14}, {4, 8, 16, 3, 3}, {8, 32, 14, 14}),
              HasSubstr("got rank 5, expected 4"));
}

}  // namespace

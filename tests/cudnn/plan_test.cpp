// Execution plans: JSON round trip, overridden shapes, and rejections with their reasons.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <thread>

#include "cudnn/backend_client.hpp"
#include "support/test_device.hpp"

namespace {

using namespace ashlar;
using test::Attribute;
using test::BackendClient;
using test::CallFailed;
using test::Numbers;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr auto kDescriptor = CUDNN_TYPE_BACKEND_DESCRIPTOR;

// y = (x + b) * s, with a virtual intermediate.
std::vector<cudnnBackendDescriptor_t> add_and_scale(BackendClient& client) {
  const auto x = client.tensor(1, CUDNN_DATA_FLOAT, {1, 2, 2}),
             b = client.tensor(2, CUDNN_DATA_FLOAT, {1, 2, 2}),
             sum = client.tensor(3, CUDNN_DATA_FLOAT, {1, 2, 2}, {.is_virtual = true}),
             s = client.tensor(4, CUDNN_DATA_FLOAT, {1, 1, 1}, {.is_by_value = true}),
             y = client.tensor(5, CUDNN_DATA_FLOAT, {1, 2, 2});
  return {client.pointwise(CUDNN_POINTWISE_ADD, x, b, sum),
          client.pointwise(CUDNN_POINTWISE_MUL, sum, s, y)};
}
const std::map<std::int64_t, Numbers> kMemory = {
    {1, {1, 2, 3, 4}}, {2, {10, 20, 30, 40}}, {4, {2}}, {5, {0, 0, 0, 0}}};

TEST(ExecutionPlan, RunsFromItsJson) {
  BackendClient client;
  const auto plan = client.plan(add_and_scale(client));
  const std::string text = client.plan_json(plan);
  cudnnBackendDescriptor_t loaded = nullptr;
  ASSERT_EQ(cudnnBackendCreateDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &loaded),
            CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(cudnnBackendSetAttribute(loaded, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
                                     CUDNN_TYPE_CHAR, static_cast<std::int64_t>(text.size()),
                                     text.data()),
            CUDNN_STATUS_SUCCESS);
  const cudnnHandle_t handle = client.handle();
  ASSERT_EQ(cudnnBackendSetAttribute(loaded, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1,
                                     &handle),
            CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(cudnnBackendFinalize(loaded), CUDNN_STATUS_SUCCESS);
  EXPECT_THAT(client.run(loaded, kMemory).at(5), ElementsAre(22, 44, 66, 88));
  // The configuration can be read back and compiled again.
  cudnnBackendDescriptor_t config = nullptr;
  ASSERT_EQ(cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &config),
            CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(cudnnBackendGetAttribute(loaded, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, kDescriptor,
                                     1, nullptr, &config),
            CUDNN_STATUS_SUCCESS);
  const auto again = client.make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR,
                                 {{CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, kDescriptor, config}});
  EXPECT_THAT(client.run(again, kMemory).at(5), ElementsAre(22, 44, 66, 88));
  cudnnBackendDestroyDescriptor(config);
  cudnnBackendDestroyDescriptor(loaded);
}

TEST(ExecutionPlan, TextThatIsNoPlanIsRejected) {
  BackendClient client;
  std::string good = client.plan_json(client.plan(add_and_scale(client)));
  for (const std::string& text :
       {std::string("x"), std::string("{}"), std::string("[1, 2]"), good.substr(0, good.size() / 2),
        std::string(R"({"format":"ashlar-cudnn-plan","version":1,"device":"cpu","config":"[]"})"),
        std::string(R"({"format":"ashlar-cudnn-plan","version":1,"device":"cpu",)"
                    R"("config":"[{\"type\":900,\"attributes\":{}}]","plan":""})"),
        std::string(R"({"format":"ashlar-cudnn-plan","version":1,"device":"cpu",)"
                    R"("config":"[{\"type\":3,\"attributes\":{\"300\":{\"records\":[0]}}}]"})")}) {
    cudnnBackendDescriptor_t loaded = nullptr;
    ASSERT_EQ(cudnnBackendCreateDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &loaded),
              CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(cudnnBackendSetAttribute(loaded, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
                                       CUDNN_TYPE_CHAR, static_cast<std::int64_t>(text.size()),
                                       text.data()),
              CUDNN_STATUS_SUCCESS);
    const cudnnStatus_t status = cudnnBackendFinalize(loaded);
    EXPECT_NE(status, CUDNN_STATUS_SUCCESS) << text;
    EXPECT_LT(status, CUDNN_STATUS_INTERNAL_ERROR) << text;
    cudnnBackendDestroyDescriptor(loaded);
  }
}

TEST(ExecutionPlan, RunsWithOverriddenShapes) {
  BackendClient client;
  const auto plan = client.plan(add_and_scale(client));
  std::vector<std::vector<std::int64_t>> shapes(3, {1, 3, 1}), strides(3, {3, 1, 1});
  const std::vector<Attribute> pack = {
      {CUDNN_ATTR_VARIANT_PACK_OVERRIDE_UNIQUE_IDS, CUDNN_TYPE_INT64,
       std::vector<std::int64_t>{1, 2, 5}},
      {CUDNN_ATTR_VARIANT_PACK_OVERRIDE_SHAPES, CUDNN_TYPE_VOID_PTR,
       static_cast<cudnnBackendDescriptor_t>(&shapes)},
      {CUDNN_ATTR_VARIANT_PACK_OVERRIDE_STRIDES, CUDNN_TYPE_VOID_PTR,
       static_cast<cudnnBackendDescriptor_t>(&strides)}};
  for (int run = 0; run < 2; ++run)
    EXPECT_THAT(client.run(plan, kMemory, pack).at(5), ElementsAre(22, 44, 66, 0));
  EXPECT_THAT(client.run(plan, kMemory).at(5), ElementsAre(22, 44, 66, 88));
  shapes[0] = {1, 2, 1};
  EXPECT_THROW(client.run(plan, kMemory, pack), CallFailed);
}

// softmax(q k) with dropout, as cudnn-frontend writes it.
std::vector<cudnnBackendDescriptor_t> weights(BackendClient& client, std::int64_t rows) {
  const auto edge = [&](std::int64_t uid, const Dims& dims) {
    return client.tensor(uid, CUDNN_DATA_FLOAT, dims, {.is_virtual = true});
  };
  const Dims all = {1, 1, rows, 4}, row = {1, 1, rows, 1};
  const auto q = client.tensor(1, CUDNN_DATA_FLOAT, {1, 1, rows, 2}),
             k = client.tensor(2, CUDNN_DATA_FLOAT, {1, 1, 2, 4}),
             y = client.tensor(3, CUDNN_DATA_FLOAT, all);
  const auto scores = edge(10, all), max = edge(11, row), shifted = edge(12, all),
             powers = edge(13, all), sum = edge(14, row), even = edge(15, all),
             mask = edge(16, all);
  const auto product = client.make(
      CUDNN_BACKEND_MATMUL_DESCRIPTOR,
      {{CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, std::int64_t{CUDNN_DATA_FLOAT}}});
  const auto reduce = [&](cudnnReduceTensorOp_t mode, auto from, auto to) {
    const auto descriptor = client.make(
        CUDNN_BACKEND_REDUCTION_DESCRIPTOR,
        {{CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, std::int64_t{CUDNN_DATA_FLOAT}},
         {CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, std::int64_t{mode}}});
    return client.make(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
                       {{CUDNN_ATTR_OPERATION_REDUCTION_XDESC, kDescriptor, from},
                        {CUDNN_ATTR_OPERATION_REDUCTION_YDESC, kDescriptor, to},
                        {CUDNN_ATTR_OPERATION_REDUCTION_DESC, kDescriptor, descriptor}});
  };
  // cudnn-frontend before 1.18 sets the parameters of the other distributions to -1.
  const auto rng =
      client.make(CUDNN_BACKEND_RNG_DESCRIPTOR,
                  {{CUDNN_ATTR_RNG_DISTRIBUTION, CUDNN_TYPE_RNG_DISTRIBUTION,
                    std::int64_t{CUDNN_RNG_DISTRIBUTION_BERNOULLI}},
                   {CUDNN_ATTR_RNG_BERNOULLI_DIST_PROBABILITY, CUDNN_TYPE_DOUBLE, 0.5},
                   {CUDNN_ATTR_RNG_NORMAL_DIST_MEAN, CUDNN_TYPE_DOUBLE, -1.0},
                   {CUDNN_ATTR_RNG_NORMAL_DIST_STANDARD_DEVIATION, CUDNN_TYPE_DOUBLE, -1.0},
                   {CUDNN_ATTR_RNG_UNIFORM_DIST_MINIMUM, CUDNN_TYPE_DOUBLE, -1.0},
                   {CUDNN_ATTR_RNG_UNIFORM_DIST_MAXIMUM, CUDNN_TYPE_DOUBLE, -2.0}});
  return {client.make(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
                      {{CUDNN_ATTR_OPERATION_MATMUL_ADESC, kDescriptor, q},
                       {CUDNN_ATTR_OPERATION_MATMUL_BDESC, kDescriptor, k},
                       {CUDNN_ATTR_OPERATION_MATMUL_CDESC, kDescriptor, scores},
                       {CUDNN_ATTR_OPERATION_MATMUL_DESC, kDescriptor, product}}),
          reduce(CUDNN_REDUCE_TENSOR_MAX, scores, max),
          client.pointwise(CUDNN_POINTWISE_SUB, scores, max, shifted),
          client.pointwise(CUDNN_POINTWISE_EXP, shifted, nullptr, powers),
          reduce(CUDNN_REDUCE_TENSOR_ADD, powers, sum),
          client.pointwise(CUDNN_POINTWISE_DIV, powers, sum, even),
          client.make(CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR,
                      {{CUDNN_ATTR_OPERATION_RNG_YDESC, kDescriptor, mask},
                       {CUDNN_ATTR_OPERATION_RNG_DESC, kDescriptor, rng},
                       {CUDNN_ATTR_OPERATION_RNG_SEED, CUDNN_TYPE_INT64, std::int64_t{3}}}),
          client.pointwise(CUDNN_POINTWISE_MUL, even, mask, y)};
}

TEST(ExecutionPlan, VirtualTensorsFollowOverriddenShapes) {
  BackendClient small, large;
  const std::map<std::int64_t, Numbers> memory = {
      {1, {1, 2, 3, 4, 5, 6}}, {2, {1, 0, -1, 2, 0, 1, 1, -1}}, {3, Numbers(12)}};
  std::vector<std::vector<std::int64_t>> shapes = {{1, 1, 3, 2}, {1, 1, 3, 4}},
                                         strides = {{6, 6, 2, 1}, {12, 12, 4, 1}};
  const auto overridden = small.run(small.plan(weights(small, 1)), memory,
                                    {{CUDNN_ATTR_VARIANT_PACK_OVERRIDE_UNIQUE_IDS, CUDNN_TYPE_INT64,
                                      std::vector<std::int64_t>{1, 3}},
                                     {CUDNN_ATTR_VARIANT_PACK_OVERRIDE_SHAPES, CUDNN_TYPE_VOID_PTR,
                                      static_cast<cudnnBackendDescriptor_t>(&shapes)},
                                     {CUDNN_ATTR_VARIANT_PACK_OVERRIDE_STRIDES, CUDNN_TYPE_VOID_PTR,
                                      static_cast<cudnnBackendDescriptor_t>(&strides)}});
  EXPECT_EQ(overridden.at(3), large.run(large.plan(weights(large, 3)), memory).at(3));
}

TEST(ExecutionPlan, MissingTensorsAreNamed) {
  BackendClient client;
  const auto plan = client.plan(add_and_scale(client));
  auto memory = kMemory;
  memory.erase(2);
  try {
    client.run(plan, memory);
    FAIL() << "ran without tensor 2";
  } catch (const CallFailed& failed) {
    EXPECT_EQ(failed.status, CUDNN_STATUS_BAD_PARAM);
    EXPECT_THAT(failed.what(), HasSubstr("tensor 2"));
  }
}

TEST(OperationGraph, ContradictionsAreRejected) {
  BackendClient client;
  const auto x = client.tensor(1, CUDNN_DATA_FLOAT, {1, 2, 1}),
             y = client.tensor(2, CUDNN_DATA_FLOAT, {1, 2, 1}),
             z = client.tensor(3, CUDNN_DATA_FLOAT, {1, 2, 1}, {.is_virtual = true});
  const auto there = client.pointwise(CUDNN_POINTWISE_NEG, x, nullptr, y),
             back = client.pointwise(CUDNN_POINTWISE_NEG, y, nullptr, x),
             from_nowhere = client.pointwise(CUDNN_POINTWISE_NEG, z, nullptr, y),
             again = client.pointwise(CUDNN_POINTWISE_ABS, x, nullptr, y);
  EXPECT_THROW(client.plan({there, back}), CallFailed);   // a cycle
  EXPECT_THROW(client.plan({there, again}), CallFailed);  // two producers
  EXPECT_THROW(client.plan({from_nowhere}), CallFailed);  // a virtual tensor without a producer
  EXPECT_NO_THROW(client.plan({there}));
}

TEST(ExecutionPlan, MaskedElementsHoldTheValueOfTheRun) {
  BackendClient client;
  const auto x = client.tensor(1, CUDNN_DATA_FLOAT, {1, 2, 1}),
             hidden = client.tensor(2, CUDNN_DATA_FLOAT, {1, 1, 1}, {.is_by_value = true}),
             mask = client.tensor(3, CUDNN_DATA_BOOLEAN, {1, 2, 1}),
             y = client.tensor(4, CUDNN_DATA_FLOAT, {1, 2, 1});
  const auto plan =
      client.plan({client.pointwise(CUDNN_POINTWISE_BINARY_SELECT, x, hidden, y, mask)});
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  // Plans assume -inf; another value gets a plan without the assumption.
  for (const double number : {-kInfinity, -5.0, 0.0, -kInfinity})
    EXPECT_THAT(client.run(plan, {{1, {1, 2}}, {2, {number}}, {3, {0, 1}}, {4, {0, 0}}}).at(4),
                ElementsAre(number, 2));
}

TEST(ExecutionPlan, ServesManyThreads) {
  BackendClient client;
  const auto plan = client.plan(add_and_scale(client));
  std::vector<std::thread> threads;
  std::array<bool, 4> right{};
  for (std::size_t n = 0; n < right.size(); ++n)
    threads.emplace_back([&, n] {
      BackendClient own;
      add_and_scale(own);  // registers the types of the tensors
      bool all = true;
      for (int i = 0; i < 50; ++i)
        all = all && own.run(plan, kMemory).at(5) == Numbers{22, 44, 66, 88};
      right[n] = all;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(right, testing::Each(true));
}

}  // namespace

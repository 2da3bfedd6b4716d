// What heuristics offer and claim, and the dims that statistics may have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/descriptor.hpp"
#include "backend/engine.hpp"
#include "cudnn/backend_client.hpp"
#include "support/test_device.hpp"

namespace {

using namespace ashlar;
using cudnn::RecordRef;
using test::BackendClient;
using test::Numbers;
using testing::Contains;
using testing::ElementsAre;
using testing::Not;

constexpr auto kDescriptor = CUDNN_TYPE_BACKEND_DESCRIPTOR;

cudnnBackendDescriptor_t matmul(BackendClient& client, std::int64_t n) {
  const auto product = client.make(
      CUDNN_BACKEND_MATMUL_DESCRIPTOR,
      {{CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, std::int64_t{CUDNN_DATA_FLOAT}}});
  const Dims dims = {1, n, n};
  return client.make(
      CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
      {{CUDNN_ATTR_OPERATION_MATMUL_ADESC, kDescriptor, client.tensor(1, CUDNN_DATA_FLOAT, dims)},
       {CUDNN_ATTR_OPERATION_MATMUL_BDESC, kDescriptor, client.tensor(2, CUDNN_DATA_FLOAT, dims)},
       {CUDNN_ATTR_OPERATION_MATMUL_CDESC, kDescriptor, client.tensor(3, CUDNN_DATA_FLOAT, dims)},
       {CUDNN_ATTR_OPERATION_MATMUL_DESC, kDescriptor, product}});
}

// The estimates of what a mode offers for a matmul on the handle's device.
std::vector<double> offered_seconds(cudnnBackendHeurMode_t mode, std::int64_t n) {
  BackendClient client;
  const cudnnHandle_t handle = client.handle();
  cudnnBackendDescriptor_t graph = nullptr;
  EXPECT_EQ(cudnnBackendCreateDescriptor(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, &graph),
            CUDNN_STATUS_SUCCESS);
  const cudnnBackendDescriptor_t operation = matmul(client, n);
  EXPECT_EQ(cudnnBackendSetAttribute(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1,
                                     &handle),
            CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(
      cudnnBackendSetAttribute(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, kDescriptor, 1, &operation),
      CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(cudnnBackendFinalize(graph), CUDNN_STATUS_SUCCESS);
  const auto heuristics =
      client.make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR,
                  {{CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, kDescriptor, graph},
                   {CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, std::int64_t{mode}}});
  std::vector<double> seconds;
  const auto record = cudnn::contents_of(heuristics, "heuristics")->record;
  for (const RecordRef& config : cudnn::finished<cudnn::Heuristics>(*record).results)
    seconds.push_back(
        cudnn::finished<cudnn::EngineConfig>(*config).engine().strategy.outline.seconds);
  cudnnBackendDestroyDescriptor(graph);
  return seconds;
}

TEST(CudnnHeuristics, SlowPlansAreNotOffered) {
  // The reference engine takes thousands of times as long for a large matmul.
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    const std::vector<double> seconds = offered_seconds(mode, 512);
    ASSERT_FALSE(seconds.empty());
    EXPECT_LE(std::ranges::max(seconds), 100.0 * std::ranges::min(seconds)) << mode;
  }
  // For a small one it is offered.
  EXPECT_EQ(offered_seconds(CUDNN_HEUR_MODE_FALLBACK, 4).size(), 2U);
}

TEST(CudnnHeuristics, OnlyGpuPlansClaimCudaGraphs) {
  for (const char* name : {"cpu", "h200"}) {
    cudnn::Engine engine;
    engine.device = Device::named(name);
    const auto notes = engine.computed(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE);
    ASSERT_TRUE(notes.has_value());
    const auto& list = std::get<std::vector<std::int64_t>>(*notes);
    const bool claims =
        std::ranges::find(list, CUDNN_BEHAVIOR_NOTE_SUPPORTS_CUDA_GRAPH_NATIVE_API) != list.end();
    EXPECT_EQ(claims, engine.device.props().kind == DeviceKind::cuda) << name;
  }
}

TEST(CudnnGenStats, SumsMayHaveAnyRank) {
  for (const Dims& dims : {Dims{1, 2, 1, 1}, Dims{2}, Dims{1, 2}, Dims{2, 1, 1, 1}}) {
    BackendClient client;
    const auto operation =
        client.make(CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR,
                    {{CUDNN_ATTR_OPERATION_GENSTATS_MODE, CUDNN_TYPE_GENSTATS_MODE,
                      std::int64_t{CUDNN_GENSTATS_SUM_SQSUM}},
                     {CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC, CUDNN_TYPE_DATA_TYPE,
                      std::int64_t{CUDNN_DATA_FLOAT}},
                     {CUDNN_ATTR_OPERATION_GENSTATS_XDESC, kDescriptor,
                      client.tensor(1, CUDNN_DATA_FLOAT, {1, 2, 1, 3})},
                     {CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, kDescriptor,
                      client.tensor(2, CUDNN_DATA_FLOAT, dims)},
                     {CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC, kDescriptor,
                      client.tensor(3, CUDNN_DATA_FLOAT, dims)}});
    const auto memory = client.run(client.plan({operation}),
                                   {{1, {1, 2, 3, 4, 5, 6}}, {2, Numbers(2)}, {3, Numbers(2)}});
    EXPECT_THAT(memory.at(2), ElementsAre(6, 15)) << to_string(dims);
    EXPECT_THAT(memory.at(3), ElementsAre(14, 77)) << to_string(dims);
  }
}

// Batch norm in training with the buffers of that many GPUs.
cudnnBackendDescriptor_t norm_with_peers(BackendClient& client, std::int64_t gpus) {
  const Dims x = {2, 4, 3, 3}, channels = {1, 4, 1, 1};
  std::int64_t uid = 0;
  const auto tensor = [&](const Dims& dims, bool is_by_value = false) {
    return client.tensor(++uid, CUDNN_DATA_FLOAT, dims, {.is_by_value = is_by_value});
  };
  std::vector<test::Attribute> attributes = {
      {CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_TYPE_NORM_MODE, std::int64_t{CUDNN_BATCH_NORM}},
      {CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_TYPE_NORM_FWD_PHASE,
       std::int64_t{CUDNN_NORM_FWD_TRAINING}},
      {CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC, kDescriptor, tensor({1, 1, 1, 1}, true)}};
  for (const auto name : {CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, CUDNN_ATTR_OPERATION_NORM_FWD_YDESC})
    attributes.push_back({name, kDescriptor, tensor(x)});
  for (const auto name :
       {CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC})
    attributes.push_back({name, kDescriptor, tensor(channels)});
  std::vector<cudnnBackendDescriptor_t> buffers;
  for (std::int64_t i = 0; i < gpus; ++i) buffers.push_back(tensor({1, 16, 1, 1}));
  attributes.push_back({CUDNN_ATTR_OPERATION_NORM_FWD_PEER_STAT_DESCS, kDescriptor, buffers});
  return client.make(CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR, attributes);
}

// Its gradient with the buffers of that many GPUs.
cudnnBackendDescriptor_t norm_gradient_with_peers(BackendClient& client, std::int64_t gpus) {
  std::int64_t uid = 0;
  std::vector<test::Attribute> attributes = {
      {CUDNN_ATTR_OPERATION_NORM_BWD_MODE, CUDNN_TYPE_NORM_MODE, std::int64_t{CUDNN_BATCH_NORM}}};
  for (const auto name : {CUDNN_ATTR_OPERATION_NORM_BWD_XDESC, CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC,
                          CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC})
    attributes.push_back({name, kDescriptor, client.tensor(++uid, CUDNN_DATA_FLOAT, {2, 4, 3, 3})});
  for (const auto name :
       {CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC, CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC,
        CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC, CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC,
        CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC})
    attributes.push_back({name, kDescriptor, client.tensor(++uid, CUDNN_DATA_FLOAT, {1, 4, 1, 1})});
  std::vector<cudnnBackendDescriptor_t> buffers;
  for (std::int64_t i = 0; i < gpus; ++i)
    buffers.push_back(client.tensor(++uid, CUDNN_DATA_FLOAT, {1, 16, 1, 1}));
  attributes.push_back({CUDNN_ATTR_OPERATION_NORM_BWD_PEER_STAT_DESCS, kDescriptor, buffers});
  return client.make(CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR, attributes);
}

TEST(CudnnPeerStatistics, AreRefused) {
  for (const auto make : {norm_with_peers, norm_gradient_with_peers}) {
    BackendClient one, two;
    EXPECT_NO_THROW(one.plan({make(one, 1)}));
    try {
      two.plan({make(two, 2)});
      ADD_FAILURE() << "statistics of the other GPU would be ignored";
    } catch (const test::CallFailed& failed) {
      EXPECT_EQ(failed.status, CUDNN_STATUS_NOT_SUPPORTED);
      EXPECT_THAT(failed.what(), testing::HasSubstr("the buffers of 2 GPUs"));
    }
  }
}

}  // namespace

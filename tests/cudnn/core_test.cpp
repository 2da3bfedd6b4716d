// Handles, versions, errors, the log and the plan cache of libcudnn.
#include <cudnn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/data_type.hpp"
#include "core/plan_cache.hpp"

namespace {

using testing::HasSubstr;

std::string last_error() {
  std::string text(1024, '\0');
  cudnnGetLastErrorString(text.data(), text.size());
  return text.c_str();
}

TEST(CudnnCore, VersionIsTheOneOfTheHeaders) {
  EXPECT_EQ(cudnnGetVersion(), 91900U);
  int value = 0;
  EXPECT_EQ(cudnnGetProperty(MINOR_VERSION, &value), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(value, 19);
  EXPECT_EQ(cudnnGetProperty(MINOR_VERSION, nullptr), CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
}

TEST(CudnnCore, HandleKeepsItsStream) {
  cudnnHandle_t handle = nullptr;
  ASSERT_EQ(cudnnCreate(&handle), CUDNN_STATUS_SUCCESS);
  cudaStream_t stream = nullptr;
  int dummy = 0;
  const auto given = reinterpret_cast<cudaStream_t>(&dummy);
  EXPECT_EQ(cudnnSetStream(handle, given), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(cudnnGetStream(handle, &stream), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(stream, given);
  EXPECT_EQ(cudnnDestroy(handle), CUDNN_STATUS_SUCCESS);
}

TEST(CudnnCore, DestroyedHandleReturnsAStatus) {
  cudnnHandle_t handle = nullptr;
  ASSERT_EQ(cudnnCreate(&handle), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(cudnnDestroy(handle), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(cudnnSetStream(handle, nullptr), CUDNN_STATUS_BAD_PARAM);
  EXPECT_THAT(last_error(), HasSubstr("cudnnSetStream: handle: got a pointer that is not a live "
                                      "cudnnHandle_t"));
  EXPECT_EQ(cudnnDestroy(handle), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(cudnnSetStream(nullptr, nullptr), CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
}

TEST(CudnnCore, LastErrorIsTruncatedToTheCapacity) {
  cudnnSetStream(nullptr, nullptr);
  std::string text(8, 'z');
  cudnnGetLastErrorString(text.data(), 5);
  EXPECT_STREQ(text.c_str(), "CUDN");
  EXPECT_EQ(text[5], 'z');
}

TEST(CudnnCore, CallbackReceivesTheSeveritiesOfItsMask) {
  static std::vector<std::string> logged;
  logged.clear();
  const auto on_message = [](cudnnSeverity_t, void*, const cudnnDebug_t* who, const char* message) {
    EXPECT_EQ(who->cudnn_version, 91900U);
    logged.emplace_back(message);
  };
  ASSERT_EQ(cudnnSetCallback(CUDNN_SEV_ERROR_EN, nullptr, on_message), CUDNN_STATUS_SUCCESS);
  cudnnSetStream(nullptr, nullptr);
  cudnnHandle_t handle = nullptr;
  cudnnCreate(&handle);
  EXPECT_EQ(logged.size(), 1U);
  cudnnSetCallback(CUDNN_SEV_INFO_EN, nullptr, on_message);
  cudnnDestroy(handle);
  cudnnSetCallback(0, nullptr, nullptr);
  ASSERT_GE(logged.size(), 2U);
  EXPECT_EQ(logged[1], "cudnnDestroy()");
}

TEST(CudnnCore, EveryDataTypeRoundTrips) {
  for (int value = 0; value <= CUDNN_DATA_COMPLEX_FP64; ++value) {
    const auto type = static_cast<cudnnDataType_t>(value);
    const auto dtype = ashlar::cudnn::dtype_of(type);
    EXPECT_EQ(dtype.has_value(), type != CUDNN_DATA_FAST_FLOAT_FOR_FP8);
    if (dtype && ashlar::cudnn::vector_width(type) == 1) {
      EXPECT_EQ(ashlar::cudnn::data_type_of(*dtype), type);
    }
  }
}

TEST(CudnnCore, PlansAreCompiledOncePerKey) {
  using namespace ashlar;
  int compiled = 0;
  const auto make = [&] {
    ++compiled;
    Graph graph;
    graph.output("y", relu(graph.input("x", {4}, f32)));
    return compile(graph);
  };
  cudnn::PlanKey key("core_test", Device::cpu());
  key.add(1).add(Dims{4});
  const auto first = cudnn::cached_plan(key, make);
  EXPECT_EQ(cudnn::cached_plan(key, make), first);
  EXPECT_EQ(compiled, 1);
  EXPECT_THROW(
      cudnn::cached_plan(key.add(2), []() -> Plan { throw Error(ErrorCode::internal, ""); }),
      Error);
  cudnn::cached_plan(key, make);
  EXPECT_EQ(compiled, 2) << "a failure is not cached";
}

}  // namespace

// Operations that no recording covers: each is built, planned, run and compared with the oracle.
#include <gtest/gtest.h>

#include "backend/descriptor.hpp"
#include "backend/operations.hpp"
#include "cudnn/backend_client.hpp"
#include "cudnn/replay/execution.hpp"
#include "support/test_device.hpp"

namespace {

using namespace ashlar;
using test::Attribute;
using test::BackendClient;

constexpr auto kFloat = CUDNN_DATA_FLOAT;
constexpr auto kDescriptor = CUDNN_TYPE_BACKEND_DESCRIPTOR;

// Runs one operation on random inputs; returns an empty string when every result is within its
// bound.
std::string compared(BackendClient& client, cudnnBackendDescriptor_t operation) {
  const auto descriptor = client.plan({operation});
  const auto record = cudnn::finalized(descriptor, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, "plan");
  const auto& plan = cudnn::finished<cudnn::ExecutionPlan>(*record).plan();
  replay::Execution execution(plan, support::test_device(), {}, {}, 7);
  std::vector<std::int64_t> uids;
  std::vector<void*> pointers;
  for (const auto& binding : plan.bindings)
    if (uids.empty() || uids.back() != binding.uid) {
      uids.push_back(binding.uid);
      pointers.push_back(execution.pointer(binding.uid));
    }
  cudnnBackendDescriptor_t pack = nullptr;
  cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack);
  const auto count = static_cast<std::int64_t>(uids.size());
  void* workspace = execution.workspace();
  cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count,
                           uids.data());
  cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count,
                           pointers.data());
  cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1,
                           &workspace);
  cudnnBackendFinalize(pack);
  const cudnnStatus_t status = cudnnBackendExecute(client.handle(), descriptor, pack);
  cudnnBackendDestroyDescriptor(pack);
  if (status != CUDNN_STATUS_SUCCESS) return cudnnGetErrorString(status);
  double worst = 0;
  return execution.compare(worst);
}

Attribute tensor(cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t descriptor) {
  return {name, kDescriptor, descriptor};
}
Attribute integer(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                  std::int64_t value) {
  return {name, type, value};
}

TEST(OperationKinds, Concat) {
  BackendClient client;
  const std::vector<cudnnBackendDescriptor_t> parts = {client.tensor(1, kFloat, {2, 3, 4}),
                                                       client.tensor(2, kFloat, {2, 5, 4})};
  EXPECT_EQ(
      compared(client, client.make(CUDNN_BACKEND_OPERATION_CONCAT_DESCRIPTOR,
                                   {integer(CUDNN_ATTR_OPERATION_CONCAT_AXIS, CUDNN_TYPE_INT64, 1),
                                    {CUDNN_ATTR_OPERATION_CONCAT_INPUT_DESCS, kDescriptor, parts},
                                    tensor(CUDNN_ATTR_OPERATION_CONCAT_OUTPUT_DESC,
                                           client.tensor(3, kFloat, {2, 8, 4}))})),
      "");
}

TEST(OperationKinds, PoolingGradient) {
  for (const auto mode : {CUDNN_RESAMPLE_MAXPOOL, CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING,
                          CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING}) {
    BackendClient client;
    const std::vector<cudnnFraction_t> two = {{2, 1}, {2, 1}}, none = {{0, 1}, {0, 1}};
    const auto resample =
        client.make(CUDNN_BACKEND_RESAMPLE_DESCRIPTOR,
                    {integer(CUDNN_ATTR_RESAMPLE_MODE, CUDNN_TYPE_RESAMPLE_MODE, mode),
                     integer(CUDNN_ATTR_RESAMPLE_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, kFloat),
                     integer(CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS, CUDNN_TYPE_INT64, 2),
                     integer(CUDNN_ATTR_RESAMPLE_PADDING_MODE, CUDNN_TYPE_PADDING_MODE,
                             mode == CUDNN_RESAMPLE_MAXPOOL ? CUDNN_NEG_INF_PAD : CUDNN_ZERO_PAD),
                     {CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, CUDNN_TYPE_FRACTION, two},
                     {CUDNN_ATTR_RESAMPLE_STRIDES, CUDNN_TYPE_FRACTION, two},
                     {CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, CUDNN_TYPE_FRACTION, none},
                     {CUDNN_ATTR_RESAMPLE_POST_PADDINGS, CUDNN_TYPE_FRACTION, none}});
    std::vector<Attribute> attributes = {
        tensor(CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DXDESC, client.tensor(1, kFloat, {2, 3, 8, 6})),
        tensor(CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DYDESC, client.tensor(2, kFloat, {2, 3, 4, 3})),
        tensor(CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DESC, resample)};
    if (mode == CUDNN_RESAMPLE_MAXPOOL)
      attributes.push_back(tensor(CUDNN_ATTR_OPERATION_RESAMPLE_BWD_IDXDESC,
                                  client.tensor(3, CUDNN_DATA_INT8, {2, 3, 4, 3})));
    EXPECT_EQ(
        compared(client, client.make(CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR, attributes)),
        "");
  }
}

TEST(OperationKinds, AttentionGradient) {
  BackendClient client;
  const auto half = CUDNN_DATA_HALF;
  const auto attention = [&](std::int64_t uid, std::int64_t heads, std::int64_t rows) {
    return client.tensor(uid, half, {2, heads, rows, 8});
  };
  EXPECT_EQ(
      compared(client,
               client.make(CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR,
                           {tensor(CUDNN_ATTR_OPERATION_SDPA_BWD_QDESC, attention(1, 4, 6)),
                            tensor(CUDNN_ATTR_OPERATION_SDPA_BWD_KDESC, attention(2, 2, 10)),
                            tensor(CUDNN_ATTR_OPERATION_SDPA_BWD_VDESC, attention(3, 2, 10)),
                            tensor(CUDNN_ATTR_OPERATION_SDPA_BWD_ODESC, attention(4, 4, 6)),
                            tensor(CUDNN_ATTR_OPERATION_SDPA_BWD_DODDESC, attention(5, 4, 6)),
                            tensor(CUDNN_ATTR_OPERATION_SDPA_BWD_STATSDESC,
                                   client.tensor(6, kFloat, {2, 4, 6, 1})),
                            tensor(CUDNN_ATTR_OPERATION_SDPA_BWD_SCALEDESC,
                                   client.tensor(7, kFloat, {1, 1, 1, 1}, {.is_by_value = true})),
                            tensor(CUDNN_ATTR_OPERATION_SDPA_BWD_DQDESC, attention(8, 4, 6)),
                            tensor(CUDNN_ATTR_OPERATION_SDPA_BWD_DKDESC, attention(9, 2, 10)),
                            tensor(CUDNN_ATTR_OPERATION_SDPA_BWD_DVDESC, attention(10, 2, 10))})),
      "");
}

TEST(OperationKinds, BlockScales) {
  BackendClient client;
  EXPECT_EQ(
      compared(client, client.make(CUDNN_BACKEND_OPERATION_BLOCK_SCALE_QUANTIZE_DESCRIPTOR,
                                   {tensor(CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_XDESC,
                                           client.tensor(1, kFloat, {1, 4, 64})),
                                    tensor(CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_YDESC,
                                           client.tensor(2, CUDNN_DATA_FP8_E4M3, {1, 4, 64})),
                                    tensor(CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_SCALE_DESC,
                                           client.tensor(3, CUDNN_DATA_FP8_E8M0, {1, 4, 2})),
                                    integer(CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_MATH_PREC,
                                            CUDNN_TYPE_DATA_TYPE, kFloat),
                                    integer(CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_BLOCK_SIZE,
                                            CUDNN_TYPE_INT32, 32)})),
      "");
  const std::vector<std::int64_t> block = {1, 32};
  EXPECT_EQ(
      compared(client, client.make(CUDNN_BACKEND_OPERATION_BLOCK_SCALE_DEQUANTIZE_DESCRIPTOR,
                                   {tensor(CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_XDESC,
                                           client.tensor(1, CUDNN_DATA_FP8_E4M3, {1, 4, 64})),
                                    tensor(CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_SCALE_DESC,
                                           client.tensor(2, CUDNN_DATA_FP8_E8M0, {1, 4, 2})),
                                    tensor(CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_YDESC,
                                           client.tensor(3, kFloat, {1, 4, 64})),
                                    integer(CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_MATH_PREC,
                                            CUDNN_TYPE_DATA_TYPE, kFloat),
                                    {CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_BLOCK_SIZE,
                                     CUDNN_TYPE_INT32, block}})),
      "");
}

TEST(OperationKinds, MixtureOfExperts) {
  BackendClient client;
  EXPECT_EQ(
      compared(client,
               client.make(
                   CUDNN_BACKEND_OPERATION_MOE_GROUPED_MATMUL_DESCRIPTOR,
                   {integer(CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_MODE,
                            CUDNN_TYPE_MOE_GROUPED_MATMUL_MODE, CUDNN_MOE_GROUPED_MATMUL_MODE_NONE),
                    integer(CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_MATH_PREC, CUDNN_TYPE_DATA_TYPE,
                            kFloat),
                    tensor(CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_TOKEN_DESC,
                           client.tensor(1, CUDNN_DATA_BFLOAT16, {1, 12, 8})),
                    tensor(CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_WEIGHT_DESC,
                           client.tensor(2, CUDNN_DATA_BFLOAT16, {3, 8, 4})),
                    tensor(CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_FIRST_TOKEN_OFFSET_DESC,
                           client.tensor(3, CUDNN_DATA_INT32, {3, 1, 1})),
                    tensor(CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_OUTPUT_DESC,
                           client.tensor(4, CUDNN_DATA_BFLOAT16, {1, 12, 4}))})),
      "");
}

TEST(OperationKinds, Bands) {
  BackendClient client;
  EXPECT_EQ(
      compared(client, client.make(CUDNN_BACKEND_OPERATION_EXPAND_BAND_MATRIX_DESCRIPTOR,
                                   {tensor(CUDNN_ATTR_OPERATION_EXPAND_BAND_MATRIX_XDESC,
                                           client.tensor(1, kFloat, {1, 2, 6, 3})),
                                    tensor(CUDNN_ATTR_OPERATION_EXPAND_BAND_MATRIX_YDESC,
                                           client.tensor(2, kFloat, {1, 2, 6, 6})),
                                    integer(CUDNN_ATTR_OPERATION_EXPAND_BAND_MATRIX_LOWER_BANDWIDTH,
                                            CUDNN_TYPE_INT64, 1),
                                    integer(CUDNN_ATTR_OPERATION_EXPAND_BAND_MATRIX_UPPER_BANDWIDTH,
                                            CUDNN_TYPE_INT64, 1),
                                    integer(CUDNN_ATTR_OPERATION_EXPAND_BAND_MATRIX_AXIS,
                                            CUDNN_TYPE_INT64, 3)})),
      "");
  EXPECT_EQ(compared(client,
                     client.make(CUDNN_BACKEND_OPERATION_CONTRACT_BAND_MATRIX_DESCRIPTOR,
                                 {tensor(CUDNN_ATTR_OPERATION_CONTRACT_BAND_MATRIX_XDESC,
                                         client.tensor(1, kFloat, {1, 2, 6, 6})),
                                  tensor(CUDNN_ATTR_OPERATION_CONTRACT_BAND_MATRIX_YDESC,
                                         client.tensor(2, kFloat, {1, 2, 6, 3})),
                                  integer(CUDNN_ATTR_OPERATION_CONTRACT_BAND_MATRIX_LOWER_BANDWIDTH,
                                          CUDNN_TYPE_INT64, 1),
                                  integer(CUDNN_ATTR_OPERATION_CONTRACT_BAND_MATRIX_UPPER_BANDWIDTH,
                                          CUDNN_TYPE_INT64, 1),
                                  integer(CUDNN_ATTR_OPERATION_CONTRACT_BAND_MATRIX_AXIS,
                                          CUDNN_TYPE_INT64, 3)})),
            "");
}

TEST(OperationKinds, NormsOfEveryMode) {
  for (const auto mode : {CUDNN_LAYER_NORM, CUDNN_INSTANCE_NORM, CUDNN_BATCH_NORM, CUDNN_GROUP_NORM,
                          CUDNN_RMS_NORM, CUDNN_ADA_LAYER_NORM}) {
    SCOPED_TRACE(static_cast<int>(mode));
    BackendClient client;
    const Dims x = {2, 4, 3, 5};
    Dims parameters = {1, 4, 1, 1}, statistics = {2, 4, 1, 1};
    if (mode == CUDNN_LAYER_NORM || mode == CUDNN_RMS_NORM || mode == CUDNN_ADA_LAYER_NORM) {
      parameters = {mode == CUDNN_ADA_LAYER_NORM ? 2 : 1, 4, 3, 5};
      statistics = {2, 1, 1, 1};
    }
    if (mode == CUDNN_BATCH_NORM) statistics = {1, 4, 1, 1};
    if (mode == CUDNN_GROUP_NORM) statistics = {2, 2, 1, 1};
    const auto data = [&](std::int64_t uid) { return client.tensor(uid, CUDNN_DATA_HALF, x); };
    const auto parameter = [&](std::int64_t uid) { return client.tensor(uid, kFloat, parameters); };
    const auto statistic = [&](std::int64_t uid) { return client.tensor(uid, kFloat, statistics); };
    std::vector<Attribute> forward = {
        integer(CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_TYPE_NORM_MODE, mode),
        integer(CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_TYPE_NORM_FWD_PHASE,
                CUDNN_NORM_FWD_TRAINING),
        tensor(CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, data(1)),
        tensor(CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, parameter(2)),
        tensor(CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC, parameter(3)),
        tensor(CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC,
               client.tensor(4, kFloat, {1, 1, 1, 1}, {.is_by_value = true})),
        tensor(CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, data(5)),
        tensor(CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC, statistic(6))};
    std::vector<Attribute> backward = {
        integer(CUDNN_ATTR_OPERATION_NORM_BWD_MODE, CUDNN_TYPE_NORM_MODE, mode),
        tensor(CUDNN_ATTR_OPERATION_NORM_BWD_XDESC, data(1)),
        tensor(CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC, data(2)),
        tensor(CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC, parameter(3)),
        tensor(CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC, statistic(4)),
        tensor(CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC, data(5)),
        tensor(CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC, parameter(6)),
        tensor(CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC, parameter(7))};
    if (mode != CUDNN_RMS_NORM) {
      forward.push_back(tensor(CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC, statistic(8)));
      backward.push_back(tensor(CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC, statistic(8)));
    }
    EXPECT_EQ(
        compared(client, client.make(CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR, forward)),
        "");
    EXPECT_EQ(
        compared(client, client.make(CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR, backward)),
        "");
  }
}

}  // namespace

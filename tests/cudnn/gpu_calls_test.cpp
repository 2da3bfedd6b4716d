// Calls of libcudnn on a GPU, real or emulated: recurrent networks and CTC enqueue their lengths
// and labels without waiting, so that they may be captured; a failure of cuda.host reaches the
// program.
#include <cudnn.h>
#include <gtest/gtest.h>

#include <ashlar/memory.hpp>
#include <numeric>

#include "cuda/captured_run.hpp"
#include "cuda/cuda_device.hpp"
#include "cuda/failing_engine.hpp"

namespace ashlar::cuda {
namespace {

#define SUCCEEDS(call) ASSERT_EQ(call, CUDNN_STATUS_SUCCESS)

class GpuCalls : public testing::Test {
 protected:
  void SetUp() override {
    if (device_count() == 0) GTEST_SKIP() << driver().reason;
    stream_ = std::make_unique<Stream>();
    SUCCEEDS(cudnnCreate(&handle_));
    SUCCEEDS(cudnnSetStream(handle_, reinterpret_cast<cudaStream_t>(stream_->handle())));
  }
  void TearDown() override {
    if (handle_ != nullptr) cudnnDestroy(handle_);
  }

  // Runs `call` as it is, then captures it with `before_launch` between capture and launch, and
  // expects the same elements of `result`.
  template <class Call, class Change>
  void expect_same_when_captured(Memory& result, const Call& call, const Change& before_launch) {
    const auto elements = [&] {
      std::vector<float> values(static_cast<std::size_t>(result.bytes()) / sizeof(float));
      result.download(values.data(), result.bytes());
      return values;
    };
    call();
    stream_->wait();
    const std::vector<float> expected = elements();
    EXPECT_NE(expected, std::vector<float>(expected.size()));
    result.fill(std::byte{0});
    const Executable graph(*stream_, call);
    before_launch();
    graph.launch(*stream_);
    EXPECT_EQ(elements(), expected);
  }

  static Memory memory_of(const std::vector<float>& values) {
    const auto bytes = static_cast<std::int64_t>(values.size() * sizeof(float));
    Memory memory(Device::named("cuda:0"), bytes);
    memory.upload(values.data(), bytes);
    return memory;
  }
  static Memory zeros(std::size_t bytes) {
    Memory memory(Device::named("cuda:0"),
                  static_cast<std::int64_t>(std::max<std::size_t>(bytes, 1)));
    memory.fill(std::byte{0});
    return memory;
  }
  static std::vector<float> rising(std::size_t count, float step) {
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = step * static_cast<float>(i % 7) - step;
    return values;
  }

  std::unique_ptr<Stream> stream_;
  cudnnHandle_t handle_ = nullptr;
};

TEST_F(GpuCalls, RecurrentNetworksAreCaptured) {
  constexpr int kSteps = 3, kBatch = 2, kFeatures = 2;
  cudnnRNNDescriptor_t rnn = nullptr;
  cudnnDropoutDescriptor_t dropout = nullptr;
  cudnnRNNDataDescriptor_t data = nullptr;
  cudnnTensorDescriptor_t state = nullptr;
  SUCCEEDS(cudnnCreateDropoutDescriptor(&dropout));
  SUCCEEDS(cudnnSetDropoutDescriptor(dropout, handle_, 0.0F, nullptr, 0, 0));
  SUCCEEDS(cudnnCreateRNNDescriptor(&rnn));
  SUCCEEDS(cudnnSetRNNDescriptor_v8(rnn, CUDNN_RNN_ALGO_STANDARD, CUDNN_RNN_TANH, CUDNN_RNN_NO_BIAS,
                                    CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT, CUDNN_DATA_FLOAT,
                                    CUDNN_DATA_FLOAT, CUDNN_FMA_MATH, kFeatures, kFeatures,
                                    kFeatures, 1, dropout, CUDNN_RNN_PADDED_IO_ENABLED));
  SUCCEEDS(cudnnCreateRNNDataDescriptor(&data));
  float padding = 0.0F;
  const auto set_lengths = [&](int first, int second) {
    const int lengths[kBatch] = {first, second};
    SUCCEEDS(cudnnSetRNNDataDescriptor(data, CUDNN_DATA_FLOAT,
                                       CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED, kSteps, kBatch,
                                       kFeatures, lengths, &padding));
  };
  set_lengths(3, 1);
  SUCCEEDS(cudnnCreateTensorDescriptor(&state));
  const int dims[3] = {1, kBatch, kFeatures}, strides[3] = {kBatch * kFeatures, kFeatures, 1};
  SUCCEEDS(cudnnSetTensorNdDescriptor(state, CUDNN_DATA_FLOAT, 3, dims, strides));
  std::size_t weights_bytes = 0, workspace_bytes = 0;
  SUCCEEDS(cudnnGetRNNWeightSpaceSize(handle_, rnn, &weights_bytes));
  SUCCEEDS(cudnnGetRNNTempSpaceSizes(handle_, rnn, CUDNN_FWD_MODE_INFERENCE, data, &workspace_bytes,
                                     nullptr));
  const Memory x = memory_of(rising(kSteps * kBatch * kFeatures, 0.25F)),
               weights = memory_of(rising(weights_bytes / sizeof(float), 0.5F)),
               workspace = zeros(workspace_bytes);
  Memory y = zeros(kSteps * kBatch * kFeatures * sizeof(float));
  expect_same_when_captured(
      y,
      [&] {
        SUCCEEDS(cudnnRNNForward(handle_, rnn, CUDNN_FWD_MODE_INFERENCE, nullptr, data, x.data(),
                                 data, y.data(), state, nullptr, nullptr, state, nullptr, nullptr,
                                 weights_bytes, weights.data(), workspace_bytes, workspace.data(),
                                 0, nullptr));
      },
      [&] { set_lengths(1, 2); });
  cudnnDestroyTensorDescriptor(state);
  cudnnDestroyRNNDataDescriptor(data);
  cudnnDestroyRNNDescriptor(rnn);
  cudnnDestroyDropoutDescriptor(dropout);
}

TEST_F(GpuCalls, CtcWithLabelsOnTheHostIsCaptured) {
  constexpr int kTimes = 4, kSequences = 2, kClasses = 3;
  cudnnCTCLossDescriptor_t ctc = nullptr;
  cudnnTensorDescriptor_t probs_desc = nullptr;
  SUCCEEDS(cudnnCreateCTCLossDescriptor(&ctc));
  SUCCEEDS(cudnnSetCTCLossDescriptor(ctc, CUDNN_DATA_FLOAT));
  SUCCEEDS(cudnnCreateTensorDescriptor(&probs_desc));
  const int dims[3] = {kTimes, kSequences, kClasses},
            strides[3] = {kSequences * kClasses, kClasses, 1};
  SUCCEEDS(cudnnSetTensorNdDescriptor(probs_desc, CUDNN_DATA_FLOAT, 3, dims, strides));
  int labels[3] = {1, 2, 1}, label_lengths[2] = {2, 1}, input_lengths[2] = {4, 3};
  std::size_t bytes = 0;
  SUCCEEDS(cudnnGetCTCLossWorkspaceSize(handle_, probs_desc, probs_desc, labels, label_lengths,
                                        input_lengths, CUDNN_CTC_LOSS_ALGO_DETERMINISTIC, ctc,
                                        &bytes));
  const Memory probs =
                   memory_of(std::vector<float>(kTimes * kSequences * kClasses, 1.0F / kClasses)),
               gradients = zeros(kTimes * kSequences * kClasses * sizeof(float)),
               workspace = zeros(bytes);
  Memory costs = zeros(kSequences * sizeof(float));
  expect_same_when_captured(
      costs,
      [&] {
        SUCCEEDS(cudnnCTCLoss(handle_, probs_desc, probs.data(), labels, label_lengths,
                              input_lengths, costs.data(), probs_desc, gradients.data(),
                              CUDNN_CTC_LOSS_ALGO_DETERMINISTIC, ctc, workspace.data(), bytes));
      },
      [&] { std::swap(label_lengths[0], label_lengths[1]); });
  cudnnDestroyTensorDescriptor(probs_desc);
  cudnnDestroyCTCLossDescriptor(ctc);
}

TEST_F(GpuCalls, FailuresOfTheHostEngineAreRuntimeErrors) {
  const FailingRun failing(0);
  cudnnStatus_t pending = CUDNN_STATUS_NOT_INITIALIZED;
  failing.run(stream_->handle());
  SUCCEEDS(cudnnQueryRuntimeError(handle_, &pending, CUDNN_ERRQUERY_BLOCKING, nullptr));
  EXPECT_EQ(pending, CUDNN_STATUS_EXECUTION_FAILED);
  std::string message(1000, '\0');
  cudnnGetLastErrorString(message.data(), message.size());
  EXPECT_NE(message.find("no memory for the weights"), std::string::npos) << message;
  SUCCEEDS(cudnnQueryRuntimeError(handle_, &pending, CUDNN_ERRQUERY_BLOCKING, nullptr));
  EXPECT_EQ(pending, CUDNN_STATUS_SUCCESS);
}

}  // namespace
}  // namespace ashlar::cuda

// cudnnConvolutionForward() with its algorithm and workspace queries.
#include "legacy/convolution_algorithms.hpp"

using namespace ashlar::cudnn;

namespace {
constexpr ConvKind kForwardKind = ConvKind::forward;
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithmMaxCount(cudnnHandle_t handle, int* count) {
  return guarded_legacy(__func__, [&] {
    object(handle, "handle");
    *required(count, "count") = algorithm_count(kForwardKind);
  });
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x_desc, cudnnFilterDescriptor_t w_desc,
    cudnnConvolutionDescriptor_t conv_desc, cudnnTensorDescriptor_t y_desc, int capacity,
    int* count, cudnnConvolutionFwdAlgoPerf_t* results) {
  return guarded_legacy(__func__, [&] {
    const Convolution conv = make_convolution(kForwardKind, x_desc, w_desc, conv_desc, y_desc);
    require_room(capacity, count, results);
    copy_reports(predicted_algorithms(handle, conv), conv, capacity, count, results);
  });
}

cudnnStatus_t cudnnFindConvolutionForwardAlgorithm(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x_desc, cudnnFilterDescriptor_t w_desc,
    cudnnConvolutionDescriptor_t conv_desc, cudnnTensorDescriptor_t y_desc, int capacity,
    int* count, cudnnConvolutionFwdAlgoPerf_t* results) {
  return guarded_legacy(__func__, [&] {
    const Convolution conv = make_convolution(kForwardKind, x_desc, w_desc, conv_desc, y_desc);
    require_room(capacity, count, results);
    copy_reports(measured_algorithms(handle, conv), conv, capacity, count, results);
  });
}

cudnnStatus_t cudnnFindConvolutionForwardAlgorithmEx(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x_desc, const void* x,
    cudnnFilterDescriptor_t w_desc, const void* w, cudnnConvolutionDescriptor_t conv_desc,
    cudnnTensorDescriptor_t y_desc, void* y, int capacity, int* count,
    cudnnConvolutionFwdAlgoPerf_t* results, void* workspace, size_t bytes) {
  return guarded_legacy(__func__, [&] {
    const Convolution conv = make_convolution(kForwardKind, x_desc, w_desc, conv_desc, y_desc);
    require_room(capacity, count, results);
    const ConvMemory memory{required(x, "x"), required(w, "w"), required(y, "y")};
    copy_reports(measured_algorithms(handle, conv, memory, workspace, bytes), conv, capacity, count,
                 results);
  });
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x_desc, cudnnFilterDescriptor_t w_desc,
    cudnnConvolutionDescriptor_t conv_desc, cudnnTensorDescriptor_t y_desc,
    cudnnConvolutionFwdAlgo_t algo, size_t* bytes) {
  return guarded_legacy(__func__, [&] {
    const Convolution conv = make_convolution(kForwardKind, x_desc, w_desc, conv_desc, y_desc);
    *required(bytes, "sizeInBytes") = workspace_bytes(handle, conv, algo);
  });
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha,
                                      cudnnTensorDescriptor_t x_desc, const void* x,
                                      cudnnFilterDescriptor_t w_desc, const void* w,
                                      cudnnConvolutionDescriptor_t conv_desc,
                                      cudnnConvolutionFwdAlgo_t algo, void* workspace, size_t bytes,
                                      const void* beta, cudnnTensorDescriptor_t y_desc, void* y) {
  return guarded_legacy(__func__, [&] {
    const Convolution conv = make_convolution(kForwardKind, x_desc, w_desc, conv_desc, y_desc);
    const ConvMemory memory{required(x, "x"), required(w, "w"), required(y, "y")};
    run_convolution(handle, conv, strategy_of(kForwardKind, algo), alpha, beta, memory, workspace,
                    bytes);
  });
}

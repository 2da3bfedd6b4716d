// cudnnConvolutionBackwardFilter() with its algorithm and workspace queries.
#include "legacy/convolution_algorithms.hpp"

using namespace ashlar::cudnn;

namespace {
constexpr ConvKind kFilterKind = ConvKind::backward_filter;
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithmMaxCount(cudnnHandle_t handle, int* count) {
  return guarded_legacy(__func__, [&] {
    object(handle, "handle");
    *required(count, "count") = algorithm_count(kFilterKind);
  });
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x_desc, cudnnTensorDescriptor_t dy_desc,
    cudnnConvolutionDescriptor_t conv_desc, cudnnFilterDescriptor_t dw_desc, int capacity,
    int* count, cudnnConvolutionBwdFilterAlgoPerf_t* results) {
  return guarded_legacy(__func__, [&] {
    const Convolution conv = make_convolution(kFilterKind, x_desc, dw_desc, conv_desc, dy_desc);
    require_room(capacity, count, results);
    copy_reports(predicted_algorithms(handle, conv), conv, capacity, count, results);
  });
}

cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithm(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x_desc, cudnnTensorDescriptor_t dy_desc,
    cudnnConvolutionDescriptor_t conv_desc, cudnnFilterDescriptor_t dw_desc, int capacity,
    int* count, cudnnConvolutionBwdFilterAlgoPerf_t* results) {
  return guarded_legacy(__func__, [&] {
    const Convolution conv = make_convolution(kFilterKind, x_desc, dw_desc, conv_desc, dy_desc);
    require_room(capacity, count, results);
    copy_reports(measured_algorithms(handle, conv), conv, capacity, count, results);
  });
}

cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithmEx(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x_desc, const void* x,
    cudnnTensorDescriptor_t dy_desc, const void* dy, cudnnConvolutionDescriptor_t conv_desc,
    cudnnFilterDescriptor_t dw_desc, void* dw, int capacity, int* count,
    cudnnConvolutionBwdFilterAlgoPerf_t* results, void* workspace, size_t bytes) {
  return guarded_legacy(__func__, [&] {
    const Convolution conv = make_convolution(kFilterKind, x_desc, dw_desc, conv_desc, dy_desc);
    require_room(capacity, count, results);
    const ConvMemory memory{required(x, "x"), required(dw, "dw"), required(dy, "dy")};
    copy_reports(measured_algorithms(handle, conv, memory, workspace, bytes), conv, capacity, count,
                 results);
  });
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x_desc, cudnnTensorDescriptor_t dy_desc,
    cudnnConvolutionDescriptor_t conv_desc, cudnnFilterDescriptor_t dw_desc,
    cudnnConvolutionBwdFilterAlgo_t algo, size_t* bytes) {
  return guarded_legacy(__func__, [&] {
    const Convolution conv = make_convolution(kFilterKind, x_desc, dw_desc, conv_desc, dy_desc);
    *required(bytes, "sizeInBytes") = workspace_bytes(handle, conv, algo);
  });
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void* alpha,
                                             cudnnTensorDescriptor_t x_desc, const void* x,
                                             cudnnTensorDescriptor_t dy_desc, const void* dy,
                                             cudnnConvolutionDescriptor_t conv_desc,
                                             cudnnConvolutionBwdFilterAlgo_t algo, void* workspace,
                                             size_t bytes, const void* beta,
                                             cudnnFilterDescriptor_t dw_desc, void* dw) {
  return guarded_legacy(__func__, [&] {
    const Convolution conv = make_convolution(kFilterKind, x_desc, dw_desc, conv_desc, dy_desc);
    const ConvMemory memory{required(x, "x"), required(dw, "dw"), required(dy, "dy")};
    run_convolution(handle, conv, strategy_of(kFilterKind, algo), alpha, beta, memory, workspace,
                    bytes);
  });
}

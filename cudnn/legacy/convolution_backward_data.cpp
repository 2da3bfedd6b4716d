// cudnnConvolutionBackwardData() with its algorithm and workspace queries.
#include "legacy/convolution_algorithms.hpp"

using namespace ashlar::cudnn;

namespace {
constexpr ConvKind kDataKind = ConvKind::backward_data;
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithmMaxCount(cudnnHandle_t handle, int* count) {
  return guarded_legacy(__func__, [&] {
    object(handle, "handle");
    *required(count, "count") = algorithm_count(kDataKind);
  });
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t handle, cudnnFilterDescriptor_t w_desc, cudnnTensorDescriptor_t dy_desc,
    cudnnConvolutionDescriptor_t conv_desc, cudnnTensorDescriptor_t dx_desc, int capacity,
    int* count, cudnnConvolutionBwdDataAlgoPerf_t* results) {
  return guarded_legacy(__func__, [&] {
    const Convolution conv = make_convolution(kDataKind, dx_desc, w_desc, conv_desc, dy_desc);
    require_room(capacity, count, results);
    copy_reports(predicted_algorithms(handle, conv), conv, capacity, count, results);
  });
}

cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithm(
    cudnnHandle_t handle, cudnnFilterDescriptor_t w_desc, cudnnTensorDescriptor_t dy_desc,
    cudnnConvolutionDescriptor_t conv_desc, cudnnTensorDescriptor_t dx_desc, int capacity,
    int* count, cudnnConvolutionBwdDataAlgoPerf_t* results) {
  return guarded_legacy(__func__, [&] {
    const Convolution conv = make_convolution(kDataKind, dx_desc, w_desc, conv_desc, dy_desc);
    require_room(capacity, count, results);
    copy_reports(measured_algorithms(handle, conv), conv, capacity, count, results);
  });
}

cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithmEx(
    cudnnHandle_t handle, cudnnFilterDescriptor_t w_desc, const void* w,
    cudnnTensorDescriptor_t dy_desc, const void* dy, cudnnConvolutionDescriptor_t conv_desc,
    cudnnTensorDescriptor_t dx_desc, void* dx, int capacity, int* count,
    cudnnConvolutionBwdDataAlgoPerf_t* results, void* workspace, size_t bytes) {
  return guarded_legacy(__func__, [&] {
    const Convolution conv = make_convolution(kDataKind, dx_desc, w_desc, conv_desc, dy_desc);
    require_room(capacity, count, results);
    const ConvMemory memory{required(dx, "dx"), required(w, "w"), required(dy, "dy")};
    copy_reports(measured_algorithms(handle, conv, memory, workspace, bytes), conv, capacity, count,
                 results);
  });
}

cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(
    cudnnHandle_t handle, cudnnFilterDescriptor_t w_desc, cudnnTensorDescriptor_t dy_desc,
    cudnnConvolutionDescriptor_t conv_desc, cudnnTensorDescriptor_t dx_desc,
    cudnnConvolutionBwdDataAlgo_t algo, size_t* bytes) {
  return guarded_legacy(__func__, [&] {
    const Convolution conv = make_convolution(kDataKind, dx_desc, w_desc, conv_desc, dy_desc);
    *required(bytes, "sizeInBytes") = workspace_bytes(handle, conv, algo);
  });
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void* alpha,
                                           cudnnFilterDescriptor_t w_desc, const void* w,
                                           cudnnTensorDescriptor_t dy_desc, const void* dy,
                                           cudnnConvolutionDescriptor_t conv_desc,
                                           cudnnConvolutionBwdDataAlgo_t algo, void* workspace,
                                           size_t bytes, const void* beta,
                                           cudnnTensorDescriptor_t dx_desc, void* dx) {
  return guarded_legacy(__func__, [&] {
    const Convolution conv = make_convolution(kDataKind, dx_desc, w_desc, conv_desc, dy_desc);
    const ConvMemory memory{required(dx, "dx"), required(w, "w"), required(dy, "dy")};
    run_convolution(handle, conv, strategy_of(kDataKind, algo), alpha, beta, memory, workspace,
                    bytes);
  });
}

/* Convolutions of the legacy API.
 *
 * Find measures every algorithm and Get predicts; both return at most `capacity` results, fastest
 * first, and their number in `count`. Workspaces are device memory. */
#ifndef ASHLAR_CUDNN_CNN_H
#define ASHLAR_CUDNN_CNN_H

#include "cudnn_fused_ops.h"
#include "cudnn_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A convolution: padding, strides, dilation, groups, compute type. */
typedef struct cudnnConvolutionStruct* cudnnConvolutionDescriptor_t;

/* The result of one algorithm: time in milliseconds (-1 on failure), workspace in bytes. */
typedef struct cudnnConvolutionFwdAlgoPerfStruct {
  cudnnConvolutionFwdAlgo_t algo;
  cudnnStatus_t status;
  float time;
  size_t memory;
  cudnnDeterminism_t determinism;
  cudnnMathType_t mathType;
  int reserved[3];
} cudnnConvolutionFwdAlgoPerf_t;

typedef struct cudnnConvolutionBwdDataAlgoPerfStruct {
  cudnnConvolutionBwdDataAlgo_t algo;
  cudnnStatus_t status;
  float time;
  size_t memory;
  cudnnDeterminism_t determinism;
  cudnnMathType_t mathType;
  int reserved[3];
} cudnnConvolutionBwdDataAlgoPerf_t;

typedef struct cudnnConvolutionBwdFilterAlgoPerfStruct {
  cudnnConvolutionBwdFilterAlgo_t algo;
  cudnnStatus_t status;
  float time;
  size_t memory;
  cudnnDeterminism_t determinism;
  cudnnMathType_t mathType;
  int reserved[3];
} cudnnConvolutionBwdFilterAlgoPerf_t;

cudnnStatus_t cudnnCnnVersionCheck(void);

/* The descriptor, and the output dims. */
CUDNN_DEPRECATED cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* conv);
CUDNN_DEPRECATED cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t conv);
CUDNN_DEPRECATED cudnnStatus_t cudnnSetConvolution2dDescriptor(
    cudnnConvolutionDescriptor_t conv, int pad_h, int pad_w, int stride_h, int stride_w,
    int dilation_h, int dilation_w, cudnnConvolutionMode_t mode, cudnnDataType_t compute);
CUDNN_DEPRECATED cudnnStatus_t cudnnGetConvolution2dDescriptor(
    cudnnConvolutionDescriptor_t conv, int* pad_h, int* pad_w, int* stride_h, int* stride_w,
    int* dilation_h, int* dilation_w, cudnnConvolutionMode_t* mode, cudnnDataType_t* compute);
CUDNN_DEPRECATED cudnnStatus_t cudnnSetConvolutionNdDescriptor(
    cudnnConvolutionDescriptor_t conv, int spatial_rank, const int pads[], const int strides[],
    const int dilations[], cudnnConvolutionMode_t mode, cudnnDataType_t compute);
CUDNN_DEPRECATED cudnnStatus_t cudnnGetConvolutionNdDescriptor(
    cudnnConvolutionDescriptor_t conv, int capacity, int* spatial_rank, int pads[], int strides[],
    int dilations[], cudnnConvolutionMode_t* mode, cudnnDataType_t* compute);
CUDNN_DEPRECATED cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t conv,
                                                             int groups);
CUDNN_DEPRECATED cudnnStatus_t cudnnGetConvolutionGroupCount(cudnnConvolutionDescriptor_t conv,
                                                             int* groups);
CUDNN_DEPRECATED cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t conv,
                                                           cudnnMathType_t math);
CUDNN_DEPRECATED cudnnStatus_t cudnnGetConvolutionMathType(cudnnConvolutionDescriptor_t conv,
                                                           cudnnMathType_t* math);
CUDNN_DEPRECATED cudnnStatus_t cudnnSetConvolutionReorderType(cudnnConvolutionDescriptor_t conv,
                                                              cudnnReorderType_t reordering);
CUDNN_DEPRECATED cudnnStatus_t cudnnGetConvolutionReorderType(cudnnConvolutionDescriptor_t conv,
                                                              cudnnReorderType_t* reordering);
CUDNN_DEPRECATED cudnnStatus_t cudnnGetConvolution2dForwardOutputDim(
    cudnnConvolutionDescriptor_t conv, cudnnTensorDescriptor_t x_desc,
    cudnnFilterDescriptor_t w_desc, int* n, int* c, int* h, int* w);
CUDNN_DEPRECATED cudnnStatus_t cudnnGetConvolutionNdForwardOutputDim(
    cudnnConvolutionDescriptor_t conv, cudnnTensorDescriptor_t x_desc,
    cudnnFilterDescriptor_t w_desc, int rank, int dims[]);

/* Forward; the fused call adds z and a bias and applies an activation. */
CUDNN_DEPRECATED cudnnStatus_t cudnnGetConvolutionForwardAlgorithmMaxCount(cudnnHandle_t handle,
                                                                           int* count);
CUDNN_DEPRECATED cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x_desc, cudnnFilterDescriptor_t w_desc,
    cudnnConvolutionDescriptor_t conv, cudnnTensorDescriptor_t y_desc, int capacity, int* count,
    cudnnConvolutionFwdAlgoPerf_t* results);
CUDNN_DEPRECATED cudnnStatus_t cudnnFindConvolutionForwardAlgorithm(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x_desc, cudnnFilterDescriptor_t w_desc,
    cudnnConvolutionDescriptor_t conv, cudnnTensorDescriptor_t y_desc, int capacity, int* count,
    cudnnConvolutionFwdAlgoPerf_t* results);
CUDNN_DEPRECATED cudnnStatus_t cudnnFindConvolutionForwardAlgorithmEx(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x_desc, const void* x,
    cudnnFilterDescriptor_t w_desc, const void* w, cudnnConvolutionDescriptor_t conv,
    cudnnTensorDescriptor_t y_desc, void* y, int capacity, int* count,
    cudnnConvolutionFwdAlgoPerf_t* results, void* workspace, size_t workspace_bytes);
CUDNN_DEPRECATED cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x_desc, cudnnFilterDescriptor_t w_desc,
    cudnnConvolutionDescriptor_t conv, cudnnTensorDescriptor_t y_desc,
    cudnnConvolutionFwdAlgo_t algo, size_t* bytes);
CUDNN_DEPRECATED cudnnStatus_t cudnnConvolutionForward(
    cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t x_desc, const void* x,
    cudnnFilterDescriptor_t w_desc, const void* w, cudnnConvolutionDescriptor_t conv,
    cudnnConvolutionFwdAlgo_t algo, void* workspace, size_t workspace_bytes, const void* beta,
    cudnnTensorDescriptor_t y_desc, void* y);
CUDNN_DEPRECATED cudnnStatus_t cudnnConvolutionBiasActivationForward(
    cudnnHandle_t handle, const void* alpha1, cudnnTensorDescriptor_t x_desc, const void* x,
    cudnnFilterDescriptor_t w_desc, const void* w, cudnnConvolutionDescriptor_t conv,
    cudnnConvolutionFwdAlgo_t algo, void* workspace, size_t workspace_bytes, const void* alpha2,
    cudnnTensorDescriptor_t z_desc, const void* z, cudnnTensorDescriptor_t bias_desc,
    const void* bias, cudnnActivationDescriptor_t activation, cudnnTensorDescriptor_t y_desc,
    void* y);

/* The gradient of the input. */
CUDNN_DEPRECATED cudnnStatus_t
cudnnGetConvolutionBackwardDataAlgorithmMaxCount(cudnnHandle_t handle, int* count);
CUDNN_DEPRECATED cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t handle, cudnnFilterDescriptor_t w_desc, cudnnTensorDescriptor_t dy_desc,
    cudnnConvolutionDescriptor_t conv, cudnnTensorDescriptor_t dx_desc, int capacity, int* count,
    cudnnConvolutionBwdDataAlgoPerf_t* results);
CUDNN_DEPRECATED cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithm(
    cudnnHandle_t handle, cudnnFilterDescriptor_t w_desc, cudnnTensorDescriptor_t dy_desc,
    cudnnConvolutionDescriptor_t conv, cudnnTensorDescriptor_t dx_desc, int capacity, int* count,
    cudnnConvolutionBwdDataAlgoPerf_t* results);
CUDNN_DEPRECATED cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithmEx(
    cudnnHandle_t handle, cudnnFilterDescriptor_t w_desc, const void* w,
    cudnnTensorDescriptor_t dy_desc, const void* dy, cudnnConvolutionDescriptor_t conv,
    cudnnTensorDescriptor_t dx_desc, void* dx, int capacity, int* count,
    cudnnConvolutionBwdDataAlgoPerf_t* results, void* workspace, size_t workspace_bytes);
CUDNN_DEPRECATED cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(
    cudnnHandle_t handle, cudnnFilterDescriptor_t w_desc, cudnnTensorDescriptor_t dy_desc,
    cudnnConvolutionDescriptor_t conv, cudnnTensorDescriptor_t dx_desc,
    cudnnConvolutionBwdDataAlgo_t algo, size_t* bytes);
CUDNN_DEPRECATED cudnnStatus_t cudnnConvolutionBackwardData(
    cudnnHandle_t handle, const void* alpha, cudnnFilterDescriptor_t w_desc, const void* w,
    cudnnTensorDescriptor_t dy_desc, const void* dy, cudnnConvolutionDescriptor_t conv,
    cudnnConvolutionBwdDataAlgo_t algo, void* workspace, size_t workspace_bytes, const void* beta,
    cudnnTensorDescriptor_t dx_desc, void* dx);
CUDNN_DEPRECATED cudnnStatus_t cudnnGetFoldedConvBackwardDataDescriptors(
    cudnnHandle_t handle, cudnnFilterDescriptor_t filter_desc, cudnnTensorDescriptor_t dy_desc,
    cudnnConvolutionDescriptor_t conv, cudnnTensorDescriptor_t dx_desc, cudnnTensorFormat_t format,
    cudnnFilterDescriptor_t folded_filter, cudnnTensorDescriptor_t padded_dy,
    cudnnConvolutionDescriptor_t folded_conv, cudnnTensorDescriptor_t folded_dx,
    cudnnTensorTransformDescriptor_t filter_fold, cudnnTensorTransformDescriptor_t dy_pad,
    cudnnTensorTransformDescriptor_t dx_fold, cudnnTensorTransformDescriptor_t dx_unfold);

/* The gradients of the filter and of the bias. */
CUDNN_DEPRECATED cudnnStatus_t
cudnnGetConvolutionBackwardFilterAlgorithmMaxCount(cudnnHandle_t handle, int* count);
CUDNN_DEPRECATED cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x_desc, cudnnTensorDescriptor_t dy_desc,
    cudnnConvolutionDescriptor_t conv, cudnnFilterDescriptor_t dw_desc, int capacity, int* count,
    cudnnConvolutionBwdFilterAlgoPerf_t* results);
CUDNN_DEPRECATED cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithm(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x_desc, cudnnTensorDescriptor_t dy_desc,
    cudnnConvolutionDescriptor_t conv, cudnnFilterDescriptor_t dw_desc, int capacity, int* count,
    cudnnConvolutionBwdFilterAlgoPerf_t* results);
CUDNN_DEPRECATED cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithmEx(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x_desc, const void* x,
    cudnnTensorDescriptor_t dy_desc, const void* y, cudnnConvolutionDescriptor_t conv,
    cudnnFilterDescriptor_t dw_desc, void* dw, int capacity, int* count,
    cudnnConvolutionBwdFilterAlgoPerf_t* results, void* workspace, size_t workspace_bytes);
CUDNN_DEPRECATED cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x_desc, cudnnTensorDescriptor_t dy_desc,
    cudnnConvolutionDescriptor_t conv, cudnnFilterDescriptor_t dw_desc,
    cudnnConvolutionBwdFilterAlgo_t algo, size_t* bytes);
CUDNN_DEPRECATED cudnnStatus_t cudnnConvolutionBackwardFilter(
    cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t x_desc, const void* x,
    cudnnTensorDescriptor_t dy_desc, const void* dy, cudnnConvolutionDescriptor_t conv,
    cudnnConvolutionBwdFilterAlgo_t algo, void* workspace, size_t workspace_bytes, const void* beta,
    cudnnFilterDescriptor_t dw_desc, void* dw);
CUDNN_DEPRECATED cudnnStatus_t cudnnConvolutionBackwardBias(cudnnHandle_t handle, const void* alpha,
                                                            cudnnTensorDescriptor_t dy_desc,
                                                            const void* dy, const void* beta,
                                                            cudnnTensorDescriptor_t db_desc,
                                                            void* db);

/* im2col, and the reordering of filters and biases for INT8x32. */
CUDNN_DEPRECATED cudnnStatus_t cudnnIm2Col(cudnnHandle_t handle, cudnnTensorDescriptor_t x_desc,
                                           const void* x, cudnnFilterDescriptor_t w_desc,
                                           cudnnConvolutionDescriptor_t conv, void* columns);
CUDNN_DEPRECATED cudnnStatus_t cudnnReorderFilterAndBias(cudnnHandle_t handle,
                                                         cudnnFilterDescriptor_t filter_desc,
                                                         cudnnReorderType_t reordering,
                                                         const void* filter, void* reordered_filter,
                                                         int with_bias, const void* bias,
                                                         void* reordered_bias);

#ifdef __cplusplus
}
#endif

#endif /* ASHLAR_CUDNN_CNN_H */

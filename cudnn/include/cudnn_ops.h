/* Tensor operations of the legacy API.
 *
 * With alpha and beta, y = alpha * f(x) + beta * y; with beta == 0 the old contents of y are not
 * read. Both are host pointers: to double for double tensors, else to float. */
#ifndef ASHLAR_CUDNN_OPS_H
#define ASHLAR_CUDNN_OPS_H

#include "cudnn_ops_norm.h"
#include "cudnn_ops_types.h"

#ifdef __cplusplus
extern "C" {
#endif

cudnnStatus_t cudnnOpsVersionCheck(void);

/* A tensor by shape and format, or by shape and strides in elements. */
cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* tensor);
cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t tensor, cudnnTensorFormat_t format,
                                         cudnnDataType_t dtype, int n, int c, int h, int w);
cudnnStatus_t cudnnSetTensor4dDescriptorEx(cudnnTensorDescriptor_t tensor, cudnnDataType_t dtype,
                                           int n, int c, int h, int w, int stride_n, int stride_c,
                                           int stride_h, int stride_w);
cudnnStatus_t cudnnGetTensor4dDescriptor(cudnnTensorDescriptor_t tensor, cudnnDataType_t* dtype,
                                         int* n, int* c, int* h, int* w, int* stride_n,
                                         int* stride_c, int* stride_h, int* stride_w);
cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t tensor, cudnnDataType_t dtype,
                                         int rank, const int dims[], const int strides[]);
cudnnStatus_t cudnnSetTensorNdDescriptorEx(cudnnTensorDescriptor_t tensor,
                                           cudnnTensorFormat_t format, cudnnDataType_t dtype,
                                           int rank, const int dims[]);
cudnnStatus_t cudnnGetTensorNdDescriptor(cudnnTensorDescriptor_t tensor, int capacity,
                                         cudnnDataType_t* dtype, int* rank, int dims[],
                                         int strides[]);
cudnnStatus_t cudnnGetTensorSizeInBytes(cudnnTensorDescriptor_t tensor, size_t* bytes);
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t tensor);

/* A filter: k output channels, c input channels, and its window. */
CUDNN_DEPRECATED cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* filter_desc);
CUDNN_DEPRECATED cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t filter_desc,
                                                          cudnnDataType_t dtype,
                                                          cudnnTensorFormat_t format, int k, int c,
                                                          int h, int w);
CUDNN_DEPRECATED cudnnStatus_t cudnnGetFilter4dDescriptor(cudnnFilterDescriptor_t filter_desc,
                                                          cudnnDataType_t* dtype,
                                                          cudnnTensorFormat_t* format, int* k,
                                                          int* c, int* h, int* w);
CUDNN_DEPRECATED cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t filter_desc,
                                                          cudnnDataType_t dtype,
                                                          cudnnTensorFormat_t format, int rank,
                                                          const int dims[]);
CUDNN_DEPRECATED cudnnStatus_t cudnnGetFilterNdDescriptor(cudnnFilterDescriptor_t filter_desc,
                                                          int capacity, cudnnDataType_t* dtype,
                                                          cudnnTensorFormat_t* format, int* rank,
                                                          int dims[]);
CUDNN_DEPRECATED cudnnStatus_t cudnnGetFilterSizeInBytes(cudnnFilterDescriptor_t filter_desc,
                                                         size_t* bytes);
CUDNN_DEPRECATED cudnnStatus_t cudnnTransformFilter(cudnnHandle_t handle,
                                                    cudnnTensorTransformDescriptor_t transform,
                                                    const void* alpha,
                                                    cudnnFilterDescriptor_t from_desc,
                                                    const void* from, const void* beta,
                                                    cudnnFilterDescriptor_t to_desc, void* to);
CUDNN_DEPRECATED cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t filter_desc);

/* Copies between layouts, with padding and with blocks folded into channels. */
CUDNN_DEPRECATED cudnnStatus_t
cudnnCreateTensorTransformDescriptor(cudnnTensorTransformDescriptor_t* transform);
CUDNN_DEPRECATED cudnnStatus_t cudnnSetTensorTransformDescriptor(
    cudnnTensorTransformDescriptor_t transform, uint32_t rank, cudnnTensorFormat_t to_format,
    const int32_t pads_before[], const int32_t pads_after[], const uint32_t folds[],
    cudnnFoldingDirection_t direction);
CUDNN_DEPRECATED cudnnStatus_t cudnnGetTensorTransformDescriptor(
    cudnnTensorTransformDescriptor_t transform, uint32_t capacity, cudnnTensorFormat_t* to_format,
    int32_t pads_before[], int32_t pads_after[], uint32_t folds[],
    cudnnFoldingDirection_t* direction);
CUDNN_DEPRECATED cudnnStatus_t
cudnnDestroyTensorTransformDescriptor(cudnnTensorTransformDescriptor_t transform);
CUDNN_DEPRECATED cudnnStatus_t cudnnInitTransformDest(cudnnTensorTransformDescriptor_t transform,
                                                      cudnnTensorDescriptor_t from_desc,
                                                      cudnnTensorDescriptor_t to_desc,
                                                      size_t* to_bytes);
CUDNN_DEPRECATED cudnnStatus_t cudnnTransformTensor(cudnnHandle_t handle, const void* alpha,
                                                    cudnnTensorDescriptor_t x_desc, const void* x,
                                                    const void* beta,
                                                    cudnnTensorDescriptor_t y_desc, void* y);
CUDNN_DEPRECATED cudnnStatus_t cudnnTransformTensorEx(cudnnHandle_t handle,
                                                      cudnnTensorTransformDescriptor_t transform,
                                                      const void* alpha,
                                                      cudnnTensorDescriptor_t from_desc,
                                                      const void* from, const void* beta,
                                                      cudnnTensorDescriptor_t to_desc, void* to);

/* Element-wise operations; dims of 1 broadcast. */
CUDNN_DEPRECATED cudnnStatus_t cudnnCreateOpTensorDescriptor(cudnnOpTensorDescriptor_t* op_tensor);
CUDNN_DEPRECATED cudnnStatus_t cudnnSetOpTensorDescriptor(cudnnOpTensorDescriptor_t op_tensor,
                                                          cudnnOpTensorOp_t op,
                                                          cudnnDataType_t compute,
                                                          cudnnNanPropagation_t nan);
CUDNN_DEPRECATED cudnnStatus_t cudnnGetOpTensorDescriptor(cudnnOpTensorDescriptor_t op_tensor,
                                                          cudnnOpTensorOp_t* op,
                                                          cudnnDataType_t* compute,
                                                          cudnnNanPropagation_t* nan);
CUDNN_DEPRECATED cudnnStatus_t cudnnDestroyOpTensorDescriptor(cudnnOpTensorDescriptor_t op_tensor);
CUDNN_DEPRECATED cudnnStatus_t cudnnOpTensor(cudnnHandle_t handle,
                                             cudnnOpTensorDescriptor_t op_tensor,
                                             const void* alpha1, cudnnTensorDescriptor_t a_desc,
                                             const void* a, const void* alpha2,
                                             cudnnTensorDescriptor_t b_desc, const void* b,
                                             const void* beta, cudnnTensorDescriptor_t c_desc,
                                             void* c);
CUDNN_DEPRECATED cudnnStatus_t cudnnAddTensor(cudnnHandle_t handle, const void* alpha,
                                              cudnnTensorDescriptor_t a_desc, const void* a,
                                              const void* beta, cudnnTensorDescriptor_t c_desc,
                                              void* c);
cudnnStatus_t cudnnSetTensor(cudnnHandle_t handle, cudnnTensorDescriptor_t y_desc, void* y,
                             const void* value);
CUDNN_DEPRECATED cudnnStatus_t cudnnScaleTensor(cudnnHandle_t handle,
                                                cudnnTensorDescriptor_t y_desc, void* y,
                                                const void* alpha);

/* Reductions to the dims of c, optionally with 32-bit indices of the minima or maxima. */
CUDNN_DEPRECATED cudnnStatus_t
cudnnCreateReduceTensorDescriptor(cudnnReduceTensorDescriptor_t* reduction);
CUDNN_DEPRECATED cudnnStatus_t cudnnSetReduceTensorDescriptor(
    cudnnReduceTensorDescriptor_t reduction, cudnnReduceTensorOp_t op, cudnnDataType_t compute,
    cudnnNanPropagation_t nan, cudnnReduceTensorIndices_t indices, cudnnIndicesType_t indices_type);
CUDNN_DEPRECATED cudnnStatus_t cudnnGetReduceTensorDescriptor(
    cudnnReduceTensorDescriptor_t reduction, cudnnReduceTensorOp_t* op, cudnnDataType_t* compute,
    cudnnNanPropagation_t* nan, cudnnReduceTensorIndices_t* indices,
    cudnnIndicesType_t* indices_type);
CUDNN_DEPRECATED cudnnStatus_t
cudnnDestroyReduceTensorDescriptor(cudnnReduceTensorDescriptor_t reduction);
CUDNN_DEPRECATED cudnnStatus_t cudnnGetReductionIndicesSize(cudnnHandle_t handle,
                                                            cudnnReduceTensorDescriptor_t reduction,
                                                            cudnnTensorDescriptor_t a_desc,
                                                            cudnnTensorDescriptor_t c_desc,
                                                            size_t* bytes);
CUDNN_DEPRECATED cudnnStatus_t cudnnGetReductionWorkspaceSize(
    cudnnHandle_t handle, cudnnReduceTensorDescriptor_t reduction, cudnnTensorDescriptor_t a_desc,
    cudnnTensorDescriptor_t c_desc, size_t* bytes);
CUDNN_DEPRECATED cudnnStatus_t cudnnReduceTensor(cudnnHandle_t handle,
                                                 cudnnReduceTensorDescriptor_t reduction,
                                                 void* indices, size_t indices_bytes,
                                                 void* workspace, size_t workspace_bytes,
                                                 const void* alpha, cudnnTensorDescriptor_t a_desc,
                                                 const void* a, const void* beta,
                                                 cudnnTensorDescriptor_t c_desc, void* c);

/* Activations; the coefficient is the bound of the clipped relu or the alpha of the elu. */
CUDNN_DEPRECATED cudnnStatus_t
cudnnCreateActivationDescriptor(cudnnActivationDescriptor_t* activation);
CUDNN_DEPRECATED cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t activation,
                                                            cudnnActivationMode_t mode,
                                                            cudnnNanPropagation_t nan,
                                                            double coefficient);
CUDNN_DEPRECATED cudnnStatus_t cudnnGetActivationDescriptor(cudnnActivationDescriptor_t activation,
                                                            cudnnActivationMode_t* mode,
                                                            cudnnNanPropagation_t* nan,
                                                            double* coefficient);
CUDNN_DEPRECATED cudnnStatus_t
cudnnSetActivationDescriptorSwishBeta(cudnnActivationDescriptor_t activation, double beta);
CUDNN_DEPRECATED cudnnStatus_t
cudnnGetActivationDescriptorSwishBeta(cudnnActivationDescriptor_t activation, double* beta);
CUDNN_DEPRECATED cudnnStatus_t
cudnnDestroyActivationDescriptor(cudnnActivationDescriptor_t activation);
CUDNN_DEPRECATED cudnnStatus_t cudnnActivationForward(cudnnHandle_t handle,
                                                      cudnnActivationDescriptor_t activation,
                                                      const void* alpha,
                                                      cudnnTensorDescriptor_t x_desc, const void* x,
                                                      const void* beta,
                                                      cudnnTensorDescriptor_t y_desc, void* y);
CUDNN_DEPRECATED cudnnStatus_t cudnnActivationBackward(
    cudnnHandle_t handle, cudnnActivationDescriptor_t activation, const void* alpha,
    cudnnTensorDescriptor_t y_desc, const void* y, cudnnTensorDescriptor_t dy_desc, const void* dy,
    cudnnTensorDescriptor_t x_desc, const void* x, const void* beta,
    cudnnTensorDescriptor_t dx_desc, void* dx);

/* Softmax. */
cudnnStatus_t cudnnSoftmaxForward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algo,
                                  cudnnSoftmaxMode_t mode, const void* alpha,
                                  cudnnTensorDescriptor_t x_desc, const void* x, const void* beta,
                                  cudnnTensorDescriptor_t y_desc, void* y);
cudnnStatus_t cudnnSoftmaxBackward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algo,
                                   cudnnSoftmaxMode_t mode, const void* alpha,
                                   cudnnTensorDescriptor_t y_desc, const void* y,
                                   cudnnTensorDescriptor_t dy_desc, const void* dy,
                                   const void* beta, cudnnTensorDescriptor_t dx_desc, void* dx);

/* Pooling. */
CUDNN_DEPRECATED cudnnStatus_t cudnnCreatePoolingDescriptor(cudnnPoolingDescriptor_t* pooling);
CUDNN_DEPRECATED cudnnStatus_t cudnnSetPooling2dDescriptor(cudnnPoolingDescriptor_t pooling,
                                                           cudnnPoolingMode_t mode,
                                                           cudnnNanPropagation_t nan, int window_h,
                                                           int window_w, int pad_h, int pad_w,
                                                           int stride_h, int stride_w);
CUDNN_DEPRECATED cudnnStatus_t cudnnGetPooling2dDescriptor(
    cudnnPoolingDescriptor_t pooling, cudnnPoolingMode_t* mode, cudnnNanPropagation_t* nan,
    int* window_h, int* window_w, int* pad_h, int* pad_w, int* stride_h, int* stride_w);
CUDNN_DEPRECATED cudnnStatus_t cudnnSetPoolingNdDescriptor(cudnnPoolingDescriptor_t pooling,
                                                           cudnnPoolingMode_t mode,
                                                           cudnnNanPropagation_t nan, int rank,
                                                           const int window[], const int pads[],
                                                           const int strides[]);
CUDNN_DEPRECATED cudnnStatus_t cudnnGetPoolingNdDescriptor(cudnnPoolingDescriptor_t pooling,
                                                           int capacity, cudnnPoolingMode_t* mode,
                                                           cudnnNanPropagation_t* nan, int* rank,
                                                           int window[], int pads[], int strides[]);
CUDNN_DEPRECATED cudnnStatus_t cudnnGetPooling2dForwardOutputDim(cudnnPoolingDescriptor_t pooling,
                                                                 cudnnTensorDescriptor_t x_desc,
                                                                 int* n, int* c, int* h, int* w);
CUDNN_DEPRECATED cudnnStatus_t cudnnGetPoolingNdForwardOutputDim(cudnnPoolingDescriptor_t pooling,
                                                                 cudnnTensorDescriptor_t x_desc,
                                                                 int rank, int dims[]);
CUDNN_DEPRECATED cudnnStatus_t cudnnDestroyPoolingDescriptor(cudnnPoolingDescriptor_t pooling);
CUDNN_DEPRECATED cudnnStatus_t cudnnPoolingForward(cudnnHandle_t handle,
                                                   cudnnPoolingDescriptor_t pooling,
                                                   const void* alpha,
                                                   cudnnTensorDescriptor_t x_desc, const void* x,
                                                   const void* beta, cudnnTensorDescriptor_t y_desc,
                                                   void* y);
CUDNN_DEPRECATED cudnnStatus_t
cudnnPoolingBackward(cudnnHandle_t handle, cudnnPoolingDescriptor_t pooling, const void* alpha,
                     cudnnTensorDescriptor_t y_desc, const void* y, cudnnTensorDescriptor_t dy_desc,
                     const void* dy, cudnnTensorDescriptor_t x_desc, const void* x,
                     const void* beta, cudnnTensorDescriptor_t dx_desc, void* dx);

/* Dropout stores its generator in `states` and its mask in `reserve`; restore continues from saved
 * states. */
cudnnStatus_t cudnnCreateDropoutDescriptor(cudnnDropoutDescriptor_t* dropout);
cudnnStatus_t cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t dropout, cudnnHandle_t handle,
                                        float probability, void* states, size_t states_bytes,
                                        unsigned long long seed);
cudnnStatus_t cudnnRestoreDropoutDescriptor(cudnnDropoutDescriptor_t dropout, cudnnHandle_t handle,
                                            float probability, void* states, size_t states_bytes,
                                            unsigned long long seed);
cudnnStatus_t cudnnGetDropoutDescriptor(cudnnDropoutDescriptor_t dropout, cudnnHandle_t handle,
                                        float* probability, void** states,
                                        unsigned long long* seed);
cudnnStatus_t cudnnDestroyDropoutDescriptor(cudnnDropoutDescriptor_t dropout);
cudnnStatus_t cudnnDropoutGetStatesSize(cudnnHandle_t handle, size_t* bytes);
cudnnStatus_t cudnnDropoutGetReserveSpaceSize(cudnnTensorDescriptor_t x_desc, size_t* bytes);
cudnnStatus_t cudnnDropoutForward(cudnnHandle_t handle, cudnnDropoutDescriptor_t dropout,
                                  cudnnTensorDescriptor_t x_desc, const void* x,
                                  cudnnTensorDescriptor_t y_desc, void* y, void* reserve,
                                  size_t reserve_bytes);
cudnnStatus_t cudnnDropoutBackward(cudnnHandle_t handle, cudnnDropoutDescriptor_t dropout,
                                   cudnnTensorDescriptor_t dy_desc, const void* dy,
                                   cudnnTensorDescriptor_t dx_desc, void* dx, void* reserve,
                                   size_t reserve_bytes);

/* Spatial transformer: a sampling grid from an affine matrix, and samples at its points. */
cudnnStatus_t cudnnCreateSpatialTransformerDescriptor(
    cudnnSpatialTransformerDescriptor_t* transformer);
cudnnStatus_t cudnnSetSpatialTransformerNdDescriptor(
    cudnnSpatialTransformerDescriptor_t transformer, cudnnSamplerType_t sampler,
    cudnnDataType_t dtype, int rank, const int dims[]);
cudnnStatus_t cudnnDestroySpatialTransformerDescriptor(
    cudnnSpatialTransformerDescriptor_t transformer);
cudnnStatus_t cudnnSpatialTfGridGeneratorForward(cudnnHandle_t handle,
                                                 cudnnSpatialTransformerDescriptor_t transformer,
                                                 const void* theta, void* grid);
cudnnStatus_t cudnnSpatialTfGridGeneratorBackward(cudnnHandle_t handle,
                                                  cudnnSpatialTransformerDescriptor_t transformer,
                                                  const void* dgrid, void* dtheta);
cudnnStatus_t cudnnSpatialTfSamplerForward(cudnnHandle_t handle,
                                           cudnnSpatialTransformerDescriptor_t transformer,
                                           const void* alpha, cudnnTensorDescriptor_t x_desc,
                                           const void* x, const void* grid, const void* beta,
                                           cudnnTensorDescriptor_t y_desc, void* y);
cudnnStatus_t cudnnSpatialTfSamplerBackward(cudnnHandle_t handle,
                                            cudnnSpatialTransformerDescriptor_t transformer,
                                            const void* alpha, cudnnTensorDescriptor_t x_desc,
                                            const void* x, const void* beta,
                                            cudnnTensorDescriptor_t dx_desc, void* dx,
                                            const void* alpha_dgrid,
                                            cudnnTensorDescriptor_t dy_desc, const void* dy,
                                            const void* grid, const void* beta_dgrid, void* dgrid);

#ifdef __cplusplus
}
#endif

#endif /* ASHLAR_CUDNN_OPS_H */

/* Normalizations of the legacy API. Programs include cudnn_ops.h. */
#ifndef ASHLAR_CUDNN_OPS_NORM_H
#define ASHLAR_CUDNN_OPS_NORM_H

#include "cudnn_ops_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Local response normalization across channels, and divisive normalization by windows. */
cudnnStatus_t cudnnCreateLRNDescriptor(cudnnLRNDescriptor_t* lrn);
cudnnStatus_t cudnnSetLRNDescriptor(cudnnLRNDescriptor_t lrn, unsigned n, double alpha, double beta,
                                    double k);
cudnnStatus_t cudnnGetLRNDescriptor(cudnnLRNDescriptor_t lrn, unsigned* n, double* alpha,
                                    double* beta, double* k);
cudnnStatus_t cudnnDestroyLRNDescriptor(cudnnLRNDescriptor_t lrn);
cudnnStatus_t cudnnLRNCrossChannelForward(cudnnHandle_t handle, cudnnLRNDescriptor_t lrn,
                                          cudnnLRNMode_t mode, const void* alpha,
                                          cudnnTensorDescriptor_t x_desc, const void* x,
                                          const void* beta, cudnnTensorDescriptor_t y_desc,
                                          void* y);
cudnnStatus_t cudnnLRNCrossChannelBackward(cudnnHandle_t handle, cudnnLRNDescriptor_t lrn,
                                           cudnnLRNMode_t mode, const void* alpha,
                                           cudnnTensorDescriptor_t y_desc, const void* y,
                                           cudnnTensorDescriptor_t dy_desc, const void* dy,
                                           cudnnTensorDescriptor_t x_desc, const void* x,
                                           const void* beta, cudnnTensorDescriptor_t dx_desc,
                                           void* dx);
cudnnStatus_t cudnnDivisiveNormalizationForward(cudnnHandle_t handle, cudnnLRNDescriptor_t lrn,
                                                cudnnDivNormMode_t mode, const void* alpha,
                                                cudnnTensorDescriptor_t x_desc, const void* x,
                                                const void* means, void* temp, void* temp2,
                                                const void* beta, cudnnTensorDescriptor_t y_desc,
                                                void* y);
cudnnStatus_t cudnnDivisiveNormalizationBackward(
    cudnnHandle_t handle, cudnnLRNDescriptor_t lrn, cudnnDivNormMode_t mode, const void* alpha,
    cudnnTensorDescriptor_t x_desc, const void* x, const void* means, const void* dy, void* temp,
    void* temp2, const void* beta, cudnnTensorDescriptor_t dx_desc, void* dx, void* dmeans);

/* Batch norm. The running statistics move by `momentum` towards those of the batch; the saved ones
 * are for the backward pass. The Ex calls add z and an activation. */
CUDNN_DEPRECATED cudnnStatus_t cudnnDeriveBNTensorDescriptor(cudnnTensorDescriptor_t derived_desc,
                                                             cudnnTensorDescriptor_t x_desc,
                                                             cudnnBatchNormMode_t mode);
CUDNN_DEPRECATED cudnnStatus_t cudnnBatchNormalizationForwardInference(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void* alpha, const void* beta,
    cudnnTensorDescriptor_t x_desc, const void* x, cudnnTensorDescriptor_t y_desc, void* y,
    cudnnTensorDescriptor_t stats_desc, const void* scale, const void* bias, const void* mean,
    const void* variance, double epsilon);
CUDNN_DEPRECATED cudnnStatus_t cudnnBatchNormalizationForwardTraining(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void* alpha, const void* beta,
    cudnnTensorDescriptor_t x_desc, const void* x, cudnnTensorDescriptor_t y_desc, void* y,
    cudnnTensorDescriptor_t stats_desc, const void* scale, const void* bias, double momentum,
    void* running_mean, void* running_variance, double epsilon, void* saved_mean,
    void* saved_inv_std);
CUDNN_DEPRECATED cudnnStatus_t cudnnBatchNormalizationBackward(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void* alpha_data, const void* beta_data,
    const void* alpha_params, const void* beta_params, cudnnTensorDescriptor_t x_desc,
    const void* x, cudnnTensorDescriptor_t dy_desc, const void* dy, cudnnTensorDescriptor_t dx_desc,
    void* dx, cudnnTensorDescriptor_t params_desc, const void* scale, void* dscale, void* dbias,
    double epsilon, const void* saved_mean, const void* saved_inv_std);
CUDNN_DEPRECATED cudnnStatus_t cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops,
    cudnnTensorDescriptor_t x_desc, cudnnTensorDescriptor_t z_desc, cudnnTensorDescriptor_t y_desc,
    cudnnTensorDescriptor_t stats_desc, cudnnActivationDescriptor_t activation, size_t* bytes);
CUDNN_DEPRECATED cudnnStatus_t cudnnGetBatchNormalizationBackwardExWorkspaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops,
    cudnnTensorDescriptor_t x_desc, cudnnTensorDescriptor_t y_desc, cudnnTensorDescriptor_t dy_desc,
    cudnnTensorDescriptor_t dz_desc, cudnnTensorDescriptor_t dx_desc,
    cudnnTensorDescriptor_t params_desc, cudnnActivationDescriptor_t activation, size_t* bytes);
CUDNN_DEPRECATED cudnnStatus_t cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops,
    cudnnActivationDescriptor_t activation, cudnnTensorDescriptor_t x_desc, size_t* bytes);
CUDNN_DEPRECATED cudnnStatus_t cudnnBatchNormalizationForwardTrainingEx(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops, const void* alpha,
    const void* beta, cudnnTensorDescriptor_t x_desc, const void* x, cudnnTensorDescriptor_t z_desc,
    const void* z, cudnnTensorDescriptor_t y_desc, void* y, cudnnTensorDescriptor_t stats_desc,
    const void* scale, const void* bias, double momentum, void* running_mean,
    void* running_variance, double epsilon, void* saved_mean, void* saved_inv_std,
    cudnnActivationDescriptor_t activation, void* workspace, size_t workspace_bytes, void* reserve,
    size_t reserve_bytes);
CUDNN_DEPRECATED cudnnStatus_t cudnnBatchNormalizationBackwardEx(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops,
    const void* alpha_data, const void* beta_data, const void* alpha_params,
    const void* beta_params, cudnnTensorDescriptor_t x_desc, const void* x,
    cudnnTensorDescriptor_t y_desc, const void* y, cudnnTensorDescriptor_t dy_desc, const void* dy,
    cudnnTensorDescriptor_t dz_desc, void* dz, cudnnTensorDescriptor_t dx_desc, void* dx,
    cudnnTensorDescriptor_t params_desc, const void* scale, const void* bias, void* dscale,
    void* dbias, double epsilon, const void* saved_mean, const void* saved_inv_std,
    cudnnActivationDescriptor_t activation, void* workspace, size_t workspace_bytes, void* reserve,
    size_t reserve_bytes);

/* The same with separate descriptors for parameters and statistics. */
CUDNN_DEPRECATED cudnnStatus_t cudnnDeriveNormTensorDescriptor(cudnnTensorDescriptor_t params_desc,
                                                               cudnnTensorDescriptor_t stats_desc,
                                                               cudnnTensorDescriptor_t x_desc,
                                                               cudnnNormMode_t mode, int groups);
CUDNN_DEPRECATED cudnnStatus_t cudnnNormalizationForwardInference(
    cudnnHandle_t handle, cudnnNormMode_t mode, cudnnNormOps_t ops, cudnnNormAlgo_t algo,
    const void* alpha, const void* beta, cudnnTensorDescriptor_t x_desc, const void* x,
    cudnnTensorDescriptor_t params_desc, const void* scale, const void* bias,
    cudnnTensorDescriptor_t stats_desc, const void* mean, const void* variance,
    cudnnTensorDescriptor_t z_desc, const void* z, cudnnActivationDescriptor_t activation,
    cudnnTensorDescriptor_t y_desc, void* y, double epsilon, int groups);
CUDNN_DEPRECATED cudnnStatus_t cudnnNormalizationForwardTraining(
    cudnnHandle_t handle, cudnnNormMode_t mode, cudnnNormOps_t ops, cudnnNormAlgo_t algo,
    const void* alpha, const void* beta, cudnnTensorDescriptor_t x_desc, const void* x,
    cudnnTensorDescriptor_t params_desc, const void* scale, const void* bias, double momentum,
    cudnnTensorDescriptor_t stats_desc, void* running_mean, void* running_variance, double epsilon,
    void* saved_mean, void* saved_inv_std, cudnnActivationDescriptor_t activation,
    cudnnTensorDescriptor_t z_desc, const void* z, cudnnTensorDescriptor_t y_desc, void* y,
    void* workspace, size_t workspace_bytes, void* reserve, size_t reserve_bytes, int groups);
CUDNN_DEPRECATED cudnnStatus_t cudnnNormalizationBackward(
    cudnnHandle_t handle, cudnnNormMode_t mode, cudnnNormOps_t ops, cudnnNormAlgo_t algo,
    const void* alpha_data, const void* beta_data, const void* alpha_params,
    const void* beta_params, cudnnTensorDescriptor_t x_desc, const void* x,
    cudnnTensorDescriptor_t y_desc, const void* y, cudnnTensorDescriptor_t dy_desc, const void* dy,
    cudnnTensorDescriptor_t dz_desc, void* dz, cudnnTensorDescriptor_t dx_desc, void* dx,
    cudnnTensorDescriptor_t params_desc, const void* scale, const void* bias, void* dscale,
    void* dbias, double epsilon, cudnnTensorDescriptor_t stats_desc, const void* saved_mean,
    const void* saved_inv_std, cudnnActivationDescriptor_t activation, void* workspace,
    size_t workspace_bytes, void* reserve, size_t reserve_bytes, int groups);
CUDNN_DEPRECATED cudnnStatus_t cudnnGetNormalizationForwardTrainingWorkspaceSize(
    cudnnHandle_t handle, cudnnNormMode_t mode, cudnnNormOps_t ops, cudnnNormAlgo_t algo,
    cudnnTensorDescriptor_t x_desc, cudnnTensorDescriptor_t z_desc, cudnnTensorDescriptor_t y_desc,
    cudnnTensorDescriptor_t params_desc, cudnnActivationDescriptor_t activation,
    cudnnTensorDescriptor_t stats_desc, size_t* bytes, int groups);
CUDNN_DEPRECATED cudnnStatus_t cudnnGetNormalizationBackwardWorkspaceSize(
    cudnnHandle_t handle, cudnnNormMode_t mode, cudnnNormOps_t ops, cudnnNormAlgo_t algo,
    cudnnTensorDescriptor_t x_desc, cudnnTensorDescriptor_t y_desc, cudnnTensorDescriptor_t dy_desc,
    cudnnTensorDescriptor_t dz_desc, cudnnTensorDescriptor_t dx_desc,
    cudnnTensorDescriptor_t params_desc, cudnnActivationDescriptor_t activation,
    cudnnTensorDescriptor_t stats_desc, size_t* bytes, int groups);
CUDNN_DEPRECATED cudnnStatus_t cudnnGetNormalizationTrainingReserveSpaceSize(
    cudnnHandle_t handle, cudnnNormMode_t mode, cudnnNormOps_t ops, cudnnNormAlgo_t algo,
    cudnnActivationDescriptor_t activation, cudnnTensorDescriptor_t x_desc, size_t* bytes,
    int groups);

#ifdef __cplusplus
}
#endif

#endif /* ASHLAR_CUDNN_OPS_NORM_H */

/* Fused-ops plans: a constant parameter pack defines a plan, a variant parameter pack runs it.
 * Programs include cudnn_cnn.h.
 *
 * The value of a ...DESC label is a descriptor, that of a ...PLACEHOLDER label the alignment of a
 * later pointer. */
#ifndef ASHLAR_CUDNN_FUSED_OPS_H
#define ASHLAR_CUDNN_FUSED_OPS_H

#include "cudnn_ops_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The constant parameters, the parameters of one execution, and the plan. */
typedef struct cudnnFusedOpsConstParamStruct* cudnnFusedOpsConstParamPack_t;
typedef struct cudnnFusedOpsVariantParamStruct* cudnnFusedOpsVariantParamPack_t;
typedef struct cudnnFusedOpsPlanStruct* cudnnFusedOpsPlan_t;

/* The fused ops. */
typedef enum {
  CUDNN_FUSED_SCALE_BIAS_ACTIVATION_CONV_BNSTATS = 0,
  CUDNN_FUSED_SCALE_BIAS_ACTIVATION_WGRAD = 1,
  CUDNN_FUSED_BN_FINALIZE_STATISTICS_TRAINING = 2,
  CUDNN_FUSED_BN_FINALIZE_STATISTICS_INFERENCE = 3,
  CUDNN_FUSED_CONV_SCALE_BIAS_ADD_ACTIVATION = 4,
  CUDNN_FUSED_SCALE_BIAS_ADD_ACTIVATION_GEN_BITMASK = 5,
  CUDNN_FUSED_DACTIVATION_FORK_DBATCHNORM = 6,
} cudnnFusedOps_t;

/* Labels of constants. */
typedef enum {
  CUDNN_PARAM_XDESC = 0,
  CUDNN_PARAM_XDATA_PLACEHOLDER = 1,
  CUDNN_PARAM_BN_MODE = 2,
  CUDNN_PARAM_BN_EQSCALEBIAS_DESC = 3,
  CUDNN_PARAM_BN_EQSCALE_PLACEHOLDER = 4,
  CUDNN_PARAM_BN_EQBIAS_PLACEHOLDER = 5,
  CUDNN_PARAM_ACTIVATION_DESC = 6,
  CUDNN_PARAM_CONV_DESC = 7,
  CUDNN_PARAM_WDESC = 8,
  CUDNN_PARAM_WDATA_PLACEHOLDER = 9,
  CUDNN_PARAM_DWDESC = 10,
  CUDNN_PARAM_DWDATA_PLACEHOLDER = 11,
  CUDNN_PARAM_YDESC = 12,
  CUDNN_PARAM_YDATA_PLACEHOLDER = 13,
  CUDNN_PARAM_DYDESC = 14,
  CUDNN_PARAM_DYDATA_PLACEHOLDER = 15,
  CUDNN_PARAM_YSTATS_DESC = 16,
  CUDNN_PARAM_YSUM_PLACEHOLDER = 17,
  CUDNN_PARAM_YSQSUM_PLACEHOLDER = 18,
  CUDNN_PARAM_BN_SCALEBIAS_MEANVAR_DESC = 19,
  CUDNN_PARAM_BN_SCALE_PLACEHOLDER = 20,
  CUDNN_PARAM_BN_BIAS_PLACEHOLDER = 21,
  CUDNN_PARAM_BN_SAVED_MEAN_PLACEHOLDER = 22,
  CUDNN_PARAM_BN_SAVED_INVSTD_PLACEHOLDER = 23,
  CUDNN_PARAM_BN_RUNNING_MEAN_PLACEHOLDER = 24,
  CUDNN_PARAM_BN_RUNNING_VAR_PLACEHOLDER = 25,
  CUDNN_PARAM_ZDESC = 26,
  CUDNN_PARAM_ZDATA_PLACEHOLDER = 27,
  CUDNN_PARAM_BN_Z_EQSCALEBIAS_DESC = 28,
  CUDNN_PARAM_BN_Z_EQSCALE_PLACEHOLDER = 29,
  CUDNN_PARAM_BN_Z_EQBIAS_PLACEHOLDER = 30,
  CUDNN_PARAM_ACTIVATION_BITMASK_DESC = 31,
  CUDNN_PARAM_ACTIVATION_BITMASK_PLACEHOLDER = 32,
  CUDNN_PARAM_DXDESC = 33,
  CUDNN_PARAM_DXDATA_PLACEHOLDER = 34,
  CUDNN_PARAM_DZDESC = 35,
  CUDNN_PARAM_DZDATA_PLACEHOLDER = 36,
  CUDNN_PARAM_BN_DSCALE_PLACEHOLDER = 37,
  CUDNN_PARAM_BN_DBIAS_PLACEHOLDER = 38,
} cudnnFusedOpsConstParamLabel_t;

/* No pointer, or one aligned to its elements or to 16 bytes. */
typedef enum {
  CUDNN_PTR_NULL = 0,
  CUDNN_PTR_ELEM_ALIGNED = 1,
  CUDNN_PTR_16B_ALIGNED = 2,
} cudnnFusedOpsPointerPlaceHolder_t;

/* Device pointers, and from 100 on host scalars of the type in the name. */
typedef enum {
  CUDNN_PTR_XDATA = 0,
  CUDNN_PTR_BN_EQSCALE = 1,
  CUDNN_PTR_BN_EQBIAS = 2,
  CUDNN_PTR_WDATA = 3,
  CUDNN_PTR_DWDATA = 4,
  CUDNN_PTR_YDATA = 5,
  CUDNN_PTR_DYDATA = 6,
  CUDNN_PTR_YSUM = 7,
  CUDNN_PTR_YSQSUM = 8,
  CUDNN_PTR_WORKSPACE = 9,
  CUDNN_PTR_BN_SCALE = 10,
  CUDNN_PTR_BN_BIAS = 11,
  CUDNN_PTR_BN_SAVED_MEAN = 12,
  CUDNN_PTR_BN_SAVED_INVSTD = 13,
  CUDNN_PTR_BN_RUNNING_MEAN = 14,
  CUDNN_PTR_BN_RUNNING_VAR = 15,
  CUDNN_PTR_ZDATA = 16,
  CUDNN_PTR_BN_Z_EQSCALE = 17,
  CUDNN_PTR_BN_Z_EQBIAS = 18,
  CUDNN_PTR_ACTIVATION_BITMASK = 19,
  CUDNN_PTR_DXDATA = 20,
  CUDNN_PTR_DZDATA = 21,
  CUDNN_PTR_BN_DSCALE = 22,
  CUDNN_PTR_BN_DBIAS = 23,
  CUDNN_SCALAR_SIZE_T_WORKSPACE_SIZE_IN_BYTES = 100,
  CUDNN_SCALAR_INT64_T_BN_ACCUMULATION_COUNT = 101,
  CUDNN_SCALAR_DOUBLE_BN_EXP_AVG_FACTOR = 102,
  CUDNN_SCALAR_DOUBLE_BN_EPSILON = 103,
} cudnnFusedOpsVariantParamLabel_t;

CUDNN_DEPRECATED cudnnStatus_t
cudnnCreateFusedOpsConstParamPack(cudnnFusedOpsConstParamPack_t* constants, cudnnFusedOps_t ops);
CUDNN_DEPRECATED cudnnStatus_t
cudnnSetFusedOpsConstParamPackAttribute(cudnnFusedOpsConstParamPack_t constants,
                                        cudnnFusedOpsConstParamLabel_t label, const void* param);
CUDNN_DEPRECATED cudnnStatus_t cudnnGetFusedOpsConstParamPackAttribute(
    cudnnFusedOpsConstParamPack_t constants, cudnnFusedOpsConstParamLabel_t label, void* param,
    int* is_null);
CUDNN_DEPRECATED cudnnStatus_t
cudnnDestroyFusedOpsConstParamPack(cudnnFusedOpsConstParamPack_t constants);
CUDNN_DEPRECATED cudnnStatus_t
cudnnCreateFusedOpsVariantParamPack(cudnnFusedOpsVariantParamPack_t* variants, cudnnFusedOps_t ops);
CUDNN_DEPRECATED cudnnStatus_t cudnnSetFusedOpsVariantParamPackAttribute(
    cudnnFusedOpsVariantParamPack_t variants, cudnnFusedOpsVariantParamLabel_t label, void* ptr);
CUDNN_DEPRECATED cudnnStatus_t cudnnGetFusedOpsVariantParamPackAttribute(
    cudnnFusedOpsVariantParamPack_t variants, cudnnFusedOpsVariantParamLabel_t label, void* ptr);
CUDNN_DEPRECATED cudnnStatus_t
cudnnDestroyFusedOpsVariantParamPack(cudnnFusedOpsVariantParamPack_t variants);
CUDNN_DEPRECATED cudnnStatus_t cudnnCreateFusedOpsPlan(cudnnFusedOpsPlan_t* plan,
                                                       cudnnFusedOps_t ops);
CUDNN_DEPRECATED cudnnStatus_t cudnnMakeFusedOpsPlan(cudnnHandle_t handle, cudnnFusedOpsPlan_t plan,
                                                     cudnnFusedOpsConstParamPack_t constants,
                                                     size_t* workspace_bytes);
CUDNN_DEPRECATED cudnnStatus_t cudnnFusedOpsExecute(cudnnHandle_t handle, cudnnFusedOpsPlan_t plan,
                                                    cudnnFusedOpsVariantParamPack_t variants);
CUDNN_DEPRECATED cudnnStatus_t cudnnDestroyFusedOpsPlan(cudnnFusedOpsPlan_t plan);

#ifdef __cplusplus
}
#endif

#endif /* ASHLAR_CUDNN_FUSED_OPS_H */

#include "fused_ops.h"

const cudnnFusedOpsPointerPlaceHolder_t kAligned = CUDNN_PTR_16B_ALIGNED;
const cudnnBatchNormMode_t kSpatial = CUDNN_BATCHNORM_SPATIAL_PERSISTENT;

const Shape kHalf = {
    "f16", 1, 2, 2, 16, 8, 1, {6, 5}, {3, 3}, {1, 1}, {2, 1}, {1, 1}, CUDNN_CROSS_CORRELATION,
    1,     0};

Fusion make_fusion(cudnnFusedOps_t ops) {
  Fusion fusion;
  SUCCEEDS(cudnnCreateFusedOpsConstParamPack(&fusion.constants, ops));
  SUCCEEDS(cudnnCreateFusedOpsVariantParamPack(&fusion.variants, ops));
  SUCCEEDS(cudnnCreateFusedOpsPlan(&fusion.plan, ops));
  SUCCEEDS(
      cudnnSetFusedOpsConstParamPackAttribute(fusion.constants, CUDNN_PARAM_BN_MODE, &kSpatial));
  return fusion;
}

void destroy_fusion(Fusion* fusion) {
  SUCCEEDS(cudnnDestroyFusedOpsPlan(fusion->plan));
  SUCCEEDS(cudnnDestroyFusedOpsVariantParamPack(fusion->variants));
  SUCCEEDS(cudnnDestroyFusedOpsConstParamPack(fusion->constants));
}

void describe(Fusion* fusion, cudnnFusedOpsConstParamLabel_t label, const void* desc) {
  SUCCEEDS(cudnnSetFusedOpsConstParamPackAttribute(fusion->constants, label, desc));
}
void point(Fusion* fusion, cudnnFusedOpsConstParamLabel_t placeholder,
           cudnnFusedOpsVariantParamLabel_t label, void* pointer) {
  describe(fusion, placeholder, &kAligned);
  SUCCEEDS(cudnnSetFusedOpsVariantParamPackAttribute(fusion->variants, label, pointer));
}
void set_variant(Fusion* fusion, cudnnFusedOpsVariantParamLabel_t label, void* number) {
  SUCCEEDS(cudnnSetFusedOpsVariantParamPackAttribute(fusion->variants, label, number));
}

cudnnTensorDescriptor_t channels(cudnnDataType_t type, int count) {
  cudnnTensorDescriptor_t descriptor;
  SUCCEEDS(cudnnCreateTensorDescriptor(&descriptor));
  SUCCEEDS(cudnnSetTensor4dDescriptor(descriptor, CUDNN_TENSOR_NHWC, type, 1, count, 1, 1));
  return descriptor;
}

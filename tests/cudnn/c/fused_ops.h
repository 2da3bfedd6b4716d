/* A fused op for tests: its plan, its two parameter packs, and a shape. */
#ifndef ASHLAR_TESTS_CUDNN_C_FUSED_OPS_H
#define ASHLAR_TESTS_CUDNN_C_FUSED_OPS_H

#include "convolution.h"

typedef struct {
  cudnnFusedOpsConstParamPack_t constants;
  cudnnFusedOpsVariantParamPack_t variants;
  cudnnFusedOpsPlan_t plan;
} Fusion;

extern const cudnnFusedOpsPointerPlaceHolder_t kAligned;
extern const cudnnBatchNormMode_t kSpatial;
extern const Shape kHalf; /* f16, NHWC */

Fusion make_fusion(cudnnFusedOps_t ops); /* for spatial batch norm */
void destroy_fusion(Fusion* fusion);
void describe(Fusion* fusion, cudnnFusedOpsConstParamLabel_t label, const void* desc);
/* Sets the placeholder of a pointer and the pointer. */
void point(Fusion* fusion, cudnnFusedOpsConstParamLabel_t placeholder,
           cudnnFusedOpsVariantParamLabel_t label, void* pointer);
void set_variant(Fusion* fusion, cudnnFusedOpsVariantParamLabel_t label, void* number);

/* A per-channel tensor. */
cudnnTensorDescriptor_t channels(cudnnDataType_t type, int count);

#endif

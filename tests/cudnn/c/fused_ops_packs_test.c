/* The parameter packs of fused-ops plans: set and get, and rejections. */
#include "fused_ops.h"

static cudnnHandle_t handle;

static void test_bundles(void) {
  Descriptors d = make_descriptors(&kHalf);
  Fusion fusion = make_fusion(CUDNN_FUSED_SCALE_BIAS_ACTIVATION_CONV_BNSTATS);
  cudnnTensorDescriptor_t tensor = channels(CUDNN_DATA_FLOAT, 1);
  cudnnFilterDescriptor_t filter;
  cudnnConvolutionDescriptor_t conv;
  cudnnActivationDescriptor_t activation;
  SUCCEEDS(cudnnCreateFilterDescriptor(&filter));
  SUCCEEDS(cudnnCreateConvolutionDescriptor(&conv));
  SUCCEEDS(cudnnCreateActivationDescriptor(&activation));
  int is_null = -1, rank = 0, dims[4] = {0}, groups = 0;
  cudnnDataType_t type;
  cudnnTensorFormat_t format;
#define GET(label, out) \
  cudnnGetFusedOpsConstParamPackAttribute(fusion.constants, label, out, &is_null)
  SUCCEEDS(GET(CUDNN_PARAM_XDESC, tensor));
  CHECK(is_null == 1);
  describe(&fusion, CUDNN_PARAM_XDESC, d.x);
  describe(&fusion, CUDNN_PARAM_WDESC, d.w);
  SUCCEEDS(cudnnSetConvolutionGroupCount(d.conv, 5));
  describe(&fusion, CUDNN_PARAM_CONV_DESC, d.conv);
  SUCCEEDS(cudnnSetConvolutionGroupCount(d.conv, 1)); /* the pack has a copy */
  SUCCEEDS(GET(CUDNN_PARAM_XDESC, tensor));
  int strides[4] = {0};
  SUCCEEDS(cudnnGetTensorNdDescriptor(tensor, 4, &type, &rank, dims, strides));
  CHECK(is_null == 0 && rank == 4 && type == CUDNN_DATA_HALF && dims[1] == kHalf.c);
  SUCCEEDS(GET(CUDNN_PARAM_WDESC, filter));
  SUCCEEDS(cudnnGetFilterNdDescriptor(filter, 4, &type, &format, &rank, dims));
  CHECK(is_null == 0 && rank == 4 && dims[0] == kHalf.k && format == CUDNN_TENSOR_NHWC);
  SUCCEEDS(GET(CUDNN_PARAM_CONV_DESC, conv));
  SUCCEEDS(cudnnGetConvolutionGroupCount(conv, &groups));
  CHECK(is_null == 0 && groups == 5);
  SUCCEEDS(GET(CUDNN_PARAM_ACTIVATION_DESC, activation));
  CHECK(is_null == 1);
  cudnnBatchNormMode_t mode = CUDNN_BATCHNORM_SPATIAL;
  SUCCEEDS(GET(CUDNN_PARAM_BN_MODE, &mode));
  CHECK(is_null == 0 && mode == kSpatial);
  cudnnFusedOpsPointerPlaceHolder_t placeholder = CUDNN_PTR_16B_ALIGNED;
  SUCCEEDS(GET(CUDNN_PARAM_YDATA_PLACEHOLDER, &placeholder));
  CHECK(is_null == 0 && placeholder == CUDNN_PTR_NULL);
  describe(&fusion, CUDNN_PARAM_YDATA_PLACEHOLDER, &kAligned);
  SUCCEEDS(GET(CUDNN_PARAM_YDATA_PLACEHOLDER, &placeholder));
  CHECK(placeholder == kAligned);
  describe(&fusion, CUDNN_PARAM_XDESC, NULL);
  SUCCEEDS(GET(CUDNN_PARAM_XDESC, tensor));
  CHECK(is_null == 1);
  RETURNS(CUDNN_STATUS_BAD_PARAM, GET(CUDNN_PARAM_XDESC, NULL));
  RETURNS(CUDNN_STATUS_BAD_PARAM, GET(CUDNN_PARAM_DXDESC, tensor)); /* label of another fused op */
  RETURNS(CUDNN_STATUS_BAD_PARAM, GET(CUDNN_PARAM_WDESC, tensor));  /* no filter descriptor */
  RETURNS(CUDNN_STATUS_BAD_PARAM, GET((cudnnFusedOpsConstParamLabel_t)39, tensor));
#undef GET
#define SET(label, out) cudnnSetFusedOpsConstParamPackAttribute(fusion.constants, label, out)
  const int nonsense = 9;
  RETURNS(CUDNN_STATUS_BAD_PARAM, SET(CUDNN_PARAM_BN_MODE, &nonsense));
  RETURNS(CUDNN_STATUS_BAD_PARAM, SET(CUDNN_PARAM_YDATA_PLACEHOLDER, &nonsense));
  RETURNS(CUDNN_STATUS_BAD_PARAM, SET(CUDNN_PARAM_BN_MODE, NULL));
  RETURNS(CUDNN_STATUS_BAD_PARAM, SET(CUDNN_PARAM_XDESC, d.w));
  RETURNS(CUDNN_STATUS_BAD_PARAM, SET(CUDNN_PARAM_BN_DBIAS_PLACEHOLDER, &kAligned));
#undef SET

  void* pointer = &d;
  size_t bytes = 77, got = 0;
  SUCCEEDS(cudnnGetFusedOpsVariantParamPackAttribute(fusion.variants, CUDNN_PTR_YDATA, &pointer));
  CHECK(pointer == NULL);
  set_variant(&fusion, CUDNN_PTR_YDATA, &d);
  set_variant(&fusion, CUDNN_SCALAR_SIZE_T_WORKSPACE_SIZE_IN_BYTES, &bytes);
  SUCCEEDS(cudnnGetFusedOpsVariantParamPackAttribute(fusion.variants, CUDNN_PTR_YDATA, &pointer));
  CHECK(pointer == &d);
  SUCCEEDS(cudnnGetFusedOpsVariantParamPackAttribute(
      fusion.variants, CUDNN_SCALAR_SIZE_T_WORKSPACE_SIZE_IN_BYTES, &got));
  CHECK(got == 77);
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnSetFusedOpsVariantParamPackAttribute(
                                      fusion.variants, CUDNN_SCALAR_DOUBLE_BN_EPSILON, &d));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnSetFusedOpsVariantParamPackAttribute(
                                      fusion.variants, (cudnnFusedOpsVariantParamLabel_t)50, &d));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnSetFusedOpsVariantParamPackAttribute(
              fusion.variants, CUDNN_SCALAR_SIZE_T_WORKSPACE_SIZE_IN_BYTES, NULL));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnGetFusedOpsVariantParamPackAttribute(fusion.variants, CUDNN_PTR_YDATA, NULL));

  /* Plans: not compiled, with missing constants, with the wrong pack, and run without pointers. */
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnFusedOpsExecute(handle, fusion.plan, fusion.variants));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnMakeFusedOpsPlan(handle, fusion.plan, fusion.constants, &bytes));
  Fusion other = make_fusion(CUDNN_FUSED_SCALE_BIAS_ACTIVATION_WGRAD);
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnMakeFusedOpsPlan(handle, fusion.plan, other.constants, &bytes));
  describe(&fusion, CUDNN_PARAM_XDESC, d.x);
  describe(&fusion, CUDNN_PARAM_YDESC, d.y);
  describe(&fusion, CUDNN_PARAM_CONV_DESC, d.conv);
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnMakeFusedOpsPlan(handle, fusion.plan, fusion.constants, NULL));
  SUCCEEDS(cudnnMakeFusedOpsPlan(handle, fusion.plan, fusion.constants, &bytes));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnFusedOpsExecute(handle, fusion.plan, fusion.variants));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnFusedOpsExecute(handle, fusion.plan, other.variants));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnCreateFusedOpsPlan(&other.plan, (cudnnFusedOps_t)7));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnCreateFusedOpsConstParamPack(NULL, CUDNN_FUSED_SCALE_BIAS_ACTIVATION_WGRAD));
  destroy_fusion(&other);
  destroy_fusion(&fusion);
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnDestroyFusedOpsPlan(fusion.plan));
  SUCCEEDS(cudnnDestroyTensorDescriptor(tensor));
  SUCCEEDS(cudnnDestroyFilterDescriptor(filter));
  SUCCEEDS(cudnnDestroyConvolutionDescriptor(conv));
  SUCCEEDS(cudnnDestroyActivationDescriptor(activation));
  destroy_descriptors(&d);
}

int main(void) {
  SUCCEEDS(cudnnCreate(&handle));
  test_bundles();
  SUCCEEDS(cudnnDestroy(handle));
  return failures;
}

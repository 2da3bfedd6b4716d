/* cudnnLRNCrossChannel* and cudnnDivisiveNormalization*. */
#include "oracle.h"

#define DIMS "[2,7,5,4]"

static cudnnHandle_t handle;

static const struct {
  unsigned n;
  double alpha, beta, k;
} settings[] = {
    {5, 1e-4, 0.75, 2.0}, {4, 0.8, 0.5, 1.0}, {1, 2.0, 1.25, 0.5}, {16, 1.0, 0.75, 1.5}};
enum { SETTINGS = 4 };

static cudnnLRNDescriptor_t descriptor(int setting) {
  cudnnLRNDescriptor_t created = NULL;
  SUCCEEDS(cudnnCreateLRNDescriptor(&created));
  SUCCEEDS(cudnnSetLRNDescriptor(created, settings[setting].n, settings[setting].alpha,
                                 settings[setting].beta, settings[setting].k));
  return created;
}

#define ATTRIBUTES "'attributes':{'window':%u,'alpha':%.9g,'beta':%.9g,'k':%.9g}"
#define VALUES(setting) \
  settings[setting].n, settings[setting].alpha, settings[setting].beta, settings[setting].k

static void lrn_forward(int setting, const Variant* variant) {
  Oracle* oracle = oracle_variant(
      variant,
      GRAPH(TENSOR("input", "x", DIMS) "," TENSOR(
                "input", "before", DIMS) "," VIRTUAL("f") "," TENSOR("output", "y", DIMS),
            "{'op':'lrn_forward','inputs':{'x':'x'},'outputs':{'y':'f'}," ATTRIBUTES
            "}," BLEND("f", "before", "y")),
      VALUES(setting));
  cudnnLRNDescriptor_t how = descriptor(setting);
  oracle_before(oracle, variant, "before", "y");
  SUCCEEDS(cudnnLRNCrossChannelForward(
      handle, how, CUDNN_LRN_CROSS_CHANNEL_DIM1, factor_of(variant, variant->alpha),
      oracle_tensor(oracle, "x"), oracle_device(oracle, "x"), factor_of(variant, variant->beta),
      oracle_tensor(oracle, "y"), oracle_device(oracle, "y")));
  oracle_check(oracle);
  SUCCEEDS(cudnnDestroyLRNDescriptor(how));
  oracle_destroy(oracle);
}

static void lrn_backward(int setting, const Variant* variant) {
  Oracle* oracle = oracle_variant(
      variant,
      GRAPH(TENSOR("input", "x", DIMS) "," TENSOR("input", "dy", DIMS) "," TENSOR(
                "input", "before", DIMS) "," VIRTUAL("f") "," TENSOR("output", "dx", DIMS),
            "{'op':'lrn_backward','inputs':{'x':'x','dy':'dy'},'outputs':{'dx':'f'}," ATTRIBUTES
            "}," BLEND("f", "before", "dx")),
      VALUES(setting));
  cudnnLRNDescriptor_t how = descriptor(setting);
  oracle_before(oracle, variant, "before", "dx");
  SUCCEEDS(cudnnLRNCrossChannelBackward(
      handle, how, CUDNN_LRN_CROSS_CHANNEL_DIM1, factor_of(variant, variant->alpha),
      oracle_tensor(oracle, "dy"), oracle_device(oracle, "dy"), oracle_tensor(oracle, "dy"),
      oracle_device(oracle, "dy"), oracle_tensor(oracle, "x"), oracle_device(oracle, "x"),
      factor_of(variant, variant->beta), oracle_tensor(oracle, "dx"), oracle_device(oracle, "dx")));
  oracle_check(oracle);
  SUCCEEDS(cudnnDestroyLRNDescriptor(how));
  oracle_destroy(oracle);
}

static void divisive_forward(int setting, int with_means, const Variant* variant) {
  Oracle* oracle = oracle_variant(
      variant,
      GRAPH(TENSOR("input", "x", DIMS) "," TENSOR("input", "means", DIMS) "," TENSOR(
                "input", "before", DIMS) "," VIRTUAL("f") "," TENSOR("output", "y", DIMS),
            "{'op':'pointwise','inputs':{'x':'means'},'outputs':{'y':'unused'}},"
            "{'op':'divisive_norm_forward','inputs':{'x':'x'%s},'outputs':{'y':'f'}," ATTRIBUTES
            "}," BLEND("f", "before", "y")),
      with_means ? ",'means':'means'" : "", VALUES(setting));
  void *temp = device_memory(oracle_bytes(oracle, "x")),
       *temp2 = device_memory(oracle_bytes(oracle, "x"));
  cudnnLRNDescriptor_t how = descriptor(setting);
  oracle_before(oracle, variant, "before", "y");
  SUCCEEDS(cudnnDivisiveNormalizationForward(
      handle, how, CUDNN_DIVNORM_PRECOMPUTED_MEANS, factor_of(variant, variant->alpha),
      oracle_tensor(oracle, "x"), oracle_device(oracle, "x"),
      with_means ? oracle_device(oracle, "means") : NULL, temp, temp2,
      factor_of(variant, variant->beta), oracle_tensor(oracle, "y"), oracle_device(oracle, "y")));
  oracle_check(oracle);
  SUCCEEDS(cudnnDestroyLRNDescriptor(how));
  cudaFree(temp);
  cudaFree(temp2);
  oracle_destroy(oracle);
}

/* Both gradients. When the call gets no means, the graph gets means of 0. */
static void divisive_backward(int setting, int with_means, const Variant* variant) {
  Oracle* oracle = oracle_variant(
      variant,
      GRAPH(
          TENSOR("input", "x", DIMS) "," TENSOR("input", "dy", DIMS) "," TENSOR("input", "means", DIMS) "," TENSOR(
              "input", "before",
              DIMS) "," TENSOR("input", "before2",
                               DIMS) "," VIRTUAL("f") "," VIRTUAL("g") "," TENSOR("output", "dx",
                                                                                  DIMS) "," TENSOR("output",
                                                                                                   "dmeans",
                                                                                                   DIMS),
          "{'op':'divisive_norm_backward','inputs':{'x':'x','dy':'dy','means':'means'},"
          "'outputs':{'dx':'f','dmeans':'g'}," ATTRIBUTES
          "}," BLEND("f", "before", "dx") "," BLEND("g", "before2", "dmeans")),
      VALUES(setting));
  if (!with_means) oracle_fill(oracle, "means", 0.0, 0.0);
  void *temp = device_memory(oracle_bytes(oracle, "x")),
       *temp2 = device_memory(oracle_bytes(oracle, "x"));
  cudnnLRNDescriptor_t how = descriptor(setting);
  oracle_before(oracle, variant, "before", "dx");
  oracle_before(oracle, variant, "before2", "dmeans");
  SUCCEEDS(cudnnDivisiveNormalizationBackward(
      handle, how, CUDNN_DIVNORM_PRECOMPUTED_MEANS, factor_of(variant, variant->alpha),
      oracle_tensor(oracle, "x"), oracle_device(oracle, "x"),
      with_means ? oracle_device(oracle, "means") : NULL, oracle_device(oracle, "dy"), temp, temp2,
      factor_of(variant, variant->beta), oracle_tensor(oracle, "dx"), oracle_device(oracle, "dx"),
      oracle_device(oracle, "dmeans")));
  oracle_check(oracle);
  oracle_before(oracle, variant, "before", "dx"); /* dx alone */
  SUCCEEDS(cudnnDivisiveNormalizationBackward(
      handle, how, CUDNN_DIVNORM_PRECOMPUTED_MEANS, factor_of(variant, variant->alpha),
      oracle_tensor(oracle, "x"), oracle_device(oracle, "x"),
      with_means ? oracle_device(oracle, "means") : NULL, oracle_device(oracle, "dy"), temp, temp2,
      factor_of(variant, variant->beta), oracle_tensor(oracle, "dx"), oracle_device(oracle, "dx"),
      NULL));
  oracle_check(oracle);
  SUCCEEDS(cudnnDestroyLRNDescriptor(how));
  cudaFree(temp);
  cudaFree(temp2);
  oracle_destroy(oracle);
}

static void misuse(void) {
  cudnnLRNDescriptor_t how = NULL;
  unsigned n = 0;
  double alpha = 0.0, beta = 0.0, k = 0.0;
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnCreateLRNDescriptor(NULL));
  SUCCEEDS(cudnnCreateLRNDescriptor(&how));
  SUCCEEDS(cudnnGetLRNDescriptor(how, &n, &alpha, &beta, &k));
  CHECK(n == 5 && alpha == 1e-4 && beta == 0.75 && k == 2.0);
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnSetLRNDescriptor(how, 0, 1e-4, 0.75, 2.0));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnSetLRNDescriptor(how, 17, 1e-4, 0.75, 2.0));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnSetLRNDescriptor(how, 5, 1e-4, 0.009, 2.0));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnSetLRNDescriptor(how, 5, 1e-4, 0.75, 0.9e-5));
  SUCCEEDS(cudnnSetLRNDescriptor(how, 16, 1.0, 0.01, 1e-5));
  SUCCEEDS(cudnnGetLRNDescriptor(how, &n, &alpha, &beta, &k));
  CHECK(n == 16 && alpha == 1.0 && beta == 0.01 && k == 1e-5);
  cudnnTensorDescriptor_t x = NULL, y = NULL;
  SUCCEEDS(cudnnCreateTensorDescriptor(&x));
  SUCCEEDS(cudnnCreateTensorDescriptor(&y));
  SUCCEEDS(cudnnSetTensor4dDescriptor(x, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 1, 1));
  SUCCEEDS(cudnnSetTensor4dDescriptor(y, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 2, 1, 1));
  float a[2] = {0};
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnLRNCrossChannelForward(handle, how, (cudnnLRNMode_t)0, NULL, x, a, NULL, y, a));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnLRNCrossChannelForward(handle, how, (cudnnLRNMode_t)0, NULL, x, a, NULL, x, NULL));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnDivisiveNormalizationForward(handle, how, (cudnnDivNormMode_t)0, NULL, x, a, NULL,
                                            NULL, a, NULL, x, a));
  SUCCEEDS(cudnnDestroyTensorDescriptor(x));
  SUCCEEDS(cudnnDestroyTensorDescriptor(y));
  SUCCEEDS(cudnnDestroyLRNDescriptor(how));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnGetLRNDescriptor(how, &n, &alpha, &beta, &k));
}

int main(void) {
  SUCCEEDS(cudnnCreate(&handle));
  for (int setting = 0; setting < SETTINGS; ++setting)
    for (int v = 0; v < VARIANTS; ++v) {
      lrn_forward(setting, &variants[v]);
      lrn_backward(setting, &variants[v]);
      if (settings[setting].n > 5) continue; /* wider than the tensor: slow in the oracle */
      for (int with_means = 0; with_means < 2; ++with_means) {
        divisive_forward(setting, with_means, &variants[v]);
        divisive_backward(setting, with_means, &variants[v]);
      }
    }
  misuse();
  SUCCEEDS(cudnnDestroy(handle));
  return failures;
}

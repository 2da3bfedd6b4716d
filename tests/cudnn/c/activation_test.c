/* cudnnActivation*: seven modes, forward and backward, in place, with and without NaN
 * propagation. */
#include <math.h>

#include "oracle.h"

#define DIMS "[2,3,5,7]"

static cudnnHandle_t handle;

static cudnnActivationDescriptor_t activation(cudnnActivationMode_t mode, cudnnNanPropagation_t nan,
                                              double coefficient) {
  cudnnActivationDescriptor_t descriptor = NULL;
  SUCCEEDS(cudnnCreateActivationDescriptor(&descriptor));
  SUCCEEDS(cudnnSetActivationDescriptor(descriptor, mode, nan, coefficient));
  SUCCEEDS(cudnnSetActivationDescriptorSwishBeta(descriptor, 1.25));
  return descriptor;
}

/* The graph attributes of each mode; the coefficient is 0.5. */
static const struct {
  cudnnActivationMode_t mode;
  const char* forward;
} modes[] = {
    {CUDNN_ACTIVATION_SIGMOID, "'mode':'sigmoid_fwd'"},
    {CUDNN_ACTIVATION_RELU, "'mode':'relu_fwd'"},
    {CUDNN_ACTIVATION_TANH, "'mode':'tanh_fwd'"},
    {CUDNN_ACTIVATION_CLIPPED_RELU, "'mode':'relu_fwd','relu_upper_clip':0.5"},
    {CUDNN_ACTIVATION_ELU, "'mode':'elu_fwd','elu_alpha':0.5"},
    {CUDNN_ACTIVATION_IDENTITY, "'mode':'identity'"},
    {CUDNN_ACTIVATION_SWISH, "'mode':'swish_fwd','swish_beta':1.25"},
};
enum { MODES = sizeof modes / sizeof *modes };

static void forward(int mode, const Variant* variant) {
  Oracle* oracle = oracle_variant(
      variant,
      GRAPH(TENSOR("input", "x", DIMS) "," TENSOR(
                "input", "before", DIMS) "," VIRTUAL("f") "," TENSOR("output", "y", DIMS),
            "{'op':'pointwise','inputs':{'x':'x'},'outputs':{'y':'f'},'attributes':{%s}}," BLEND(
                "f", "before", "y")),
      modes[mode].forward);
  oracle_before(oracle, variant, "before", "y");
  cudnnActivationDescriptor_t how = activation(modes[mode].mode, CUDNN_PROPAGATE_NAN, 0.5);
  SUCCEEDS(cudnnActivationForward(handle, how, factor_of(variant, variant->alpha),
                                  oracle_tensor(oracle, "x"), oracle_device(oracle, "x"),
                                  factor_of(variant, variant->beta), oracle_tensor(oracle, "y"),
                                  oracle_device(oracle, "y")));
  oracle_check(oracle);
  if (variant->beta == 0.0) { /* the same in place */
    CHECK(cudaMemcpy(oracle_device(oracle, "y"), oracle_host(oracle, "x"),
                     oracle_bytes(oracle, "x"), cudaMemcpyHostToDevice) == cudaSuccess);
    SUCCEEDS(cudnnActivationForward(handle, how, factor_of(variant, variant->alpha),
                                    oracle_tensor(oracle, "y"), oracle_device(oracle, "y"),
                                    factor_of(variant, 0.0), oracle_tensor(oracle, "y"),
                                    oracle_device(oracle, "y")));
    oracle_check(oracle);
  }
  SUCCEEDS(cudnnDestroyActivationDescriptor(how));
  oracle_destroy(oracle);
}

#define NODE2(mode, x, b, y)                                                \
  "{'op':'pointwise','inputs':{'x':'" x "','b':'" b "'},'outputs':{'y':'" y \
  "'},'attributes':{'mode':'" mode "'}},"
#define BACKWARD(virtuals, nodes)                                                                     \
  GRAPH(                                                                                              \
      TENSOR("input", "x", DIMS) "," TENSOR("input", "y", DIMS) "," TENSOR(                           \
          "input", "dy",                                                                              \
          DIMS) "," TENSOR("input", "before",                                                         \
                           DIMS) "," CONSTANT("one",                                                  \
                                              "1") "," CONSTANT("zero",                               \
                                                                "0") "," CONSTANT("half",             \
                                                                                  "0.5") "," virtuals \
          VIRTUAL("f") "," TENSOR("output", "dx", DIMS),                                              \
      "{'op':'pointwise','inputs':{'x':'x'},'outputs':{'y':'unused_x'}},"                             \
      "{'op':'pointwise','inputs':{'x':'y'},'outputs':{'y':'unused_y'}}," nodes BLEND(                \
          "f", "before", "dx"))

#define TWO VIRTUAL("a") "," VIRTUAL("b") ","

/* The gradients; sigmoid, tanh and elu read y, for programs that overwrite x with y. At the ceiling
 * of a clipped relu (bf16 values hit it) the gradient is that below it. */
static const char* const gradients[MODES] = {
    BACKWARD(TWO, NODE2("sub", "one", "y", "a") NODE2("mul", "y", "a", "b")
                      NODE2("mul", "dy", "b", "f")),
    BACKWARD(, NODE2("relu_bwd", "dy", "x", "f")),
    BACKWARD(TWO, NODE2("mul", "y", "y", "a") NODE2("sub", "one", "a", "b")
                      NODE2("mul", "dy", "b", "f")),
    BACKWARD(VIRTUAL("a") ",",
             NODE2("relu_bwd", "dy", "x", "a") NODE2(
                 "cmp_gt", "x", "half", "p") "{'op':'pointwise','inputs':{'x':'zero','b':'a','"
                                             "predicate':'p'},'outputs':{'y':'f'},"
                                             "'attributes':{'mode':'binary_select'}},"),
    BACKWARD(TWO, NODE2("add", "y", "half", "a") NODE2(
                      "cmp_ge", "y", "zero", "p") "{'op':'pointwise','inputs':{'x':'one','b':'a','"
                                                  "predicate':'p'},'outputs':{'y':'b'},"
                                                  "'attributes':{'mode':'binary_select'}}," NODE2(
                                                      "mul", "dy", "b", "f")),
    BACKWARD(, "{'op':'pointwise','inputs':{'x':'dy'},'outputs':{'y':'f'}},"),
    BACKWARD(,
             "{'op':'pointwise','inputs':{'x':'dy','b':'x'},'outputs':{'y':'f'},"
             "'attributes':{'mode':'swish_bwd','swish_beta':1.25}},"),
};

static void backward(int mode, const Variant* variant) {
  Oracle* oracle = oracle_variant(variant, gradients[mode]);
  cudnnActivationDescriptor_t how = activation(modes[mode].mode, CUDNN_PROPAGATE_NAN, 0.5);
  oracle_before(oracle, variant, "before", "dx");
  SUCCEEDS(cudnnActivationBackward(
      handle, how, factor_of(variant, variant->alpha), oracle_tensor(oracle, "y"),
      oracle_device(oracle, "y"), oracle_tensor(oracle, "dy"), oracle_device(oracle, "dy"),
      oracle_tensor(oracle, "x"), oracle_device(oracle, "x"), factor_of(variant, variant->beta),
      oracle_tensor(oracle, "dx"), oracle_device(oracle, "dx")));
  oracle_check(oracle);
  SUCCEEDS(cudnnDestroyActivationDescriptor(how));
  oracle_destroy(oracle);
}

/* The descriptor decides whether NaN propagates to y; dx is 0 there. At the ceiling dx is dy. */
static void nan_of_relu(void) {
  const float x[4] = {NAN, -1.0F, 2.0F, 9.0F}, dy[4] = {1.0F, 2.0F, 3.0F, 4.0F}, one = 1.0F,
              zero = 0.0F;
  float y[4], dx[4];
  void *device_x = device_copy(x, sizeof x), *device_y = device_memory(sizeof y),
       *device_dy = device_copy(dy, sizeof dy), *device_dx = device_memory(sizeof dx);
  cudnnTensorDescriptor_t tensor = NULL;
  SUCCEEDS(cudnnCreateTensorDescriptor(&tensor));
  SUCCEEDS(cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 4, 1, 1));
  for (int propagates = 0; propagates < 2; ++propagates) {
    cudnnActivationDescriptor_t how =
        activation(CUDNN_ACTIVATION_CLIPPED_RELU,
                   propagates ? CUDNN_PROPAGATE_NAN : CUDNN_NOT_PROPAGATE_NAN, 6.0);
    SUCCEEDS(cudnnActivationForward(handle, how, &one, tensor, device_x, &zero, tensor, device_y));
    CHECK(cudaMemcpy(y, device_y, sizeof y, cudaMemcpyDeviceToHost) == cudaSuccess);
    CHECK(propagates ? isnan(y[0]) : y[0] == 0.0F);
    CHECK(y[1] == 0.0F && y[2] == 2.0F && y[3] == 6.0F);
    SUCCEEDS(cudnnSetActivationDescriptor(
        how, CUDNN_ACTIVATION_CLIPPED_RELU,
        propagates ? CUDNN_PROPAGATE_NAN : CUDNN_NOT_PROPAGATE_NAN, 2.0));
    SUCCEEDS(cudnnActivationBackward(handle, how, &one, tensor, device_y, tensor, device_dy, tensor,
                                     device_x, &zero, tensor, device_dx));
    CHECK(cudaMemcpy(dx, device_dx, sizeof dx, cudaMemcpyDeviceToHost) == cudaSuccess);
    CHECK(dx[0] == 0.0F && dx[1] == 0.0F && dx[2] == 3.0F && dx[3] == 0.0F);
    SUCCEEDS(cudnnDestroyActivationDescriptor(how));
  }
  SUCCEEDS(cudnnDestroyTensorDescriptor(tensor));
  cudaFree(device_x);
  cudaFree(device_y);
  cudaFree(device_dy);
  cudaFree(device_dx);
}

static void misuse(void) {
  cudnnActivationDescriptor_t how = NULL;
  cudnnActivationMode_t mode;
  cudnnNanPropagation_t nan;
  double coefficient = 0.0;
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnCreateActivationDescriptor(NULL));
  SUCCEEDS(cudnnCreateActivationDescriptor(&how));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnGetActivationDescriptor(how, &mode, &nan, &coefficient));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnSetActivationDescriptor(how, CUDNN_ACTIVATION_CLIPPED_RELU,
                                                               CUDNN_PROPAGATE_NAN, -1));
  SUCCEEDS(cudnnSetActivationDescriptor(how, CUDNN_ACTIVATION_ELU, CUDNN_PROPAGATE_NAN, 2.5));
  SUCCEEDS(cudnnGetActivationDescriptor(how, &mode, &nan, &coefficient));
  CHECK(mode == CUDNN_ACTIVATION_ELU && nan == CUDNN_PROPAGATE_NAN && coefficient == 2.5);
  SUCCEEDS(cudnnSetActivationDescriptorSwishBeta(how, 3.0));
  SUCCEEDS(cudnnGetActivationDescriptorSwishBeta(how, &coefficient));
  CHECK(coefficient == 3.0);
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnGetActivationDescriptorSwishBeta(how, NULL));

  cudnnTensorDescriptor_t x = NULL, y = NULL;
  SUCCEEDS(cudnnCreateTensorDescriptor(&x));
  SUCCEEDS(cudnnCreateTensorDescriptor(&y));
  float number = 0.0F;
  SUCCEEDS(cudnnSetTensor4dDescriptor(x, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 1, 1));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnActivationForward(handle, how, NULL, x, &number, NULL, y, &number));
  SUCCEEDS(cudnnSetTensor4dDescriptor(y, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 1, 2));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnActivationForward(handle, how, NULL, x, &number, NULL, y, &number));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnActivationForward(handle, how, NULL, x, NULL, NULL, x, &number));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnActivationForward(NULL, how, NULL, x, &number, NULL, x, &number));
  SUCCEEDS(cudnnDestroyTensorDescriptor(x));
  SUCCEEDS(cudnnDestroyTensorDescriptor(y));
  SUCCEEDS(cudnnDestroyActivationDescriptor(how));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnDestroyActivationDescriptor(how));
}

int main(void) {
  SUCCEEDS(cudnnCreate(&handle));
  for (int mode = 0; mode < MODES; ++mode)
    for (int v = 0; v < VARIANTS; ++v) {
      forward(mode, &variants[v]);
      backward(mode, &variants[v]);
    }
  nan_of_relu();
  misuse();
  SUCCEEDS(cudnnDestroy(handle));
  return failures;
}

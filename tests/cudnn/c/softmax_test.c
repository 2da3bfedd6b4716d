/* cudnnSoftmax*: three algorithms, two modes, forward and backward. */
#include <math.h>

#include "oracle.h"

static cudnnHandle_t handle;
static const cudnnSoftmaxAlgorithm_t algorithms[] = {CUDNN_SOFTMAX_FAST, CUDNN_SOFTMAX_ACCURATE,
                                                     CUDNN_SOFTMAX_LOG};

/* Shapes with and without spatial axes. */
static const char* const shapes[][2] = {{"[3,5,2,7]", "[3,70]"}, {"[4,37,1,1]", "[4,37]"}};
enum { SHAPES = 2 };

#define TENSOR_OF_SHAPE(kind, name) TENSOR(kind, name, "%s")
#define ATTRIBUTES "'attributes':{'axis':1,'log':%s}"

static void forward(cudnnSoftmaxAlgorithm_t algorithm, cudnnSoftmaxMode_t mode, int shape,
                    const Variant* variant) {
  const char *dims = shapes[shape][0], *log = algorithm == CUDNN_SOFTMAX_LOG ? "true" : "false";
  const char* rows = mode == CUDNN_SOFTMAX_MODE_INSTANCE ? shapes[shape][1] : dims;
  Oracle* oracle = oracle_variant(
      variant,
      GRAPH(
          TENSOR_OF_SHAPE("input", "x") "," TENSOR_OF_SHAPE("input", "before") "," VIRTUAL(
              "s") "," VIRTUAL("f") "," TENSOR_OF_SHAPE("output", "y"),
          "{'op':'reshape','inputs':{'x':'x'},'outputs':{'y':'rows'},'attributes':{'dims':%s}},"
          "{'op':'softmax_forward','inputs':{'x':'rows'},'outputs':{'y':'s'}," ATTRIBUTES "},"
          "{'op':'reshape','inputs':{'x':'s'},'outputs':{'y':'f'},'attributes':{'dims':%s}}," BLEND(
              "f", "before", "y")),
      dims, dims, dims, rows, log, dims);
  oracle_fill(oracle, "x", -4.0, 4.0);
  oracle_before(oracle, variant, "before", "y");
  SUCCEEDS(cudnnSoftmaxForward(handle, algorithm, mode, factor_of(variant, variant->alpha),
                               oracle_tensor(oracle, "x"), oracle_device(oracle, "x"),
                               factor_of(variant, variant->beta), oracle_tensor(oracle, "y"),
                               oracle_device(oracle, "y")));
  oracle_check(oracle);
  if (variant->beta == 0.0) { /* the same in place */
    CHECK(cudaMemcpy(oracle_device(oracle, "y"), oracle_host(oracle, "x"),
                     oracle_bytes(oracle, "x"), cudaMemcpyHostToDevice) == cudaSuccess);
    SUCCEEDS(cudnnSoftmaxForward(handle, algorithm, mode, factor_of(variant, variant->alpha),
                                 oracle_tensor(oracle, "y"), oracle_device(oracle, "y"),
                                 factor_of(variant, 0.0), oracle_tensor(oracle, "y"),
                                 oracle_device(oracle, "y")));
    oracle_check(oracle);
  }
  oracle_destroy(oracle);
}

static void backward(cudnnSoftmaxAlgorithm_t algorithm, cudnnSoftmaxMode_t mode, int shape,
                     const Variant* variant) {
  const char *dims = shapes[shape][0], *log = algorithm == CUDNN_SOFTMAX_LOG ? "true" : "false";
  const char* rows = mode == CUDNN_SOFTMAX_MODE_INSTANCE ? shapes[shape][1] : dims;
  Oracle* oracle = oracle_variant(
      variant,
      GRAPH(
          TENSOR_OF_SHAPE("input", "y") "," TENSOR_OF_SHAPE("input", "dy") "," TENSOR_OF_SHAPE(
              "input", "before") "," VIRTUAL("s") "," VIRTUAL("f") "," TENSOR_OF_SHAPE("output",
                                                                                       "dx"),
          "{'op':'reshape','inputs':{'x':'y'},'outputs':{'y':'rows'},'attributes':{'dims':%s}},"
          "{'op':'reshape','inputs':{'x':'dy'},'outputs':{'y':'drows'},'attributes':{'dims':%s}},"
          "{'op':'softmax_backward','inputs':{'y':'rows','dy':'drows'},'outputs':{'dx':'s'}"
          "," ATTRIBUTES "},"
          "{'op':'reshape','inputs':{'x':'s'},'outputs':{'y':'f'},'attributes':{'dims':%s}}," BLEND(
              "f", "before", "dx")),
      dims, dims, dims, dims, rows, rows, log, dims);
  oracle_before(oracle, variant, "before", "dx");
  SUCCEEDS(cudnnSoftmaxBackward(
      handle, algorithm, mode, factor_of(variant, variant->alpha), oracle_tensor(oracle, "y"),
      oracle_device(oracle, "y"), oracle_tensor(oracle, "dy"), oracle_device(oracle, "dy"),
      factor_of(variant, variant->beta), oracle_tensor(oracle, "dx"), oracle_device(oracle, "dx")));
  oracle_check(oracle);
  if (variant->beta == 0.0) { /* in place of dy */
    CHECK(cudaMemcpy(oracle_device(oracle, "dx"), oracle_host(oracle, "dy"),
                     oracle_bytes(oracle, "dy"), cudaMemcpyHostToDevice) == cudaSuccess);
    SUCCEEDS(cudnnSoftmaxBackward(handle, algorithm, mode, factor_of(variant, variant->alpha),
                                  oracle_tensor(oracle, "y"), oracle_device(oracle, "y"),
                                  oracle_tensor(oracle, "dx"), oracle_device(oracle, "dx"), NULL,
                                  oracle_tensor(oracle, "dx"), oracle_device(oracle, "dx")));
    oracle_check(oracle);
  }
  oracle_destroy(oracle);
}

/* A row that is all -inf gives probabilities of 0; FAST may give NaN. */
static void masked_rows(void) {
  const float x[6] = {-INFINITY, -INFINITY, -INFINITY, 0.0F, -INFINITY, 0.0F}, one = 1.0F,
              zero = 0.0F;
  float y[6];
  void* device = device_copy(x, sizeof x);
  void* device_y = device_memory(sizeof y);
  cudnnTensorDescriptor_t tensor = NULL;
  SUCCEEDS(cudnnCreateTensorDescriptor(&tensor));
  SUCCEEDS(cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 2, 3, 1, 1));
  SUCCEEDS(cudnnSoftmaxForward(handle, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_INSTANCE, &one,
                               tensor, device, &zero, tensor, device_y));
  CHECK(cudaMemcpy(y, device_y, sizeof y, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(y[0] == 0.0F && y[1] == 0.0F && y[2] == 0.0F);
  CHECK(y[3] == 0.5F && y[4] == 0.0F && y[5] == 0.5F);
  SUCCEEDS(cudnnSoftmaxForward(handle, CUDNN_SOFTMAX_LOG, CUDNN_SOFTMAX_MODE_INSTANCE, &one, tensor,
                               device, &zero, tensor, device)); /* in place */
  CHECK(cudaMemcpy(y, device, sizeof y, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(y[0] == -INFINITY && y[1] == -INFINITY && y[2] == -INFINITY);
  CHECK(fabsf(y[3] + 0.693147F) < 1e-5F && y[4] == -INFINITY);
  SUCCEEDS(cudnnDestroyTensorDescriptor(tensor));
  cudaFree(device);
  cudaFree(device_y);
}

static void misuse(void) {
  cudnnTensorDescriptor_t x = NULL, y = NULL;
  SUCCEEDS(cudnnCreateTensorDescriptor(&x));
  SUCCEEDS(cudnnCreateTensorDescriptor(&y));
  SUCCEEDS(cudnnSetTensor4dDescriptor(x, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 2, 3, 1, 1));
  SUCCEEDS(cudnnSetTensor4dDescriptor(y, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 2, 4, 1, 1));
  float numbers[8] = {0};
  const cudnnSoftmaxMode_t mode = CUDNN_SOFTMAX_MODE_CHANNEL;
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnSoftmaxForward(handle, CUDNN_SOFTMAX_FAST, mode, NULL, x,
                                                      numbers, NULL, y, numbers));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnSoftmaxForward(handle, CUDNN_SOFTMAX_FAST, mode, NULL, NULL,
                                                      numbers, NULL, y, numbers));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnSoftmaxForward(handle, CUDNN_SOFTMAX_FAST, mode, NULL, x, numbers, NULL, x, NULL));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnSoftmaxBackward(handle, CUDNN_SOFTMAX_FAST, mode, NULL, x,
                                                       NULL, x, numbers, NULL, x, numbers));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnSoftmaxForward(handle, (cudnnSoftmaxAlgorithm_t)3, mode,
                                                      NULL, x, numbers, NULL, x, numbers));
  SUCCEEDS(cudnnDestroyTensorDescriptor(y));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnSoftmaxForward(handle, CUDNN_SOFTMAX_FAST, mode, NULL, x,
                                                      numbers, NULL, y, numbers));
  SUCCEEDS(cudnnDestroyTensorDescriptor(x));
}

int main(void) {
  SUCCEEDS(cudnnCreate(&handle));
  for (int algorithm = 0; algorithm < 3; ++algorithm)
    for (int mode = 0; mode < 2; ++mode)
      for (int shape = 0; shape < SHAPES; ++shape)
        for (int v = 0; v < VARIANTS; ++v) {
          forward(algorithms[algorithm], (cudnnSoftmaxMode_t)mode, shape, &variants[v]);
          backward(algorithms[algorithm], (cudnnSoftmaxMode_t)mode, shape, &variants[v]);
        }
  masked_rows();
  misuse();
  SUCCEEDS(cudnnDestroy(handle));
  return failures;
}

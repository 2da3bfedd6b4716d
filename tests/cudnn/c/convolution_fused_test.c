/* Convolutions with bias, addition and activation, and 8-bit data in vectors of 4 and 32 channels,
 * with and without reordering. */
#include <stdlib.h>
#include <string.h>

#include "convolution.h"

static cudnnHandle_t handle;
#define CROSS CUDNN_CROSS_CORRELATION
#define PRECOMP CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM

typedef struct {
  cudnnActivationMode_t mode;
  double coefficient;
  const char* attributes; /* of the equivalent graph node */
} Act;
static const Act kActs[] = {
    {CUDNN_ACTIVATION_RELU, 0.0, "\"mode\":\"relu_fwd\""},
    {CUDNN_ACTIVATION_IDENTITY, 0.0, "\"mode\":\"identity\""},
    {CUDNN_ACTIVATION_SIGMOID, 0.0, "\"mode\":\"sigmoid_fwd\""},
    {CUDNN_ACTIVATION_TANH, 0.0, "\"mode\":\"tanh_fwd\""},
    {CUDNN_ACTIVATION_CLIPPED_RELU, 0.5, "\"mode\":\"relu_fwd\",\"relu_upper_clip\":0.5"},
    {CUDNN_ACTIVATION_ELU, 0.75, "\"mode\":\"elu_fwd\",\"elu_alpha\":0.75"},
    {CUDNN_ACTIVATION_SWISH, 0.0, "\"mode\":\"swish_fwd\""},
};

/* beta of the shape is alpha2; in_place: z and y are the same memory. */
static void test_fused(const Shape* shape, const char* result_type, const Act* act, int in_place) {
  Shape summed = *shape, result = *shape;
  const int ones[MAX_AXES] = {1, 1, 1};
  const char* math = strcmp(shape->dtype, "f64") == 0 ? "f64" : "f32";
  const char* bias_type = strcmp(shape->dtype, "i8") == 0 ? "f32" : shape->dtype;
  summed.dtype = sum_type(shape);
  result.dtype = result_type;
  Oracle* oracle = oracle_graph(
      "{\"format\":\"ashlar-graph\",\"version\":1,\"tensors\":[%s,%s,%s,%s,%s,%s%s"
      "{\"name\":\"blend\",\"dtype\":\"%s\"},{\"name\":\"biased\",\"dtype\":\"%s\"}],\"nodes\":["
      "{\"op\":\"conv_forward\",\"inputs\":{\"x\":\"x\",\"w\":\"w\"},\"outputs\":{\"y\":\"sum\"},"
      "\"attributes\":%s,\"compute\":\"%s\"},%s,"
      "{\"op\":\"pointwise\",\"inputs\":{\"x\":\"blend\",\"b\":\"bias\"},"
      "\"outputs\":{\"y\":\"biased\"},\"attributes\":{\"mode\":\"add\"},\"compute\":\"%s\"},"
      "{\"op\":\"pointwise\",\"inputs\":{\"x\":\"biased\"},\"outputs\":{\"y\":\"y\"},"
      "\"attributes\":{%s},\"compute\":\"%s\"}]}",
      json_x(shape, "x", "input"), json_w(shape, "w", "input"),
      json_y(&summed, "sum", "intermediate"), json_y(&result, "y", "output"),
      json_tensor("bias", "input", bias_type, shape, 1, shape->k, ones),
      shape->beta != 0 ? json_y(&result, "z", "input") : "", shape->beta != 0 ? "," : "", math,
      math, json_attributes(shape), sum_type(shape), json_blend(shape, "sum", "z", "blend"), math,
      act->attributes, math);
  if (strcmp(shape->dtype, "i8") == 0) {
    oracle_fill(oracle, "x", -50, 50);
    oracle_fill(oracle, "w", -9, 9);
    oracle_fill(oracle, "bias", -40, 40);
    if (shape->beta != 0) oracle_fill(oracle, "z", -90, 90);
  }
  Descriptors d = make_descriptors(shape);
  if (strcmp(result_type, shape->dtype) != 0) {
    const int dims[] = {shape->n, shape->k, output_extent(shape, 0), output_extent(shape, 1)};
    SUCCEEDS(cudnnSetTensorNdDescriptorEx(d.y, shape->nhwc ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW,
                                          type_of(result_type), 4, dims));
  }
  cudnnActivationDescriptor_t activation;
  SUCCEEDS(cudnnCreateActivationDescriptor(&activation));
  SUCCEEDS(
      cudnnSetActivationDescriptor(activation, act->mode, CUDNN_PROPAGATE_NAN, act->coefficient));
  const Number alpha1 = number(shape, shape->alpha), alpha2 = number(shape, shape->beta);
  void* y = oracle_device(oracle, "y");
  void* z = shape->beta != 0 ? oracle_device(oracle, "z") : NULL;
  if (shape->beta != 0 && in_place) {
    cudaMemcpy(y, z, oracle_bytes(oracle, "z"), cudaMemcpyDeviceToDevice);
    z = y;
  }
  SUCCEEDS(cudnnConvolutionBiasActivationForward(
      handle, &alpha1, d.x, oracle_device(oracle, "x"), d.w, oracle_device(oracle, "w"), d.conv,
      PRECOMP, NULL, 0, &alpha2, d.y, z, d.bias, oracle_device(oracle, "bias"), activation, d.y,
      y));
  oracle_check(oracle);
  SUCCEEDS(cudnnDestroyActivationDescriptor(activation));
  destroy_descriptors(&d);
  oracle_destroy(oracle);
}

/* The filter of `k` x `c` x 3 x 3 after NVIDIA's reordering, by plain loops. */
static void reorder_reference(const signed char* from, signed char* to, int k, int c,
                              int positions) {
  for (int o = 0; o < k; ++o)
    for (int i = 0; i < c; ++i)
      for (int s = 0; s < positions; ++s) {
        const size_t before =
            ((size_t)(o * (c / 32) + i / 32) * (size_t)positions + (size_t)s) * 32 +
            (size_t)(i % 32);
        size_t after = (size_t)(i / 32) * (size_t)positions + (size_t)s;
        after = after * (size_t)(k / 8) + (size_t)(o / 8);
        after = after * 2 + (size_t)(o % 2);
        after = after * 8 + (size_t)(i % 32 / 4);
        after = after * 4 + (size_t)(o % 8 / 2);
        after = after * 4 + (size_t)(i % 4);
        to[after] = from[before];
      }
}

/* Vectorised channels: the vector is the last axis in memory. */
static void test_vectors(int vector, cudnnDataType_t type, int is_reordered) {
  const int n = 2, c = 64, k = 32, h = 5, w = 4;
  Oracle* oracle = oracle_graph(
      "{\"format\":\"ashlar-graph\",\"version\":1,\"tensors\":["
      "{\"name\":\"x\",\"kind\":\"input\",\"dtype\":\"i8\",\"dims\":[%d,%d,%d,%d,%d]},"
      "{\"name\":\"w\",\"kind\":\"input\",\"dtype\":\"i8\",\"dims\":[%d,%d,3,3,%d]},"
      "{\"name\":\"bias\",\"kind\":\"input\",\"dtype\":\"f32\",\"dims\":[1,%d,1,1]},"
      "{\"name\":\"sum\",\"dtype\":\"i32\"},{\"name\":\"scaled\",\"dtype\":\"f32\"},"
      "{\"name\":\"biased\",\"dtype\":\"f32\"},{\"name\":\"act\",\"dtype\":\"i8\"},"
      "{\"name\":\"x6\",\"dims\":[%d,%d,%d,%d]},{\"name\":\"w6\",\"dims\":[%d,%d,3,3]},"
      "{\"name\":\"y5\",\"dims\":[%d,%d,%d,%d,%d]},"
      "{\"name\":\"y\",\"kind\":\"output\",\"dtype\":\"i8\",\"dims\":[%d,%d,%d,%d,%d]}],\"nodes\":["
      "{\"op\":\"transpose\",\"inputs\":{\"x\":\"x\"},\"outputs\":{\"y\":\"x5\"},"
      "\"attributes\":{\"permutation\":[0,1,4,2,3]}},"
      "{\"op\":\"reshape\",\"inputs\":{\"x\":\"x5\"},\"outputs\":{\"y\":\"x6\"}},"
      "{\"op\":\"transpose\",\"inputs\":{\"x\":\"w\"},\"outputs\":{\"y\":\"w5\"},"
      "\"attributes\":{\"permutation\":[0,1,4,2,3]}},"
      "{\"op\":\"reshape\",\"inputs\":{\"x\":\"w5\"},\"outputs\":{\"y\":\"w6\"}},"
      "{\"op\":\"conv_forward\",\"inputs\":{\"x\":\"x6\",\"w\":\"w6\"},"
      "\"outputs\":{\"y\":\"sum\"},\"attributes\":{\"padding\":[1,1]},\"compute\":\"i32\"},"
      "{\"op\":\"pointwise\",\"inputs\":{\"x\":\"sum\"},\"outputs\":{\"y\":\"scaled\"},"
      "\"attributes\":{\"mode\":\"identity\",\"alpha1\":0.05},\"compute\":\"f32\"},"
      "{\"op\":\"pointwise\",\"inputs\":{\"x\":\"scaled\",\"b\":\"bias\"},"
      "\"outputs\":{\"y\":\"biased\"},\"attributes\":{\"mode\":\"add\"}},"
      "{\"op\":\"pointwise\",\"inputs\":{\"x\":\"biased\"},\"outputs\":{\"y\":\"act\"},"
      "\"attributes\":{\"mode\":\"relu_fwd\"}},"
      "{\"op\":\"reshape\",\"inputs\":{\"x\":\"act\"},\"outputs\":{\"y\":\"y5\"}},"
      "{\"op\":\"transpose\",\"inputs\":{\"x\":\"y5\"},\"outputs\":{\"y\":\"y\"},"
      "\"attributes\":{\"permutation\":[0,1,3,4,2]}}]}",
      n, c / vector, h, w, vector, k, c / vector, vector, k, n, c, h, w, k, c, n, k / vector,
      vector, h, w, n, k / vector, h, w, vector);
  oracle_fill(oracle, "x", -30, 30);
  oracle_fill(oracle, "w", -5, 5);
  oracle_fill(oracle, "bias", -20, 20);
  cudnnTensorDescriptor_t x, y, bias;
  cudnnFilterDescriptor_t filter;
  cudnnConvolutionDescriptor_t conv;
  cudnnActivationDescriptor_t activation;
  SUCCEEDS(cudnnCreateTensorDescriptor(&x));
  SUCCEEDS(cudnnCreateTensorDescriptor(&y));
  SUCCEEDS(cudnnCreateTensorDescriptor(&bias));
  SUCCEEDS(cudnnCreateFilterDescriptor(&filter));
  SUCCEEDS(cudnnCreateConvolutionDescriptor(&conv));
  SUCCEEDS(cudnnCreateActivationDescriptor(&activation));
  SUCCEEDS(cudnnSetTensor4dDescriptor(x, CUDNN_TENSOR_NCHW_VECT_C, type, n, c, h, w));
  SUCCEEDS(cudnnSetTensor4dDescriptor(y, CUDNN_TENSOR_NCHW_VECT_C, type, n, k, h, w));
  SUCCEEDS(cudnnSetTensor4dDescriptor(bias, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, k, 1, 1));
  SUCCEEDS(cudnnSetFilter4dDescriptor(filter, type, CUDNN_TENSOR_NCHW_VECT_C, k, c, 3, 3));
  SUCCEEDS(cudnnSetConvolution2dDescriptor(conv, 1, 1, 1, 1, 1, 1, CROSS, CUDNN_DATA_INT32));
  SUCCEEDS(cudnnSetActivationDescriptor(activation, CUDNN_ACTIVATION_RELU, CUDNN_NOT_PROPAGATE_NAN,
                                        0.0));
  void *w_memory = oracle_device(oracle, "w"), *bias_memory = oracle_device(oracle, "bias");
  const size_t w_bytes = oracle_bytes(oracle, "w"), bias_bytes = oracle_bytes(oracle, "bias");
  void *moved_w = device_memory(w_bytes), *moved_bias = device_memory(bias_bytes);
  if (is_reordered) {
    SUCCEEDS(cudnnReorderFilterAndBias(handle, filter, CUDNN_DEFAULT_REORDER, w_memory, moved_w, 1,
                                       bias_memory, moved_bias));
    signed char *expected = malloc(w_bytes), *got = malloc(w_bytes);
    reorder_reference(oracle_host(oracle, "w"), expected, k, c, 9);
    cudaMemcpy(got, moved_w, w_bytes, cudaMemcpyDeviceToHost);
    CHECK(memcmp(expected, got, w_bytes) == 0);
    free(expected);
    free(got);
    w_memory = moved_w;
    bias_memory = moved_bias;
    SUCCEEDS(cudnnSetConvolutionReorderType(conv, CUDNN_NO_REORDER));
  }
  const float alpha1 = 0.05F, alpha2 = 0.0F;
  SUCCEEDS(cudnnConvolutionBiasActivationForward(
      handle, &alpha1, x, oracle_device(oracle, "x"), filter, w_memory, conv, PRECOMP, NULL, 0,
      &alpha2, y, NULL, bias, bias_memory, activation, y, oracle_device(oracle, "y")));
  oracle_check(oracle);
  /* CUDNN_NO_REORDER copies. */
  SUCCEEDS(cudnnReorderFilterAndBias(handle, filter, CUDNN_NO_REORDER, w_memory, moved_w, 0, NULL,
                                     NULL));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnReorderFilterAndBias(handle, filter, CUDNN_DEFAULT_REORDER, w_memory, moved_w, 1,
                                    NULL, moved_bias));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnReorderFilterAndBias(handle, filter, (cudnnReorderType_t)5,
                                                            w_memory, moved_w, 0, NULL, NULL));
  cudaFree(moved_w);
  cudaFree(moved_bias);
  SUCCEEDS(cudnnDestroyTensorDescriptor(x));
  SUCCEEDS(cudnnDestroyTensorDescriptor(y));
  SUCCEEDS(cudnnDestroyTensorDescriptor(bias));
  SUCCEEDS(cudnnDestroyFilterDescriptor(filter));
  SUCCEEDS(cudnnDestroyConvolutionDescriptor(conv));
  SUCCEEDS(cudnnDestroyActivationDescriptor(activation));
  oracle_destroy(oracle);
}

/* One row per channel and filter tap, one column per image and output pixel. */
static void test_columns(const Shape* shape) {
  Descriptors d = make_descriptors(shape);
  Oracle* oracle = oracle_graph(
      "{\"format\":\"ashlar-graph\",\"version\":1,\"tensors\":[%s,"
      "{\"name\":\"columns\",\"kind\":\"output\",\"layout\":\"row_major\",\"dims\":[%d,%d,%d]}],"
      "\"nodes\":[{\"op\":\"im2col\",\"inputs\":{\"x\":\"x\"},\"outputs\":{\"y\":\"patches\"},"
      "\"attributes\":{\"window\":%s,\"padding\":%s,\"stride\":%s,\"dilation\":%s}},"
      "{\"op\":\"transpose\",\"inputs\":{\"x\":\"patches\"},\"outputs\":{\"y\":\"columns\"},"
      "\"attributes\":{\"permutation\":[1,0,2]}}]}",
      json_x(shape, "x", "input"), shape->c * shape->window[0] * shape->window[1], shape->n,
      output_extent(shape, 0) * output_extent(shape, 1), json_list(shape->window, 2),
      json_list(shape->pad, 2), json_list(shape->stride, 2), json_list(shape->dilation, 2));
  SUCCEEDS(cudnnIm2Col(handle, d.x, oracle_device(oracle, "x"), d.w, d.conv,
                       oracle_device(oracle, "columns")));
  oracle_check(oracle);
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnIm2Col(handle, d.x, oracle_device(oracle, "x"), d.w, d.conv, NULL));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnIm2Col(handle, NULL, oracle_device(oracle, "x"), d.w, d.conv,
                                              oracle_device(oracle, "columns")));
  oracle_destroy(oracle);
  destroy_descriptors(&d);
}

/* CUDNN_CONVOLUTION reverses the filter taps. */
static void test_flipped_columns(void) {
  const Shape shape = {
      "f32", 0, 2, 1, 1, 1, 1, {2, 3}, {2, 2}, {0, 0}, {1, 1}, {1, 1}, CUDNN_CONVOLUTION, 1.0, 0.0};
  const float image[6] = {1, 2, 3, 4, 5, 6}, expected[8] = {5, 6, 4, 5, 2, 3, 1, 2};
  float got[8];
  Descriptors d = make_descriptors(&shape);
  float* memory = device_memory(sizeof image + sizeof got);
  cudaMemcpy(memory, image, sizeof image, cudaMemcpyHostToDevice);
  SUCCEEDS(cudnnIm2Col(handle, d.x, memory, d.w, d.conv, memory + 6));
  cudaDeviceSynchronize();
  cudaMemcpy(got, memory + 6, sizeof got, cudaMemcpyDeviceToHost);
  CHECK(memcmp(got, expected, sizeof got) == 0);
  cudaFree(memory);
  destroy_descriptors(&d);
}

static void test_misuse(const Shape* shape) {
  Descriptors d = make_descriptors(shape);
  cudnnActivationDescriptor_t activation;
  SUCCEEDS(cudnnCreateActivationDescriptor(&activation));
  void* memory = device_memory(1 << 16);
  const float one = 1.0F, zero = 0.0F;
#define FUSED(alpha1, alpha2, z_desc, z, bias_desc, act)                                           \
  cudnnConvolutionBiasActivationForward(handle, alpha1, d.x, memory, d.w, memory, d.conv, PRECOMP, \
                                        NULL, 0, alpha2, z_desc, z, bias_desc, memory, act, d.y,   \
                                        memory)
  RETURNS(CUDNN_STATUS_BAD_PARAM, FUSED(&one, &zero, d.y, memory, d.bias, activation));
  SUCCEEDS(
      cudnnSetActivationDescriptor(activation, CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN, 0.0));
  RETURNS(CUDNN_STATUS_BAD_PARAM, FUSED(NULL, &zero, d.y, memory, d.bias, activation));
  RETURNS(CUDNN_STATUS_BAD_PARAM, FUSED(&one, NULL, d.y, memory, d.bias, activation));
  RETURNS(CUDNN_STATUS_BAD_PARAM, FUSED(&one, &one, NULL, memory, d.bias, activation));
  RETURNS(CUDNN_STATUS_BAD_PARAM, FUSED(&one, &one, d.y, NULL, d.bias, activation));
  RETURNS(CUDNN_STATUS_BAD_PARAM, FUSED(&one, &one, d.x, memory, d.bias, activation));
  RETURNS(CUDNN_STATUS_BAD_PARAM, FUSED(&one, &zero, d.y, memory, d.y, activation));
  RETURNS(CUDNN_STATUS_BAD_PARAM, FUSED(&one, &zero, d.y, memory, d.bias, NULL));
#undef FUSED
  cudaFree(memory);
  SUCCEEDS(cudnnDestroyActivationDescriptor(activation));
  destroy_descriptors(&d);
}

int main(void) {
  const Shape image = {"f32",  0,      2,      2,      3,     5,   1,  {7, 6},
                       {3, 3}, {1, 1}, {2, 1}, {1, 1}, CROSS, 0.5, 1.0};
  const Shape half = {"f16",  1,      2,      2,      8,     8,   2,  {7, 6},
                      {3, 2}, {1, 0}, {1, 1}, {1, 2}, CROSS, 1.0, 0.5};
  const Shape alone = {"f64",  0,      2,      1,      2,     3,   1,  {5, 5},
                       {2, 2}, {0, 0}, {1, 1}, {1, 1}, CROSS, 2.0, 0.0};
  const Shape bytes = {"i8",   1,      2,      2,      8,     8,   1,  {5, 5},
                       {3, 3}, {1, 1}, {1, 1}, {1, 1}, CROSS, 0.1, 0.5};
  SUCCEEDS(cudnnCreate(&handle));
  for (size_t i = 0; i < sizeof kActs / sizeof kActs[0]; ++i)
    test_fused(&image, "f32", &kActs[i], i % 2 == 0);
  for (int in_place = 0; in_place < 2; ++in_place) test_fused(&half, "f16", &kActs[0], in_place);
  test_fused(&alone, "f64", &kActs[3], 0);
  test_fused(&bytes, "i8", &kActs[0], 0);
  test_fused(&bytes, "f32", &kActs[1], 1);
  test_vectors(4, CUDNN_DATA_INT8x4, 0);
  test_vectors(32, CUDNN_DATA_INT8x32, 0);
  test_vectors(32, CUDNN_DATA_INT8x32, 1);
  test_columns(&image);
  test_columns(&half);
  test_flipped_columns();
  test_misuse(&image);
  SUCCEEDS(cudnnDestroy(handle));
  return failures;
}

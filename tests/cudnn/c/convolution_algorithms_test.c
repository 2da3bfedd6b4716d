/* Algorithm queries: predicted and measured lists, workspace sizes, and rejections. */
#include <math.h>
#include <stdlib.h>

#include "convolution.h"

static cudnnHandle_t handle;

static const Shape kShape = {
    "f32", 0, 2, 2, 16, 16, 1, {9, 10}, {3, 3}, {1, 1}, {2, 1}, {1, 1}, CUDNN_CROSS_CORRELATION,
    1,     0};
/* Stride 1 and 3 x 3: a shape that Winograd supports. */
static const Shape kTiles = {
    "f32", 0, 2, 1, 32, 32, 1, {16, 16}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, CUDNN_CROSS_CORRELATION,
    1,     0};

/* Invariants of every list: each algorithm once, supported ones first, the others marked. */
#define CHECK_LIST(results, count, max, is_measured)                                            \
  do {                                                                                          \
    int seen = 0, usable = 1;                                                                   \
    CHECK((count) == (max));                                                                    \
    for (int i = 0; i < (count); ++i) {                                                         \
      seen |= 1 << (results)[i].algo;                                                           \
      if ((results)[i].status != CUDNN_STATUS_SUCCESS) usable = 0;                              \
      CHECK(((results)[i].status == CUDNN_STATUS_SUCCESS) == usable);                           \
      CHECK(((results)[i].time >= 0) == (usable && (is_measured)));                             \
      CHECK((results)[i].mathType == CUDNN_FMA_MATH);                                           \
      if (!usable) CHECK((results)[i].status == CUDNN_STATUS_NOT_SUPPORTED);                    \
      if (usable && i > 0) CHECK(!(is_measured) || (results)[i].time >= (results)[i - 1].time); \
    }                                                                                           \
    CHECK(seen == (1 << (max)) - 1);                                                            \
    CHECK((results)[0].status == CUDNN_STATUS_SUCCESS);                                         \
  } while (0)

static void test_forward_lists(const Shape* shape) {
  cudnnConvolutionFwdAlgoPerf_t results[CUDNN_CONVOLUTION_FWD_ALGO_COUNT];
  Descriptors d = make_descriptors(shape);
  int max = 0, count = 0;
  SUCCEEDS(cudnnGetConvolutionForwardAlgorithmMaxCount(handle, &max));
  CHECK(max == CUDNN_CONVOLUTION_FWD_ALGO_COUNT);
  SUCCEEDS(
      cudnnGetConvolutionForwardAlgorithm_v7(handle, d.x, d.w, d.conv, d.y, max, &count, results));
  CHECK_LIST(results, count, max, 0);
  size_t largest = 0;
  for (int i = 0; i < count; ++i) {
    size_t bytes = 0;
    SUCCEEDS(cudnnGetConvolutionForwardWorkspaceSize(handle, d.x, d.w, d.conv, d.y, results[i].algo,
                                                     &bytes));
    if (results[i].status == CUDNN_STATUS_SUCCESS) CHECK(bytes == results[i].memory);
    if (results[i].algo == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM) CHECK(bytes == 0);
    if (bytes > largest) largest = bytes;
  }
  SUCCEEDS(
      cudnnFindConvolutionForwardAlgorithm(handle, d.x, d.w, d.conv, d.y, max, &count, results));
  CHECK_LIST(results, count, max, 1);

  size_t x_bytes = 0, w_bytes = 0, y_bytes = 0;
  SUCCEEDS(cudnnGetTensorSizeInBytes(d.x, &x_bytes));
  SUCCEEDS(cudnnGetFilterSizeInBytes(d.w, &w_bytes));
  SUCCEEDS(cudnnGetTensorSizeInBytes(d.y, &y_bytes));
  void *x = device_memory(x_bytes), *w = device_memory(w_bytes), *y = device_memory(y_bytes),
       *workspace = workspace_of(largest);
  cudaMemset(x, 0, x_bytes);
  cudaMemset(w, 0, w_bytes);
  SUCCEEDS(cudnnFindConvolutionForwardAlgorithmEx(handle, d.x, x, d.w, w, d.conv, d.y, y, max,
                                                  &count, results, workspace, largest));
  CHECK_LIST(results, count, max, 1);
  /* Without a workspace, algorithms that need one report it, and one that needs none is first. */
  SUCCEEDS(cudnnFindConvolutionForwardAlgorithmEx(handle, d.x, x, d.w, w, d.conv, d.y, y, max,
                                                  &count, results, NULL, 0));
  CHECK(count == max && results[0].status == CUDNN_STATUS_SUCCESS && results[0].memory == 0);
  for (int i = 0; i < count; ++i)
    if (results[i].memory > 0) CHECK(results[i].status == CUDNN_STATUS_ALLOC_FAILED);
  SUCCEEDS(
      cudnnGetConvolutionForwardAlgorithm_v7(handle, d.x, d.w, d.conv, d.y, 1, &count, results));
  CHECK(count == 1);
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnFindConvolutionForwardAlgorithmEx(handle, d.x, x, d.w, NULL, d.conv, d.y, y, max,
                                                 &count, results, NULL, 0));
  cudaFree(x);
  cudaFree(w);
  cudaFree(y);
  cudaFree(workspace);
  destroy_descriptors(&d);
}

static void test_backward_lists(const Shape* shape) {
  cudnnConvolutionBwdDataAlgoPerf_t data[CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT];
  cudnnConvolutionBwdFilterAlgoPerf_t filter[CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT];
  Descriptors d = make_descriptors(shape);
  int max = 0, count = 0;
  SUCCEEDS(cudnnGetConvolutionBackwardDataAlgorithmMaxCount(handle, &max));
  SUCCEEDS(cudnnGetConvolutionBackwardDataAlgorithm_v7(handle, d.w, d.y, d.conv, d.x, max, &count,
                                                       data));
  CHECK_LIST(data, count, max, 0);
  SUCCEEDS(
      cudnnFindConvolutionBackwardDataAlgorithm(handle, d.w, d.y, d.conv, d.x, max, &count, data));
  CHECK_LIST(data, count, max, 1);
  SUCCEEDS(cudnnGetConvolutionBackwardFilterAlgorithmMaxCount(handle, &max));
  SUCCEEDS(cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle, d.x, d.y, d.conv, d.w, max, &count,
                                                         filter));
  CHECK_LIST(filter, count, max, 0);
  SUCCEEDS(cudnnFindConvolutionBackwardFilterAlgorithm(handle, d.x, d.y, d.conv, d.w, max, &count,
                                                       filter));
  CHECK_LIST(filter, count, max, 1);

  size_t x_bytes = 0, w_bytes = 0, y_bytes = 0;
  SUCCEEDS(cudnnGetTensorSizeInBytes(d.x, &x_bytes));
  SUCCEEDS(cudnnGetFilterSizeInBytes(d.w, &w_bytes));
  SUCCEEDS(cudnnGetTensorSizeInBytes(d.y, &y_bytes));
  void *x = device_memory(x_bytes), *w = device_memory(w_bytes), *y = device_memory(y_bytes);
  cudaMemset(y, 0, y_bytes);
  cudaMemset(w, 0, w_bytes);
  SUCCEEDS(cudnnFindConvolutionBackwardDataAlgorithmEx(handle, d.w, w, d.y, y, d.conv, d.x, x,
                                                       CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT,
                                                       &count, data, NULL, 0));
  CHECK(data[0].status == CUDNN_STATUS_SUCCESS && data[0].time >= 0);
  SUCCEEDS(cudnnFindConvolutionBackwardFilterAlgorithmEx(handle, d.x, x, d.y, y, d.conv, d.w, w,
                                                         CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT,
                                                         &count, filter, NULL, 0));
  CHECK(filter[0].status == CUDNN_STATUS_SUCCESS && filter[0].time >= 0);
  cudaFree(x);
  cudaFree(w);
  cudaFree(y);
  destroy_descriptors(&d);
}

/* The Winograd result is close to the direct one, but outside the oracle's bound. */
static void test_tiles(void) {
  Descriptors d = make_descriptors(&kTiles);
  Oracle* oracle = oracle_graph(
      "{\"format\":\"ashlar-graph\",\"version\":1,\"tensors\":[%s,%s,%s],\"nodes\":["
      "{\"op\":\"conv_forward\",\"inputs\":{\"x\":\"x\",\"w\":\"w\"},\"outputs\":{\"y\":\"y\"},"
      "\"attributes\":%s}]}",
      json_x(&kTiles, "x", "input"), json_w(&kTiles, "w", "input"), json_y(&kTiles, "y", "output"),
      json_attributes(&kTiles));
  const float one = 1.0F, zero = 0.0F;
  const size_t bytes = oracle_bytes(oracle, "y");
  float* plain = malloc(bytes);
  SUCCEEDS(cudnnConvolutionForward(
      handle, &one, d.x, oracle_device(oracle, "x"), d.w, oracle_device(oracle, "w"), d.conv,
      CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, NULL, 0, &zero, d.y, oracle_device(oracle, "y")));
  oracle_check(oracle);
  cudaMemcpy(plain, oracle_device(oracle, "y"), bytes, cudaMemcpyDeviceToHost);
  SUCCEEDS(cudnnConvolutionForward(
      handle, &one, d.x, oracle_device(oracle, "x"), d.w, oracle_device(oracle, "w"), d.conv,
      CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD, NULL, 0, &zero, d.y, oracle_device(oracle, "y")));
  oracle_download(oracle, "y");
  const float* tiled = oracle_host(oracle, "y");
  double worst = 0.0;
  for (size_t i = 0; i < bytes / sizeof(float); ++i)
    worst = fmax(worst, fabs((double)tiled[i] - (double)plain[i]));
  CHECK(worst < 1e-3);
  free(plain);
  oracle_destroy(oracle);
  destroy_descriptors(&d);
}

static void test_misuse(void) {
  Descriptors d = make_descriptors(&kShape);
  cudnnConvolutionFwdAlgoPerf_t result;
  const float one = 1.0F, zero = 0.0F;
  int count = 0;
  size_t bytes = 0;
  void* memory = device_memory(1 << 16);
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnGetConvolutionForwardAlgorithmMaxCount(NULL, &count));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnGetConvolutionForwardAlgorithmMaxCount(handle, NULL));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnGetConvolutionForwardAlgorithm_v7(handle, d.x, d.w, d.conv,
                                                                         d.y, 0, &count, &result));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnGetConvolutionForwardAlgorithm_v7(handle, d.x, d.w, d.conv, d.y, 1, NULL, &result));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnFindConvolutionForwardAlgorithm(handle, d.x, d.w, d.conv, d.y, 1, &count, NULL));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnGetConvolutionForwardAlgorithm_v7(handle, NULL, d.w, d.conv,
                                                                         d.y, 1, &count, &result));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnGetConvolutionForwardWorkspaceSize(handle, d.x, d.w, d.conv, d.y,
                                                  CUDNN_CONVOLUTION_FWD_ALGO_COUNT, &bytes));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnGetConvolutionForwardWorkspaceSize(handle, d.x, d.w, d.conv, d.y,
                                                  CUDNN_CONVOLUTION_FWD_ALGO_GEMM, NULL));
  /* x in place of y: inconsistent extents. */
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnConvolutionForward(handle, &one, d.x, memory, d.w, memory, d.conv,
                                  CUDNN_CONVOLUTION_FWD_ALGO_GEMM, NULL, 0, &zero, d.x, memory));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnConvolutionForward(handle, NULL, d.x, memory, d.w, memory, d.conv,
                                  CUDNN_CONVOLUTION_FWD_ALGO_GEMM, NULL, 0, &zero, d.y, memory));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnConvolutionForward(handle, &one, d.x, memory, d.w, memory, d.conv,
                                  CUDNN_CONVOLUTION_FWD_ALGO_GEMM, NULL, 0, &zero, d.y, NULL));
  SUCCEEDS(cudnnSetConvolutionGroupCount(d.conv, 3));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnConvolutionForward(handle, &one, d.x, memory, d.w, memory, d.conv,
                                  CUDNN_CONVOLUTION_FWD_ALGO_GEMM, NULL, 0, &zero, d.y, memory));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnConvolutionBackwardBias(handle, &one, d.y, memory, &zero, d.x, memory));
  cudaFree(memory);
  destroy_descriptors(&d);
}

int main(void) {
  SUCCEEDS(cudnnCreate(&handle));
  test_forward_lists(&kShape);
  test_forward_lists(&kTiles);
  test_backward_lists(&kShape);
  test_backward_lists(&kTiles);
  test_tiles();
  test_misuse();
  SUCCEEDS(cudnnDestroy(handle));
  return failures;
}

/* Convolutions and their gradients: every type, layout and algorithm, with and without a
 * workspace. */
#include "convolution.h"

#include <string.h>

static cudnnHandle_t handle;

#define CROSS CUDNN_CROSS_CORRELATION
static const Shape kShapes[] = {
    {"f32", 0, 2, 2, 3, 5, 1, {9, 7}, {3, 2}, {1, 0}, {2, 1}, {1, 2}, CROSS, 1, 0},
    {"f32", 0, 2, 2, 4, 6, 2, {6, 8}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, CUDNN_CONVOLUTION, 0.5, 2},
    {"f32", 1, 2, 1, 6, 6, 6, {7, 7}, {3, 3}, {1, 1}, {2, 2}, {1, 1}, CROSS, -1.25, 0},
    {"f32", 0, 1, 3, 4, 8, 1, {17}, {5}, {2}, {3}, {1}, CROSS, 1, 0.5},
    {"f32", 0, 3, 1, 2, 4, 1, {5, 6, 4}, {3, 2, 3}, {1, 0, 1}, {1, 2, 1}, {1, 1, 1}, CROSS, 2, 1},
    {"f16", 0, 2, 2, 8, 8, 1, {8, 8}, {1, 1}, {0, 0}, {1, 1}, {1, 1}, CROSS, 1, 0},
    {"f16", 1, 2, 2, 16, 8, 2, {9, 8}, {3, 3}, {2, 2}, {2, 1}, {2, 1}, CROSS, 0.75, 0.25},
    {"bf16", 1, 2, 1, 8, 16, 1, {6, 6}, {3, 3}, {1, 1}, {1, 2}, {1, 1}, CROSS, 1, 1},
    {"f64", 0, 2, 2, 3, 4, 1, {5, 5}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, CUDNN_CONVOLUTION, 1.5, -2},
};

static void put_before(const Oracle* oracle, const char* before, const char* result) {
  cudaMemcpy(oracle_device(oracle, result), oracle_device(oracle, before),
             oracle_bytes(oracle, before), cudaMemcpyDeviceToDevice);
}

/* The graph of `op` with operands `a` and `b`; `result` is the JSON of its result. The old contents
 * of the result have the suffix "_before". */
static Oracle* graph_of(const Shape* shape, const char* op, const char* slots, const char* a,
                        const char* b, const char* before, const char* sum, const char* result,
                        const char* out_slot, const char* out_name) {
  return oracle_graph(
      "{\"format\":\"ashlar-graph\",\"version\":1,\"tensors\":[%s,%s,%s%s%s,%s],\"nodes\":["
      "{\"op\":\"%s\",\"inputs\":%s,\"outputs\":{\"%s\":\"sum\"},\"attributes\":%s,"
      "\"compute\":\"%s\"},%s]}",
      a, b, sum, shape->beta != 0 ? "," : "", shape->beta != 0 ? before : "", result, op, slots,
      out_slot, json_attributes(shape), sum_type(shape),
      json_blend(shape, "sum", "before", out_name));
}

static Shape with_type(const Shape* shape, const char* dtype) {
  Shape other = *shape;
  other.dtype = dtype;
  return other;
}

static void test_forward(const Shape* shape, const Descriptors* d, int algo, int with_workspace) {
  const Shape summed = with_type(shape, sum_type(shape));
  Oracle* oracle =
      graph_of(shape, "conv_forward", "{\"x\":\"x\",\"w\":\"w\"}", json_x(shape, "x", "input"),
               json_w(shape, "w", "input"), json_y(shape, "before", "input"),
               json_y(&summed, "sum", "intermediate"), json_y(shape, "y", "output"), "y", "y");
  const Number alpha = number(shape, shape->alpha), beta = number(shape, shape->beta);
  if (shape->beta != 0) put_before(oracle, "before", "y");
  size_t bytes = 0;
  SUCCEEDS(cudnnGetConvolutionForwardWorkspaceSize(handle, d->x, d->w, d->conv, d->y,
                                                   (cudnnConvolutionFwdAlgo_t)algo, &bytes));
  if (!with_workspace) bytes = 0;
  void* workspace = workspace_of(bytes);
  SUCCEEDS(cudnnConvolutionForward(
      handle, &alpha, d->x, oracle_device(oracle, "x"), d->w, oracle_device(oracle, "w"), d->conv,
      (cudnnConvolutionFwdAlgo_t)algo, workspace, bytes, &beta, d->y, oracle_device(oracle, "y")));
  oracle_check(oracle);
  cudaFree(workspace);
  oracle_destroy(oracle);
}

static void test_backward_data(const Shape* shape, const Descriptors* d, int algo,
                               int with_workspace) {
  const Shape summed = with_type(shape, sum_type(shape));
  Oracle* oracle = graph_of(
      shape, "conv_backward_data", "{\"dy\":\"dy\",\"w\":\"w\"}", json_y(shape, "dy", "input"),
      json_w(shape, "w", "input"), json_x(shape, "before", "input"),
      json_x(&summed, "sum", "intermediate"), json_x(shape, "dx", "output"), "dx", "dx");
  const Number alpha = number(shape, shape->alpha), beta = number(shape, shape->beta);
  if (shape->beta != 0) put_before(oracle, "before", "dx");
  size_t bytes = 0;
  SUCCEEDS(cudnnGetConvolutionBackwardDataWorkspaceSize(
      handle, d->w, d->y, d->conv, d->x, (cudnnConvolutionBwdDataAlgo_t)algo, &bytes));
  if (!with_workspace) bytes = 0;
  void* workspace = workspace_of(bytes);
  SUCCEEDS(cudnnConvolutionBackwardData(handle, &alpha, d->w, oracle_device(oracle, "w"), d->y,
                                        oracle_device(oracle, "dy"), d->conv,
                                        (cudnnConvolutionBwdDataAlgo_t)algo, workspace, bytes,
                                        &beta, d->x, oracle_device(oracle, "dx")));
  oracle_check(oracle);
  cudaFree(workspace);
  oracle_destroy(oracle);
}

static void test_backward_filter(const Shape* shape, const Descriptors* d, int algo,
                                 int with_workspace) {
  const Shape summed = with_type(shape, sum_type(shape));
  Oracle* oracle = graph_of(
      shape, "conv_backward_filter", "{\"x\":\"x\",\"dy\":\"dy\"}", json_x(shape, "x", "input"),
      json_y(shape, "dy", "input"), json_w(shape, "before", "input"),
      json_w(&summed, "sum", "intermediate"), json_w(shape, "dw", "output"), "dw", "dw");
  const Number alpha = number(shape, shape->alpha), beta = number(shape, shape->beta);
  if (shape->beta != 0) put_before(oracle, "before", "dw");
  size_t bytes = 0;
  SUCCEEDS(cudnnGetConvolutionBackwardFilterWorkspaceSize(
      handle, d->x, d->y, d->conv, d->w, (cudnnConvolutionBwdFilterAlgo_t)algo, &bytes));
  if (!with_workspace) bytes = 0;
  void* workspace = workspace_of(bytes);
  SUCCEEDS(cudnnConvolutionBackwardFilter(handle, &alpha, d->x, oracle_device(oracle, "x"), d->y,
                                          oracle_device(oracle, "dy"), d->conv,
                                          (cudnnConvolutionBwdFilterAlgo_t)algo, workspace, bytes,
                                          &beta, d->w, oracle_device(oracle, "dw")));
  oracle_check(oracle);
  cudaFree(workspace);
  oracle_destroy(oracle);
}

static void test_backward_bias(const Shape* shape, const Descriptors* d) {
  const int ones[MAX_AXES] = {1, 1, 1};
  const char* const axes[] = {"", "[0,2]", "[0,2,3]", "[0,2,3,4]"};
  const char* sum = strcmp(shape->dtype, "f64") == 0 ? "f64" : "f32";
  Oracle* oracle = oracle_graph(
      "{\"format\":\"ashlar-graph\",\"version\":1,\"tensors\":[%s,%s,%s%s%s],\"nodes\":["
      "{\"op\":\"reduction\",\"inputs\":{\"x\":\"dy\"},\"outputs\":{\"y\":\"sum\"},"
      "\"attributes\":{\"mode\":\"add\",\"axes\":%s}},%s]}",
      json_y(shape, "dy", "input"),
      json_tensor("sum", "intermediate", sum, shape, 1, shape->k, ones),
      json_tensor("db", "output", shape->dtype, shape, 1, shape->k, ones),
      shape->beta != 0 ? "," : "",
      shape->beta != 0 ? json_tensor("before", "input", shape->dtype, shape, 1, shape->k, ones)
                       : "",
      axes[shape->spatial], json_blend(shape, "sum", "before", "db"));
  const Number alpha = number(shape, shape->alpha), beta = number(shape, shape->beta);
  if (shape->beta != 0) put_before(oracle, "before", "db");
  SUCCEEDS(cudnnConvolutionBackwardBias(handle, &alpha, d->y, oracle_device(oracle, "dy"), &beta,
                                        d->bias, oracle_device(oracle, "db")));
  oracle_check(oracle);
  oracle_destroy(oracle);
}

/* INT8 data with int32 accumulation: INT8 results saturate, FLOAT results are exact. */
static void test_int8(const char* result_type) {
  const Shape shape = {"i8",   1,      2,      2,      8,     4,   1,  {5, 6},
                       {3, 3}, {1, 1}, {1, 1}, {1, 1}, CROSS, 0.1, 0.5};
  const Shape summed = with_type(&shape, "i32"), result = with_type(&shape, result_type);
  Descriptors d = make_descriptors(&shape);
  const int dims[] = {2, 4, 5, 6};
  SUCCEEDS(cudnnSetTensorNdDescriptorEx(d.y, CUDNN_TENSOR_NHWC, type_of(result_type), 4, dims));
  Oracle* oracle =
      graph_of(&shape, "conv_forward", "{\"x\":\"x\",\"w\":\"w\"}", json_x(&shape, "x", "input"),
               json_w(&shape, "w", "input"), json_y(&result, "before", "input"),
               json_y(&summed, "sum", "intermediate"), json_y(&result, "y", "output"), "y", "y");
  oracle_fill(oracle, "x", -128, 127);
  oracle_fill(oracle, "w", -9, 9);
  oracle_fill(oracle, "before", -100, 100);
  put_before(oracle, "before", "y");
  const float alpha = 0.1F, beta = 0.5F;
  SUCCEEDS(cudnnConvolutionForward(handle, &alpha, d.x, oracle_device(oracle, "x"), d.w,
                                   oracle_device(oracle, "w"), d.conv,
                                   CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, NULL, 0, &beta,
                                   d.y, oracle_device(oracle, "y")));
  oracle_check(oracle);
  oracle_destroy(oracle);
  destroy_descriptors(&d);
}

/* Padded rows of x and y, as in a crop of a larger image; the padding of y is not written. */
static void test_padded_rows(void) {
  const Shape shape = {"f32",  0,      2,      1,      2,     3, 1, {4, 5},
                       {3, 3}, {1, 1}, {1, 1}, {1, 1}, CROSS, 1, 0};
  Descriptors d = make_descriptors(&shape);
  SUCCEEDS(cudnnSetTensor4dDescriptorEx(d.x, CUDNN_DATA_FLOAT, 1, 2, 4, 5, 64, 32, 8, 1));
  SUCCEEDS(cudnnSetTensor4dDescriptorEx(d.y, CUDNN_DATA_FLOAT, 1, 3, 4, 5, 90, 30, 7, 1));
  Oracle* oracle = oracle_graph(
      "{\"format\":\"ashlar-graph\",\"version\":1,\"tensors\":["
      "{\"name\":\"x\",\"kind\":\"input\",\"dtype\":\"f32\",\"dims\":[1,2,4,5],"
      "\"strides\":[64,32,8,1]},%s,"
      "{\"name\":\"y\",\"kind\":\"output\",\"dtype\":\"f32\",\"dims\":[1,3,4,5],"
      "\"strides\":[90,30,7,1]}],\"nodes\":["
      "{\"op\":\"conv_forward\",\"inputs\":{\"x\":\"x\",\"w\":\"w\"},"
      "\"outputs\":{\"y\":\"y\"},\"attributes\":%s}]}",
      json_w(&shape, "w", "input"), json_attributes(&shape));
  float gap = 0.0F;
  const float one = 1.0F, zero = 0.0F, saved = 123.0F;
  char* y = oracle_device(oracle, "y");
  cudaMemcpy(y + 5 * sizeof(float), &saved, sizeof saved, cudaMemcpyHostToDevice);
  SUCCEEDS(cudnnConvolutionForward(
      handle, &one, d.x, oracle_device(oracle, "x"), d.w, oracle_device(oracle, "w"), d.conv,
      CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, NULL, 0, &zero, d.y, y));
  oracle_check(oracle);
  cudaMemcpy(&gap, y + 5 * sizeof(float), sizeof gap, cudaMemcpyDeviceToHost);
  CHECK(gap == saved);
  oracle_destroy(oracle);
  destroy_descriptors(&d);
}

int main(void) {
  SUCCEEDS(cudnnCreate(&handle));
  for (size_t i = 0; i < sizeof kShapes / sizeof kShapes[0]; ++i) {
    Descriptors d = make_descriptors(&kShapes[i]);
    for (int with_workspace = 0; with_workspace < 2; ++with_workspace) {
      test_forward(&kShapes[i], &d, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
                   with_workspace);
      test_backward_data(&kShapes[i], &d, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, with_workspace);
      test_backward_filter(&kShapes[i], &d, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, with_workspace);
    }
    test_backward_bias(&kShapes[i], &d);
    destroy_descriptors(&d);
  }
  /* Every algorithm runs, also those listed as not supported. This shape does not use Winograd,
   * whose rounding is outside the oracle's bound. */
  Descriptors d = make_descriptors(&kShapes[0]);
  for (int algo = 0; algo < CUDNN_CONVOLUTION_FWD_ALGO_COUNT; ++algo)
    test_forward(&kShapes[0], &d, algo, 1);
  for (int algo = 0; algo < CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT; ++algo)
    test_backward_data(&kShapes[0], &d, algo, 1);
  for (int algo = 0; algo < CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT; ++algo)
    test_backward_filter(&kShapes[0], &d, algo, 1);
  destroy_descriptors(&d);
  test_int8("i8");
  test_int8("f32");
  test_int8("i32");
  test_padded_rows();
  SUCCEEDS(cudnnDestroy(handle));
  return failures;
}

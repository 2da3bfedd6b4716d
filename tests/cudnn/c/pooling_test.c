/* cudnnPooling*: four modes, two and three spatial axes, forward and backward, INT8, NaN. */
#include <math.h>
#include <string.h>

#include "oracle.h"

static cudnnHandle_t handle;
static const float one = 1.0F, zero = 0.0F;

static const struct {
  cudnnPoolingMode_t mode;
  const char* name;
} modes[] = {
    {CUDNN_POOLING_MAX, "maxpool"},
    {CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING, "avgpool_include_padding"},
    {CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING, "avgpool_exclude_padding"},
    {CUDNN_POOLING_MAX_DETERMINISTIC, "maxpool"},
};
enum { MODES = 4 };

/* Shapes, with the dims of y. */
static const struct {
  int axes, window[3], padding[3], stride[3];
  const char *x, *y, *attributes;
} shapes[] = {
    {2,
     {3, 2},
     {1, 0},
     {2, 2},
     "[2,3,9,8]",
     "[2,3,5,4]",
     "'window':[3,2],'padding':[1,0],'stride':[2,2]"},
    {2,
     {4, 5},
     {0, 2},
     {3, 1},
     "[1,5,11,7]",
     "[1,5,3,7]",
     "'window':[4,5],'padding':[0,2],'stride':[3,1]"},
    {3,
     {2, 3, 3},
     {1, 1, 0},
     {1, 2, 3},
     "[2,2,4,5,6]",
     "[2,2,5,3,2]",
     "'window':[2,3,3],'padding':[1,1,0],'stride':[1,2,3]"},
};
enum { SHAPES = 3 };

static cudnnPoolingDescriptor_t pooling(int mode, int shape, cudnnNanPropagation_t nan) {
  cudnnPoolingDescriptor_t descriptor = NULL;
  SUCCEEDS(cudnnCreatePoolingDescriptor(&descriptor));
  if (shapes[shape].axes == 2)
    SUCCEEDS(cudnnSetPooling2dDescriptor(descriptor, modes[mode].mode, nan, shapes[shape].window[0],
                                         shapes[shape].window[1], shapes[shape].padding[0],
                                         shapes[shape].padding[1], shapes[shape].stride[0],
                                         shapes[shape].stride[1]));
  else
    SUCCEEDS(cudnnSetPoolingNdDescriptor(descriptor, modes[mode].mode, nan, shapes[shape].axes,
                                         shapes[shape].window, shapes[shape].padding,
                                         shapes[shape].stride));
  return descriptor;
}

/* The queried output dims match those of the table. */
static void check_output_dims(cudnnPoolingDescriptor_t how, int shape, cudnnTensorDescriptor_t x,
                              cudnnTensorDescriptor_t y) {
  int reported[5], dims[5], strides[5], rank = 0;
  cudnnDataType_t type;
  SUCCEEDS(cudnnGetPoolingNdForwardOutputDim(how, x, shapes[shape].axes + 2, reported));
  SUCCEEDS(cudnnGetTensorNdDescriptor(y, 5, &type, &rank, dims, strides));
  CHECK(rank == shapes[shape].axes + 2);
  for (int axis = 0; axis < rank; ++axis) CHECK(reported[axis] == dims[axis]);
  if (rank != 4) return;
  SUCCEEDS(cudnnGetPooling2dForwardOutputDim(how, x, &reported[0], &reported[1], &reported[2],
                                             &reported[3]));
  for (int axis = 0; axis < rank; ++axis) CHECK(reported[axis] == dims[axis]);
}

static void forward(int mode, int shape, const Variant* variant) {
  Oracle* oracle = oracle_variant(
      variant,
      GRAPH(TENSOR("input", "x", "%s") "," TENSOR(
                "input", "before", "%s") "," VIRTUAL("f") "," TENSOR("output", "y", "%s"),
            "{'op':'resample_forward','inputs':{'x':'x'},'outputs':{'y':'f'},"
            "'attributes':{'mode':'%s',%s}}," BLEND("f", "before", "y")),
      shapes[shape].x, shapes[shape].y, shapes[shape].y, modes[mode].name,
      shapes[shape].attributes);
  cudnnPoolingDescriptor_t how = pooling(mode, shape, CUDNN_PROPAGATE_NAN);
  check_output_dims(how, shape, oracle_tensor(oracle, "x"), oracle_tensor(oracle, "y"));
  oracle_before(oracle, variant, "before", "y");
  SUCCEEDS(cudnnPoolingForward(handle, how, factor_of(variant, variant->alpha),
                               oracle_tensor(oracle, "x"), oracle_device(oracle, "x"),
                               factor_of(variant, variant->beta), oracle_tensor(oracle, "y"),
                               oracle_device(oracle, "y")));
  oracle_check(oracle);
  SUCCEEDS(cudnnDestroyPoolingDescriptor(how));
  oracle_destroy(oracle);
}

static void backward(int mode, int shape, const Variant* variant) {
  Oracle* oracle = oracle_variant(
      variant,
      GRAPH(TENSOR("input", "x", "%s") "," TENSOR("input", "dy", "%s") "," TENSOR(
                "input", "before", "%s") ",{'name':'f','dtype':'@C','dims':%s}," TENSOR("output",
                                                                                        "dx", "%s"),
            "{'op':'resample_backward','inputs':{'dy':'dy','x':'x'},'outputs':{'dx':'f'},"
            "'attributes':{'mode':'%s',%s}}," BLEND("f", "before", "dx")),
      shapes[shape].x, shapes[shape].y, shapes[shape].x, shapes[shape].x, shapes[shape].x,
      modes[mode].name, shapes[shape].attributes);
  /* Without NaN both propagation modes agree; they are spread over the variants. */
  cudnnPoolingDescriptor_t how =
      pooling(mode, shape, variant->beta == 0.0 ? CUDNN_NOT_PROPAGATE_NAN : CUDNN_PROPAGATE_NAN);
  oracle_before(oracle, variant, "before", "dx");
  void* y = device_memory(oracle_bytes(oracle, "dy"));
  SUCCEEDS(cudnnPoolingForward(handle, how, factor_of(variant, 1.0), oracle_tensor(oracle, "x"),
                               oracle_device(oracle, "x"), factor_of(variant, 0.0),
                               oracle_tensor(oracle, "dy"), y));
  SUCCEEDS(cudnnPoolingBackward(handle, how, factor_of(variant, variant->alpha),
                                oracle_tensor(oracle, "dy"), y, oracle_tensor(oracle, "dy"),
                                oracle_device(oracle, "dy"), oracle_tensor(oracle, "x"),
                                oracle_device(oracle, "x"), factor_of(variant, variant->beta),
                                oracle_tensor(oracle, "dx"), oracle_device(oracle, "dx")));
  oracle_check(oracle);
  cudaFree(y);
  SUCCEEDS(cudnnDestroyPoolingDescriptor(how));
  oracle_destroy(oracle);
}

/* INT8 averages are computed in float and rounded. */
static void int8(int mode, const char* layout) {
  const Variant variant = {"i8", layout, 1.0, 0.0};
  Oracle* oracle = oracle_variant(
      &variant,
      GRAPH(TENSOR("input", "x", "%s") "," TENSOR("output", "y", "%s"),
            "{'op':'resample_forward','inputs':{'x':'x'},'outputs':{'y':'y'},'compute':'f32',"
            "'attributes':{'mode':'%s',%s}}"),
      shapes[0].x, shapes[0].y, modes[mode].name, shapes[0].attributes);
  oracle_fill(oracle, "x", -120.0, 120.0);
  cudnnPoolingDescriptor_t how = pooling(mode, 0, CUDNN_NOT_PROPAGATE_NAN);
  SUCCEEDS(cudnnPoolingForward(handle, how, &one, oracle_tensor(oracle, "x"),
                               oracle_device(oracle, "x"), &zero, oracle_tensor(oracle, "y"),
                               oracle_device(oracle, "y")));
  oracle_check(oracle);
  SUCCEEDS(cudnnDestroyPoolingDescriptor(how));
  oracle_destroy(oracle);
}

/* INT8x4: the result of INT8 in another memory order. */
static void int8x4(void) {
  enum { H = 4, W = 6, OUT_H = 2, OUT_W = 3 };
  signed char plain[8][H][W], packed[2][H][W][4], y[2][OUT_H][OUT_W][4];
  for (int c = 0; c < 8; ++c)
    for (int i = 0; i < H * W; ++i)
      packed[c / 4][i / W][i % W][c % 4] = plain[c][i / W][i % W] =
          (signed char)((i * 37 + c * 11) % 201 - 100);
  void *device_x = device_copy(packed, sizeof packed), *device_y = device_memory(sizeof y);
  cudnnTensorDescriptor_t x_desc = NULL, y_desc = NULL;
  cudnnPoolingDescriptor_t how = NULL;
  SUCCEEDS(cudnnCreateTensorDescriptor(&x_desc));
  SUCCEEDS(cudnnCreateTensorDescriptor(&y_desc));
  SUCCEEDS(cudnnCreatePoolingDescriptor(&how));
  SUCCEEDS(
      cudnnSetTensor4dDescriptor(x_desc, CUDNN_TENSOR_NCHW_VECT_C, CUDNN_DATA_INT8x4, 1, 8, H, W));
  SUCCEEDS(cudnnSetTensor4dDescriptor(y_desc, CUDNN_TENSOR_NCHW_VECT_C, CUDNN_DATA_INT8x4, 1, 8,
                                      OUT_H, OUT_W));
  SUCCEEDS(
      cudnnSetPooling2dDescriptor(how, CUDNN_POOLING_MAX, CUDNN_PROPAGATE_NAN, 2, 2, 0, 0, 2, 2));
  SUCCEEDS(cudnnPoolingForward(handle, how, &one, x_desc, device_x, &zero, y_desc, device_y));
  CHECK(cudaMemcpy(y, device_y, sizeof y, cudaMemcpyDeviceToHost) == cudaSuccess);
  for (int c = 0; c < 8; ++c)
    for (int h = 0; h < OUT_H; ++h)
      for (int w = 0; w < OUT_W; ++w) {
        signed char largest = -128;
        for (int k = 0; k < 4; ++k) {
          const signed char seen = plain[c][2 * h + k / 2][2 * w + k % 2];
          if (seen > largest) largest = seen;
        }
        CHECK(y[c / 4][h][w][c % 4] == largest);
      }
  SUCCEEDS(cudnnDestroyPoolingDescriptor(how));
  SUCCEEDS(cudnnDestroyTensorDescriptor(x_desc));
  SUCCEEDS(cudnnDestroyTensorDescriptor(y_desc));
  cudaFree(device_x);
  cudaFree(device_y);
}

static void nan_of_maximum(void) {
  const float x[6] = {1.0F, NAN, 2.0F, NAN, -1.0F, -3.0F}, dy[3] = {10.0F, 20.0F, 30.0F};
  float y[3], dx[6];
  void *device_x = device_copy(x, sizeof x), *device_y = device_memory(sizeof y),
       *device_dy = device_copy(dy, sizeof dy), *device_dx = device_memory(sizeof dx);
  cudnnTensorDescriptor_t x_desc = NULL, y_desc = NULL;
  cudnnPoolingDescriptor_t how = NULL;
  SUCCEEDS(cudnnCreateTensorDescriptor(&x_desc));
  SUCCEEDS(cudnnCreateTensorDescriptor(&y_desc));
  SUCCEEDS(cudnnCreatePoolingDescriptor(&how));
  SUCCEEDS(cudnnSetTensor4dDescriptor(x_desc, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 1, 6));
  SUCCEEDS(cudnnSetTensor4dDescriptor(y_desc, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 1, 3));
  for (int propagates = 0; propagates < 2; ++propagates) {
    SUCCEEDS(cudnnSetPooling2dDescriptor(how, CUDNN_POOLING_MAX,
                                         propagates ? CUDNN_PROPAGATE_NAN : CUDNN_NOT_PROPAGATE_NAN,
                                         1, 2, 0, 0, 1, 2));
    SUCCEEDS(cudnnPoolingForward(handle, how, &one, x_desc, device_x, &zero, y_desc, device_y));
    SUCCEEDS(cudnnPoolingBackward(handle, how, &one, y_desc, device_y, y_desc, device_dy, x_desc,
                                  device_x, &zero, x_desc, device_dx));
    CHECK(cudaMemcpy(y, device_y, sizeof y, cudaMemcpyDeviceToHost) == cudaSuccess);
    CHECK(cudaMemcpy(dx, device_dx, sizeof dx, cudaMemcpyDeviceToHost) == cudaSuccess);
    if (propagates) {
      CHECK(isnan(y[0]) && isnan(y[1]) && y[2] == -1.0F);
    } else {
      CHECK(y[0] == 1.0F && y[1] == 2.0F && y[2] == -1.0F);
      CHECK(dx[0] == 10.0F && dx[1] == 0.0F && dx[2] == 20.0F && dx[3] == 0.0F);
    }
    CHECK(dx[4] == 30.0F && dx[5] == 0.0F);
  }
  SUCCEEDS(cudnnDestroyPoolingDescriptor(how));
  SUCCEEDS(cudnnDestroyTensorDescriptor(x_desc));
  SUCCEEDS(cudnnDestroyTensorDescriptor(y_desc));
  cudaFree(device_x);
  cudaFree(device_y);
  cudaFree(device_dy);
  cudaFree(device_dx);
}

static void misuse(void) {
  cudnnPoolingDescriptor_t how = NULL;
  cudnnPoolingMode_t mode;
  cudnnNanPropagation_t nan;
  int numbers[6], rank = 0, window[3] = {-1, -1, -1}, padding[3] = {-1, -1, -1},
                  stride[3] = {-1, -1, -1};
  SUCCEEDS(cudnnCreatePoolingDescriptor(&how));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnGetPooling2dDescriptor(how, &mode, &nan, numbers, numbers,
                                                              numbers, numbers, numbers, numbers));
  RETURNS(
      CUDNN_STATUS_BAD_PARAM,
      cudnnSetPooling2dDescriptor(how, CUDNN_POOLING_MAX, CUDNN_PROPAGATE_NAN, 0, 2, 0, 0, 1, 1));
  RETURNS(
      CUDNN_STATUS_BAD_PARAM,
      cudnnSetPooling2dDescriptor(how, CUDNN_POOLING_MAX, CUDNN_PROPAGATE_NAN, 2, 2, 0, -1, 1, 1));
  RETURNS(
      CUDNN_STATUS_BAD_PARAM,
      cudnnSetPooling2dDescriptor(how, CUDNN_POOLING_MAX, CUDNN_PROPAGATE_NAN, 2, 2, 0, 2, 1, 1));
  RETURNS(CUDNN_STATUS_NOT_SUPPORTED,
          cudnnSetPoolingNdDescriptor(how, CUDNN_POOLING_MAX, CUDNN_PROPAGATE_NAN, 7,
                                      shapes[0].window, shapes[0].padding, shapes[0].stride));
  SUCCEEDS(cudnnSetPoolingNdDescriptor(how, CUDNN_POOLING_MAX_DETERMINISTIC, CUDNN_PROPAGATE_NAN, 3,
                                       shapes[2].window, shapes[2].padding, shapes[2].stride));
  SUCCEEDS(cudnnGetPoolingNdDescriptor(how, 2, &mode, &nan, &rank, window, padding, stride));
  CHECK(mode == CUDNN_POOLING_MAX_DETERMINISTIC && nan == CUDNN_PROPAGATE_NAN && rank == 3);
  CHECK(window[0] == 2 && window[1] == 3 && window[2] == -1 && padding[1] == 1 && stride[1] == 2);
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnGetPooling2dDescriptor(how, &mode, &nan, numbers, numbers,
                                                              numbers, numbers, numbers, numbers));
  SUCCEEDS(
      cudnnSetPooling2dDescriptor(how, CUDNN_POOLING_MAX, CUDNN_PROPAGATE_NAN, 3, 4, 1, 2, 5, 6));
  SUCCEEDS(cudnnGetPooling2dDescriptor(how, &mode, &nan, &numbers[0], &numbers[1], &numbers[2],
                                       &numbers[3], &numbers[4], &numbers[5]));
  CHECK(numbers[0] == 3 && numbers[1] == 4 && numbers[2] == 1 && numbers[3] == 2 &&
        numbers[4] == 5 && numbers[5] == 6);

  cudnnTensorDescriptor_t x = NULL;
  SUCCEEDS(cudnnCreateTensorDescriptor(&x));
  SUCCEEDS(cudnnSetTensor4dDescriptor(x, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 8, 8));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnGetPoolingNdForwardOutputDim(how, x, 3, numbers));
  float number = 0.0F; /* y has the wrong extents */
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnPoolingForward(handle, how, NULL, x, &number, NULL, x, &number));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnPoolingForward(handle, how, NULL, x, &number, NULL, NULL, &number));
  SUCCEEDS(cudnnSetTensor4dDescriptor(x, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 8, 1));
  SUCCEEDS(
      cudnnSetPooling2dDescriptor(how, CUDNN_POOLING_MAX, CUDNN_PROPAGATE_NAN, 3, 2, 1, 0, 1, 1));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnGetPoolingNdForwardOutputDim(how, x, 4, numbers));
  SUCCEEDS(cudnnDestroyTensorDescriptor(x));
  SUCCEEDS(cudnnDestroyPoolingDescriptor(how));
}

int main(void) {
  SUCCEEDS(cudnnCreate(&handle));
  for (int mode = 0; mode < MODES; ++mode) {
    for (int shape = 0; shape < SHAPES; ++shape)
      for (int v = 0; v < VARIANTS; ++v) {
        forward(mode, shape, &variants[v]);
        backward(mode, shape, &variants[v]);
      }
    int8(mode, "row_major");
    int8(mode, "channels_last");
  }
  int8x4();
  nan_of_maximum();
  misuse();
  SUCCEEDS(cudnnDestroy(handle));
  return failures;
}

/* Backward data of a strided convolution by folding: filter and gradient are transformed, a
 * backward-data convolution of stride 1 runs, and its result is unfolded. */
#include "convolution.h"

static cudnnHandle_t handle;

static size_t bytes_of(cudnnTensorDescriptor_t tensor) {
  size_t bytes = 0;
  SUCCEEDS(cudnnGetTensorSizeInBytes(tensor, &bytes));
  return bytes;
}

static void test_folding(const Shape* shape, int expected_stride) {
  Descriptors d = make_descriptors(shape);
  cudnnFilterDescriptor_t filter;
  cudnnTensorDescriptor_t dy, dx;
  cudnnConvolutionDescriptor_t conv;
  cudnnTensorTransformDescriptor_t filter_fold, dy_pad, dx_fold, dx_unfold;
  SUCCEEDS(cudnnCreateFilterDescriptor(&filter));
  SUCCEEDS(cudnnCreateTensorDescriptor(&dy));
  SUCCEEDS(cudnnCreateTensorDescriptor(&dx));
  SUCCEEDS(cudnnCreateConvolutionDescriptor(&conv));
  SUCCEEDS(cudnnCreateTensorTransformDescriptor(&filter_fold));
  SUCCEEDS(cudnnCreateTensorTransformDescriptor(&dy_pad));
  SUCCEEDS(cudnnCreateTensorTransformDescriptor(&dx_fold));
  SUCCEEDS(cudnnCreateTensorTransformDescriptor(&dx_unfold));
  const cudnnTensorFormat_t format = shape->nhwc ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
  SUCCEEDS(cudnnGetFoldedConvBackwardDataDescriptors(handle, d.w, d.y, d.conv, d.x, format, filter,
                                                     dy, conv, dx, filter_fold, dy_pad, dx_fold,
                                                     dx_unfold));
  int rank = 0, pads[3], strides[3], dilations[3];
  cudnnConvolutionMode_t mode;
  cudnnDataType_t compute;
  SUCCEEDS(
      cudnnGetConvolutionNdDescriptor(conv, 3, &rank, pads, strides, dilations, &mode, &compute));
  CHECK(rank == shape->spatial && strides[0] == expected_stride);

  Oracle* oracle = oracle_graph(
      "{\"format\":\"ashlar-graph\",\"version\":1,\"tensors\":[%s,%s,%s],\"nodes\":["
      "{\"op\":\"conv_backward_data\",\"inputs\":{\"dy\":\"dy\",\"w\":\"w\"},"
      "\"outputs\":{\"dx\":\"dx\"},\"attributes\":%s}]}",
      json_y(shape, "dy", "input"), json_w(shape, "w", "input"), json_x(shape, "dx", "output"),
      json_attributes(shape));
  size_t filter_bytes = 0;
  SUCCEEDS(cudnnGetFilterSizeInBytes(filter, &filter_bytes));
  void *w_memory = device_memory(filter_bytes), *dy_memory = device_memory(bytes_of(dy)),
       *dx_memory = device_memory(bytes_of(dx)), *again = device_memory(bytes_of(d.x));
  const float one = 1.0F, zero = 0.0F;
  SUCCEEDS(cudnnTransformFilter(handle, filter_fold, &one, d.w, oracle_device(oracle, "w"), &zero,
                                filter, w_memory));
  SUCCEEDS(cudnnTransformTensorEx(handle, dy_pad, &one, d.y, oracle_device(oracle, "dy"), &zero, dy,
                                  dy_memory));
  SUCCEEDS(cudnnConvolutionBackwardData(handle, &one, filter, w_memory, dy, dy_memory, conv,
                                        CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, NULL, 0, &zero, dx,
                                        dx_memory));
  SUCCEEDS(cudnnTransformTensorEx(handle, dx_unfold, &one, dx, dx_memory, &zero, d.x,
                                  oracle_device(oracle, "dx")));
  oracle_check(oracle);
  /* Folding and unfolding again changes nothing. */
  SUCCEEDS(cudnnTransformTensorEx(handle, dx_fold, &one, d.x, oracle_device(oracle, "dx"), &zero,
                                  dx, dx_memory));
  SUCCEEDS(cudnnTransformTensorEx(handle, dx_unfold, &one, dx, dx_memory, &zero, d.x, again));
  cudaMemcpy(oracle_device(oracle, "dx"), again, bytes_of(d.x), cudaMemcpyDeviceToDevice);
  oracle_check(oracle);
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnGetFoldedConvBackwardDataDescriptors(
                                      handle, d.w, d.y, d.conv, d.x, format, filter, dy, conv, dx,
                                      filter_fold, dy_pad, dx_fold, NULL));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnGetFoldedConvBackwardDataDescriptors(
                                      handle, d.w, d.x, d.conv, d.x, format, filter, dy, conv, dx,
                                      filter_fold, dy_pad, dx_fold, dx_unfold));
  cudaFree(w_memory);
  cudaFree(dy_memory);
  cudaFree(dx_memory);
  cudaFree(again);
  oracle_destroy(oracle);
  SUCCEEDS(cudnnDestroyFilterDescriptor(filter));
  SUCCEEDS(cudnnDestroyTensorDescriptor(dy));
  SUCCEEDS(cudnnDestroyTensorDescriptor(dx));
  SUCCEEDS(cudnnDestroyConvolutionDescriptor(conv));
  SUCCEEDS(cudnnDestroyTensorTransformDescriptor(filter_fold));
  SUCCEEDS(cudnnDestroyTensorTransformDescriptor(dy_pad));
  SUCCEEDS(cudnnDestroyTensorTransformDescriptor(dx_fold));
  SUCCEEDS(cudnnDestroyTensorTransformDescriptor(dx_unfold));
  destroy_descriptors(&d);
}

#define CROSS CUDNN_CROSS_CORRELATION
/* Extents as in NVIDIA's library: channels are multiples of 8. */
static void test_extents(void) {
  const Shape shape = {"f32",  0,      2,      1,      3,     4, 1, {16, 16},
                       {7, 7}, {3, 3}, {2, 2}, {1, 1}, CROSS, 1, 0};
  Descriptors d = make_descriptors(&shape), folded = make_descriptors(&shape);
  cudnnTensorTransformDescriptor_t transforms[4];
  for (int i = 0; i < 4; ++i) SUCCEEDS(cudnnCreateTensorTransformDescriptor(&transforms[i]));
  SUCCEEDS(cudnnGetFoldedConvBackwardDataDescriptors(
      handle, d.w, d.y, d.conv, d.x, CUDNN_TENSOR_NCHW, folded.w, folded.y, folded.conv, folded.x,
      transforms[0], transforms[1], transforms[2], transforms[3]));
  cudnnDataType_t type;
  cudnnTensorFormat_t format;
  cudnnConvolutionMode_t mode;
  int rank, w[4], y[4], x[4], strides[4], pads[2], dilations[2];
  SUCCEEDS(cudnnGetFilterNdDescriptor(folded.w, 4, &type, &format, &rank, w));
  SUCCEEDS(cudnnGetTensorNdDescriptor(folded.y, 4, &type, &rank, y, strides));
  SUCCEEDS(cudnnGetTensorNdDescriptor(folded.x, 4, &type, &rank, x, strides));
  SUCCEEDS(cudnnGetConvolutionNdDescriptor(folded.conv, 2, &rank, pads, strides, dilations, &mode,
                                           &type));
  CHECK(w[0] == 8 && w[1] == 16 && w[2] == 4 && w[3] == 4);
  CHECK(y[1] == 8 && y[2] == 9 && y[3] == 9 && x[1] == 16 && x[2] == 8 && x[3] == 8);
  CHECK(pads[0] == 2 && pads[1] == 2 && strides[0] == 1 && strides[1] == 1);
  int32_t before[4], after[4];
  uint32_t folds[2];
  cudnnFoldingDirection_t direction;
  SUCCEEDS(cudnnGetTensorTransformDescriptor(transforms[0], 4, &format, before, after, folds,
                                             &direction));
  CHECK(before[2] == 1 && after[0] == 4 && after[1] == 1 && after[2] == 0 && folds[0] == 2);
  SUCCEEDS(cudnnGetTensorTransformDescriptor(transforms[3], 4, &format, before, after, folds,
                                             &direction));
  CHECK(after[1] == -1 && after[2] == 0 && direction == CUDNN_TRANSFORM_UNFOLD);
  for (int i = 0; i < 4; ++i) SUCCEEDS(cudnnDestroyTensorTransformDescriptor(transforms[i]));
  destroy_descriptors(&d);
  destroy_descriptors(&folded);
}

int main(void) {
  const struct {
    Shape shape;
    int stride;
  } cases[] = {
      {{"f32", 0, 2, 2, 3, 4, 1, {9, 8}, {3, 3}, {1, 1}, {2, 2}, {1, 1}, CROSS, 1, 0}, 1},
      /* Rows that no output reads, and a filter as long as the stride. */
      {{"f32", 1, 2, 1, 4, 4, 1, {9, 11}, {2, 3}, {0, 2}, {2, 3}, {1, 1}, CROSS, 1, 0}, 1},
      {{"f32",
        0,
        3,
        1,
        2,
        3,
        1,
        {5, 7, 6},
        {3, 1, 2},
        {1, 0, 0},
        {2, 2, 1},
        {1, 1, 1},
        CROSS,
        1,
        0},
       1},
      /* Cases that do not fold are unchanged. */
      {{"f32", 1, 2, 1, 4, 4, 2, {9, 11}, {2, 3}, {0, 2}, {2, 3}, {1, 1}, CROSS, 1, 0}, 2},
      {{"f32", 0, 2, 1, 2, 3, 1, {9, 9}, {3, 3}, {1, 1}, {2, 2}, {2, 1}, CROSS, 1, 0}, 2},
      {{"f32", 0, 2, 1, 2, 3, 1, {8, 9}, {3, 2}, {1, 1}, {2, 2}, {1, 1}, CUDNN_CONVOLUTION, 1, 0},
       2},
  };
  SUCCEEDS(cudnnCreate(&handle));
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i)
    test_folding(&cases[i].shape, cases[i].stride);
  test_extents();
  SUCCEEDS(cudnnDestroy(handle));
  return failures;
}

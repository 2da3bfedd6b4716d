/* The gradient of a strided convolution's input by folding: filter and gradient are transformed, a
 * convolution of stride 1 runs backward, and its result is unfolded. */
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
  /* Folding what was unfolded and unfolding it again changes nothing. */
  SUCCEEDS(cudnnTransformTensorEx(handle, dx_fold, &one, d.x, oracle_device(oracle, "dx"), &zero,
                                  dx, dx_memory));
  SUCCEEDS(cudnnTransformTensorEx(handle, dx_unfold, &one, dx, dx_memory, &zero, d.x, again));
  cudaMemcpy(oracle_device(oracle, "dx"), again, bytes_of(d.x), cudaMemcpyDeviceToDevice);
  oracle_check(oracle);
  ANSWERS(CUDNN_STATUS_BAD_PARAM, cudnnGetFoldedConvBackwardDataDescriptors(
                                      handle, d.w, d.y, d.conv, d.x, format, filter, dy, conv, dx,
                                      filter_fold, dy_pad, dx_fold, NULL));
  ANSWERS(CUDNN_STATUS_BAD_PARAM, cudnnGetFoldedConvBackwardDataDescriptors(
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
int main(void) {
  const struct {
    Shape shape;
    int stride;
  } cases[] = {
      {{"f32", 0, 2, 2, 3, 4, 1, {9, 8}, {3, 3}, {1, 1}, {2, 2}, {1, 1}, CROSS, 1, 0}, 1},
      /* Rows that no result reaches, and a filter as long as the stride. */
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
      /* What does not fold stays as it is. */
      {{"f32", 1, 2, 1, 4, 4, 2, {9, 11}, {2, 3}, {0, 2}, {2, 3}, {1, 1}, CROSS, 1, 0}, 2},
      {{"f32", 0, 2, 1, 2, 3, 1, {9, 9}, {3, 3}, {1, 1}, {2, 2}, {2, 1}, CROSS, 1, 0}, 2},
      {{"f32", 0, 2, 1, 2, 3, 1, {8, 9}, {3, 2}, {1, 1}, {2, 2}, {1, 1}, CUDNN_CONVOLUTION, 1, 0},
       2},
  };
  SUCCEEDS(cudnnCreate(&handle));
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i)
    test_folding(&cases[i].shape, cases[i].stride);
  SUCCEEDS(cudnnDestroy(handle));
  return failures;
}

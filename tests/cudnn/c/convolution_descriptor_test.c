/* Convolution descriptors: set and get, output dims, and rejections. */
#include "oracle.h"

static void test_image(void) {
  cudnnConvolutionDescriptor_t conv;
  SUCCEEDS(cudnnCreateConvolutionDescriptor(&conv));
  int value[6] = {0}, rank = 0, groups = 0;
  cudnnConvolutionMode_t mode = CUDNN_CONVOLUTION;
  cudnnDataType_t compute = CUDNN_DATA_HALF;
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnGetConvolution2dDescriptor(conv, value, value + 1, value + 2, value + 3, value + 4,
                                          value + 5, &mode, &compute));
  SUCCEEDS(cudnnSetConvolution2dDescriptor(conv, 1, 2, 3, 4, 5, 6, CUDNN_CROSS_CORRELATION,
                                           CUDNN_DATA_FLOAT));
  SUCCEEDS(cudnnGetConvolution2dDescriptor(conv, value, value + 1, value + 2, value + 3, value + 4,
                                           value + 5, &mode, &compute));
  for (int i = 0; i < 6; ++i) CHECK(value[i] == i + 1);
  CHECK(mode == CUDNN_CROSS_CORRELATION && compute == CUDNN_DATA_FLOAT);

  int pads[3] = {0}, strides[3] = {0}, dilations[3] = {0, 0, 7};
  SUCCEEDS(
      cudnnGetConvolutionNdDescriptor(conv, 3, &rank, pads, strides, dilations, &mode, &compute));
  CHECK(rank == 2 && pads[1] == 2 && strides[0] == 3 && dilations[1] == 6 && dilations[2] == 0);

  cudnnMathType_t math = CUDNN_FMA_MATH;
  cudnnReorderType_t reordering = CUDNN_NO_REORDER;
  SUCCEEDS(cudnnGetConvolutionMathType(conv, &math));
  SUCCEEDS(cudnnGetConvolutionReorderType(conv, &reordering));
  SUCCEEDS(cudnnGetConvolutionGroupCount(conv, &groups));
  CHECK(math == CUDNN_DEFAULT_MATH && reordering == CUDNN_DEFAULT_REORDER && groups == 1);
  SUCCEEDS(cudnnSetConvolutionMathType(conv, CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION));
  SUCCEEDS(cudnnSetConvolutionReorderType(conv, CUDNN_NO_REORDER));
  SUCCEEDS(cudnnSetConvolutionGroupCount(conv, 4));
  SUCCEEDS(cudnnGetConvolutionMathType(conv, &math));
  SUCCEEDS(cudnnGetConvolutionReorderType(conv, &reordering));
  SUCCEEDS(cudnnGetConvolutionGroupCount(conv, &groups));
  CHECK(math == CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION);
  CHECK(reordering == CUDNN_NO_REORDER && groups == 4);
  SUCCEEDS(cudnnDestroyConvolutionDescriptor(conv));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnSetConvolutionGroupCount(conv, 1));
}

static void test_misuse(void) {
  cudnnConvolutionDescriptor_t conv;
  const int ones[6] = {1, 1, 1, 1, 1, 1}, zeros[6] = {0};
  int value = 0;
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnCreateConvolutionDescriptor(NULL));
  SUCCEEDS(cudnnCreateConvolutionDescriptor(&conv));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnSetConvolution2dDescriptor(
                                      NULL, 0, 0, 1, 1, 1, 1, CUDNN_CONVOLUTION, CUDNN_DATA_FLOAT));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnSetConvolution2dDescriptor(conv, -1, 0, 1, 1, 1, 1, CUDNN_CONVOLUTION,
                                          CUDNN_DATA_FLOAT));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnSetConvolution2dDescriptor(
                                      conv, 0, 0, 0, 1, 1, 1, CUDNN_CONVOLUTION, CUDNN_DATA_FLOAT));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnSetConvolution2dDescriptor(
                                      conv, 0, 0, 1, 1, 1, 0, CUDNN_CONVOLUTION, CUDNN_DATA_FLOAT));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnSetConvolution2dDescriptor(conv, 0, 0, 1, 1, 1, 1, (cudnnConvolutionMode_t)7,
                                          CUDNN_DATA_FLOAT));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnSetConvolution2dDescriptor(conv, 0, 0, 1, 1, 1, 1, CUDNN_CONVOLUTION,
                                          (cudnnDataType_t)77));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnSetConvolutionNdDescriptor(conv, 0, zeros, ones, ones, CUDNN_CONVOLUTION,
                                          CUDNN_DATA_FLOAT));
  RETURNS(CUDNN_STATUS_NOT_SUPPORTED,
          cudnnSetConvolutionNdDescriptor(conv, 7, zeros, ones, ones, CUDNN_CONVOLUTION,
                                          CUDNN_DATA_FLOAT));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnSetConvolutionNdDescriptor(conv, 2, zeros, NULL, ones, CUDNN_CONVOLUTION,
                                          CUDNN_DATA_FLOAT));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnSetConvolutionGroupCount(conv, 0));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnSetConvolutionMathType(conv, (cudnnMathType_t)9));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnSetConvolutionReorderType(conv, (cudnnReorderType_t)9));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnGetConvolutionGroupCount(conv, NULL));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnGetConvolutionGroupCount(NULL, &value));
  SUCCEEDS(cudnnDestroyConvolutionDescriptor(conv));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnDestroyConvolutionDescriptor(conv));
  SUCCEEDS(cudnnDestroyConvolutionDescriptor(NULL));
}

static void test_output_dims(void) {
  cudnnConvolutionDescriptor_t conv;
  cudnnTensorDescriptor_t x;
  cudnnFilterDescriptor_t w;
  int n = 0, c = 0, h = 0, width = 0, dims[5] = {0};
  SUCCEEDS(cudnnCreateConvolutionDescriptor(&conv));
  SUCCEEDS(cudnnCreateTensorDescriptor(&x));
  SUCCEEDS(cudnnCreateFilterDescriptor(&w));
  SUCCEEDS(cudnnSetTensor4dDescriptor(x, CUDNN_TENSOR_NHWC, CUDNN_DATA_HALF, 5, 12, 30, 17));
  SUCCEEDS(cudnnSetFilter4dDescriptor(w, CUDNN_DATA_HALF, CUDNN_TENSOR_NHWC, 6, 4, 3, 5));
  SUCCEEDS(cudnnSetConvolution2dDescriptor(conv, 1, 2, 2, 3, 2, 1, CUDNN_CROSS_CORRELATION,
                                           CUDNN_DATA_FLOAT));
  /* 12 channels with a filter of 4: the group count is missing. */
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnGetConvolution2dForwardOutputDim(conv, x, w, &n, &c, &h, &width));
  SUCCEEDS(cudnnSetConvolutionGroupCount(conv, 3));
  SUCCEEDS(cudnnGetConvolution2dForwardOutputDim(conv, x, w, &n, &c, &h, &width));
  CHECK(n == 5 && c == 6 && h == 14 && width == 6);
  SUCCEEDS(cudnnGetConvolutionNdForwardOutputDim(conv, x, w, 4, dims));
  CHECK(dims[0] == 5 && dims[1] == 6 && dims[2] == 14 && dims[3] == 6);
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnGetConvolutionNdForwardOutputDim(conv, x, w, 5, dims));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnGetConvolutionNdForwardOutputDim(conv, x, w, 4, NULL));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnGetConvolution2dForwardOutputDim(conv, x, w, &n, &c, NULL, &width));
  /* A filter larger than the padded image. */
  SUCCEEDS(cudnnSetFilter4dDescriptor(w, CUDNN_DATA_HALF, CUDNN_TENSOR_NHWC, 6, 4, 3, 22));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnGetConvolution2dForwardOutputDim(conv, x, w, &n, &c, &h, &width));
  /* Three spatial axes, then a call with a 2-d image. */
  const int x_dims[] = {1, 2, 8, 9, 10}, w_dims[] = {4, 2, 1, 2, 3}, pads[] = {0, 1, 1},
            strides[] = {2, 1, 3}, dilations[] = {1, 2, 1};
  SUCCEEDS(cudnnSetConvolutionGroupCount(conv, 1));
  SUCCEEDS(cudnnSetTensorNdDescriptorEx(x, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 5, x_dims));
  SUCCEEDS(cudnnSetFilterNdDescriptor(w, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 5, w_dims));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnGetConvolutionNdForwardOutputDim(conv, x, w, 5, dims));
  SUCCEEDS(cudnnSetConvolutionNdDescriptor(conv, 3, pads, strides, dilations,
                                           CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  SUCCEEDS(cudnnGetConvolutionNdForwardOutputDim(conv, x, w, 5, dims));
  CHECK(dims[0] == 1 && dims[1] == 4 && dims[2] == 4 && dims[3] == 9 && dims[4] == 4);
  SUCCEEDS(cudnnDestroyConvolutionDescriptor(conv));
  SUCCEEDS(cudnnDestroyTensorDescriptor(x));
  SUCCEEDS(cudnnDestroyFilterDescriptor(w));
}

int main(void) {
  test_image();
  test_misuse();
  test_output_dims();
  return failures;
}

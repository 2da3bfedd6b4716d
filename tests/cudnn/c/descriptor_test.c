/* Tensor and filter descriptors: set and get in every layout, and misuse. */
#include <limits.h>

#include "oracle.h"

typedef struct {
  cudnnDataType_t type;
  int rank, dims[8], strides[8];
} TensorFields;

static int fields_match(cudnnTensorDescriptor_t tensor, const TensorFields* expected,
                        size_t expected_bytes) {
  TensorFields reported = {CUDNN_DATA_FLOAT, 0, {0}, {0}};
  size_t bytes = 0;
  SUCCEEDS(cudnnGetTensorNdDescriptor(tensor, 8, &reported.type, &reported.rank, reported.dims,
                                      reported.strides));
  SUCCEEDS(cudnnGetTensorSizeInBytes(tensor, &bytes));
  int same =
      reported.type == expected->type && reported.rank == expected->rank && bytes == expected_bytes;
  for (int axis = 0; axis < expected->rank; ++axis)
    same = same && reported.dims[axis] == expected->dims[axis] &&
           reported.strides[axis] == expected->strides[axis];
  return same;
}

static void layouts(void) {
  cudnnTensorDescriptor_t tensor = NULL;
  SUCCEEDS(cudnnCreateTensorDescriptor(&tensor));

  const TensorFields nchw = {CUDNN_DATA_HALF, 4, {2, 3, 5, 7}, {105, 35, 7, 1}};
  SUCCEEDS(cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_HALF, 2, 3, 5, 7));
  CHECK(fields_match(tensor, &nchw, 420));
  const TensorFields nhwc = {CUDNN_DATA_DOUBLE, 4, {2, 3, 5, 7}, {105, 1, 21, 3}};
  SUCCEEDS(cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NHWC, CUDNN_DATA_DOUBLE, 2, 3, 5, 7));
  CHECK(fields_match(tensor, &nhwc, 1680));
  /* Strides of x4 and x32 types count vectors. */
  const TensorFields x4 = {CUDNN_DATA_INT8x4, 4, {2, 8, 5, 7}, {70, 35, 7, 1}};
  SUCCEEDS(
      cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW_VECT_C, CUDNN_DATA_INT8x4, 2, 8, 5, 7));
  CHECK(fields_match(tensor, &x4, 560));
  /* With explicit strides every channel counts as a vector. */
  SUCCEEDS(cudnnSetTensorNdDescriptor(tensor, CUDNN_DATA_INT8x4, 4, x4.dims, x4.strides));
  CHECK(fields_match(tensor, &x4, 1400));
  const TensorFields x32 = {CUDNN_DATA_INT8x32, 5, {2, 64, 3, 5, 7}, {210, 105, 35, 7, 1}};
  SUCCEEDS(cudnnSetTensorNdDescriptorEx(tensor, CUDNN_TENSOR_NCHW_VECT_C, CUDNN_DATA_INT8x32, 5,
                                        x32.dims));
  CHECK(fields_match(tensor, &x32, 2 * 210 * 32));
  const TensorFields unsigned_x4 = {CUDNN_DATA_UINT8x4, 4, {1, 4, 2, 2}, {4, 4, 2, 1}};
  SUCCEEDS(
      cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW_VECT_C, CUDNN_DATA_UINT8x4, 1, 4, 2, 2));
  CHECK(fields_match(tensor, &unsigned_x4, 16));
  const TensorFields ncdhw = {CUDNN_DATA_FLOAT, 5, {2, 3, 4, 5, 6}, {360, 120, 30, 6, 1}};
  SUCCEEDS(
      cudnnSetTensorNdDescriptorEx(tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 5, ncdhw.dims));
  CHECK(fields_match(tensor, &ncdhw, 2880));
  const TensorFields ndhwc = {CUDNN_DATA_BFLOAT16, 5, {2, 3, 4, 5, 6}, {360, 1, 90, 18, 3}};
  SUCCEEDS(
      cudnnSetTensorNdDescriptorEx(tensor, CUDNN_TENSOR_NHWC, CUDNN_DATA_BFLOAT16, 5, ndhwc.dims));
  CHECK(fields_match(tensor, &ndhwc, 1440));
  /* With padding, the size ends after the last element. */
  const TensorFields padded = {CUDNN_DATA_FLOAT, 4, {2, 2, 2, 2}, {100, 40, 10, 3}};
  SUCCEEDS(cudnnSetTensor4dDescriptorEx(tensor, CUDNN_DATA_FLOAT, 2, 2, 2, 2, 100, 40, 10, 3));
  CHECK(fields_match(tensor, &padded, 4 * (100 + 40 + 10 + 3 + 1)));
  const TensorFields eight = {
      CUDNN_DATA_INT64, 8, {1, 2, 1, 2, 1, 2, 1, 2}, {16, 8, 8, 4, 4, 2, 2, 1}};
  SUCCEEDS(cudnnSetTensorNdDescriptor(tensor, CUDNN_DATA_INT64, 8, eight.dims, eight.strides));
  CHECK(fields_match(tensor, &eight, 128));
  const TensorFields one = {CUDNN_DATA_FLOAT, 1, {9}, {2}};
  SUCCEEDS(cudnnSetTensorNdDescriptor(tensor, CUDNN_DATA_FLOAT, 1, one.dims, one.strides));
  CHECK(fields_match(tensor, &one, 4 * 17));
  SUCCEEDS(cudnnDestroyTensorDescriptor(tensor));
}

static void fewer_than_there_are(void) {
  cudnnTensorDescriptor_t tensor = NULL;
  SUCCEEDS(cudnnCreateTensorDescriptor(&tensor));
  SUCCEEDS(cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 2, 3, 5, 7));
  cudnnDataType_t type;
  int rank = 0, dims[4] = {-1, -1, -1, -1}, strides[4] = {-1, -1, -1, -1};
  SUCCEEDS(cudnnGetTensorNdDescriptor(tensor, 2, &type, &rank, dims, strides));
  CHECK(rank == 4 && dims[0] == 2 && dims[1] == 3 && dims[2] == -1 && strides[1] == 35 &&
        strides[2] == -1);
  SUCCEEDS(cudnnGetTensorNdDescriptor(tensor, 0, &type, &rank, NULL, NULL));
  CHECK(rank == 4);
  int n, c, h, w, stride_n, stride_c, stride_h, stride_w;
  SUCCEEDS(cudnnGetTensor4dDescriptor(tensor, &type, &n, &c, &h, &w, &stride_n, &stride_c,
                                      &stride_h, &stride_w));
  CHECK(n == 2 && c == 3 && h == 5 && w == 7 && stride_n == 105 && stride_c == 35 &&
        stride_h == 7 && stride_w == 1 && type == CUDNN_DATA_FLOAT);
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnGetTensor4dDescriptor(tensor, &type, &n, &c, NULL, &w, &stride_n, &stride_c,
                                     &stride_h, &stride_w));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnGetTensorNdDescriptor(tensor, -1, &type, &rank, dims, strides));
  /* The first four axes of five, or three axes and a zero. */
  const int five[5] = {1, 2, 3, 4, 5}, five_strides[5] = {120, 60, 20, 5, 1};
  SUCCEEDS(cudnnSetTensorNdDescriptor(tensor, CUDNN_DATA_FLOAT, 5, five, five_strides));
  SUCCEEDS(cudnnGetTensor4dDescriptor(tensor, &type, &n, &c, &h, &w, &stride_n, &stride_c,
                                      &stride_h, &stride_w));
  CHECK(n == 1 && c == 2 && h == 3 && w == 4 && stride_n == 120 && stride_w == 5);
  SUCCEEDS(cudnnSetTensorNdDescriptor(tensor, CUDNN_DATA_FLOAT, 3, five, five_strides));
  SUCCEEDS(cudnnGetTensor4dDescriptor(tensor, &type, &n, &c, &h, &w, &stride_n, &stride_c,
                                      &stride_h, &stride_w));
  CHECK(h == 3 && w == 0 && stride_h == 20 && stride_w == 0);
  SUCCEEDS(cudnnDestroyTensorDescriptor(tensor));
}

static void misuse(void) {
  cudnnTensorDescriptor_t tensor = NULL;
  size_t bytes = 0;
  const int ones[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1}, zero[4] = {1, 0, 1, 1},
            negative[4] = {1, -1, 1, 1}, huge[8] = {INT_MAX, INT_MAX, INT_MAX, INT_MAX, 1, 1, 1, 1};
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnCreateTensorDescriptor(NULL));
  SUCCEEDS(cudnnCreateTensorDescriptor(&tensor));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnGetTensorSizeInBytes(tensor, &bytes)); /* never set */
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 0, 1, 1));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnSetTensor4dDescriptor(tensor, (cudnnTensorFormat_t)3, CUDNN_DATA_FLOAT, 1, 1, 1, 1));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, (cudnnDataType_t)22, 1, 1, 1, 1));
  RETURNS(CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE,
          cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FAST_FLOAT_FOR_FP8, 1, 1,
                                     1, 1));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_INT8x4, 1, 4, 1, 1));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW_VECT_C,
                                                             CUDNN_DATA_INT8, 1, 4, 1, 1));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW_VECT_C,
                                                             CUDNN_DATA_INT8x32, 1, 4, 1, 1));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnSetTensor4dDescriptorEx(tensor, CUDNN_DATA_FLOAT, 1, 1, 1, 1, 1, 1, 1, -1));
  RETURNS(CUDNN_STATUS_NOT_SUPPORTED,
          cudnnSetTensorNdDescriptor(tensor, CUDNN_DATA_FLOAT, 9, ones, ones));
  RETURNS(CUDNN_STATUS_NOT_SUPPORTED,
          cudnnSetTensorNdDescriptor(tensor, CUDNN_DATA_FLOAT, 0, ones, ones));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnSetTensorNdDescriptor(tensor, CUDNN_DATA_FLOAT, 4, zero, ones));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnSetTensorNdDescriptor(tensor, CUDNN_DATA_FLOAT, 4, ones, negative));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnSetTensorNdDescriptor(tensor, CUDNN_DATA_FLOAT, 8, huge, huge));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnSetTensorNdDescriptorEx(tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 8, huge));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnSetTensorNdDescriptor(tensor, CUDNN_DATA_FLOAT, 4, NULL, ones));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnSetTensorNdDescriptor(tensor, CUDNN_DATA_FLOAT, 4, ones, NULL));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnGetTensorSizeInBytes(tensor, &bytes)); /* still not set */
  SUCCEEDS(cudnnDestroyTensorDescriptor(tensor));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnDestroyTensorDescriptor(tensor));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnGetTensorSizeInBytes(tensor, &bytes));
  SUCCEEDS(cudnnDestroyTensorDescriptor(NULL));
}

static void filters(void) {
  cudnnFilterDescriptor_t filter = NULL;
  cudnnDataType_t type;
  cudnnTensorFormat_t format;
  int k, c, h, w, rank = 0, dims[5] = {-1, -1, -1, -1, -1};
  size_t bytes = 0;
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnCreateFilterDescriptor(NULL));
  SUCCEEDS(cudnnCreateFilterDescriptor(&filter));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnGetFilterSizeInBytes(filter, &bytes));
  SUCCEEDS(cudnnSetFilter4dDescriptor(filter, CUDNN_DATA_HALF, CUDNN_TENSOR_NHWC, 6, 5, 3, 2));
  SUCCEEDS(cudnnGetFilter4dDescriptor(filter, &type, &format, &k, &c, &h, &w));
  CHECK(type == CUDNN_DATA_HALF && format == CUDNN_TENSOR_NHWC && k == 6 && c == 5 && h == 3 &&
        w == 2);
  SUCCEEDS(cudnnGetFilterSizeInBytes(filter, &bytes));
  CHECK(bytes == 360);
  SUCCEEDS(cudnnGetFilterNdDescriptor(filter, 3, &type, &format, &rank, dims));
  CHECK(rank == 4 && dims[0] == 6 && dims[2] == 3 && dims[3] == -1);
  const int five[5] = {4, 32, 3, 3, 3};
  SUCCEEDS(
      cudnnSetFilterNdDescriptor(filter, CUDNN_DATA_INT8x32, CUDNN_TENSOR_NCHW_VECT_C, 5, five));
  SUCCEEDS(cudnnGetFilterSizeInBytes(filter, &bytes));
  CHECK(bytes == 4 * 32 * 27);
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnGetFilter4dDescriptor(filter, &type, &format, &k, &c, &h, &w));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnSetFilter4dDescriptor(filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 0, 1, 1, 1));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnSetFilterNdDescriptor(filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 4, NULL));
  RETURNS(CUDNN_STATUS_NOT_SUPPORTED,
          cudnnSetFilterNdDescriptor(filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 9, five));
  /* A tensor descriptor is not a filter descriptor. */
  cudnnTensorDescriptor_t tensor = NULL;
  SUCCEEDS(cudnnCreateTensorDescriptor(&tensor));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnGetFilterSizeInBytes((cudnnFilterDescriptor_t)(void*)tensor, &bytes));
  SUCCEEDS(cudnnDestroyTensorDescriptor(tensor));
  SUCCEEDS(cudnnDestroyFilterDescriptor(filter));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnGetFilterSizeInBytes(filter, &bytes));
}

int main(void) {
  layouts();
  fewer_than_there_are();
  misuse();
  filters();
  return failures;
}

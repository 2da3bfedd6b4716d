/* cudnnTransformTensor, cudnnTransformTensorEx, cudnnTransformFilter, cudnnInitTransformDest. */
#include <string.h>

#include "oracle.h"

static cudnnHandle_t handle;
static const float one = 1.0F, zero = 0.0F;

/* Between the variant's layout and another one, also of another type. */
static void change_layout(const Variant* variant, const char* to_dtype) {
  Oracle* oracle = oracle_variant(
      variant,
      GRAPH(TENSOR("input", "x", "[2,3,5,4]") ","
                                              "{'name':'before','kind':'input','dtype':'%s','dims':"
                                              "[2,3,5,4],'strides':[80,4,14,1]},"
                                              "{'name':'y','kind':'output','dtype':'%s','dims':[2,"
                                              "3,5,4],'strides':[80,4,14,1]}",
            BLEND("x", "before", "y")),
      to_dtype, to_dtype);
  oracle_before(oracle, variant, "before", "y");
  SUCCEEDS(cudnnTransformTensor(handle, factor_of(variant, variant->alpha),
                                oracle_tensor(oracle, "x"), oracle_device(oracle, "x"),
                                factor_of(variant, variant->beta), oracle_tensor(oracle, "y"),
                                oracle_device(oracle, "y")));
  oracle_check(oracle);
  oracle_destroy(oracle);
}

/* Channels to vectors of `width` and back: checks the vectorised layout and the round trip. */
static void vectors(cudnnDataType_t type, int width) {
  enum { N = 2, C = 64, H = 3, W = 5, ELEMENTS = N * C * H * W };
  static signed char plain[ELEMENTS], packed[ELEMENTS], again[ELEMENTS];
  for (int i = 0; i < ELEMENTS; ++i) plain[i] = (signed char)(i * 31 % 251 - 125);
  void *device_plain = device_copy(plain, sizeof plain),
       *device_packed = device_memory(sizeof packed), *device_again = device_memory(sizeof again);
  cudnnTensorDescriptor_t from = NULL, to = NULL;
  SUCCEEDS(cudnnCreateTensorDescriptor(&from));
  SUCCEEDS(cudnnCreateTensorDescriptor(&to));
  const cudnnDataType_t plain_type =
      type == CUDNN_DATA_UINT8x4 ? CUDNN_DATA_UINT8 : CUDNN_DATA_INT8;
  SUCCEEDS(cudnnSetTensor4dDescriptor(from, CUDNN_TENSOR_NCHW, plain_type, N, C, H, W));
  SUCCEEDS(cudnnSetTensor4dDescriptor(to, CUDNN_TENSOR_NCHW_VECT_C, type, N, C, H, W));
  SUCCEEDS(cudnnTransformTensor(handle, &one, from, device_plain, &zero, to, device_packed));
  SUCCEEDS(cudnnTransformTensor(handle, &one, to, device_packed, &zero, from, device_again));
  CHECK(cudaMemcpy(packed, device_packed, sizeof packed, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(cudaMemcpy(again, device_again, sizeof again, cudaMemcpyDeviceToHost) == cudaSuccess);
  int wrong = 0;
  for (int n = 0; n < N; ++n)
    for (int c = 0; c < C; ++c)
      for (int i = 0; i < H * W; ++i)
        wrong += packed[((n * (C / width) + c / width) * H * W + i) * width + c % width] !=
                 plain[(n * C + c) * H * W + i];
  CHECK(wrong == 0);
  CHECK(memcmp(plain, again, sizeof plain) == 0);
  SUCCEEDS(cudnnDestroyTensorDescriptor(from));
  SUCCEEDS(cudnnDestroyTensorDescriptor(to));
  cudaFree(device_plain);
  cudaFree(device_packed);
  cudaFree(device_again);
}

/* Padding and folding, unfolding and padding, by one tensor_transform node or two; negative pads
 * crop. */
static const struct {
  const char *from, *to, *attributes, *then;
  int32_t before[4], after[4];
  uint32_t folds[2];
  cudnnFoldingDirection_t direction;
} moves[] = {
    {"[2,3,6,8]",
     "[2,12,3,4]",
     "'fold':[2,2]",
     NULL,
     {0, 0, 0, 0},
     {0, 0, 0, 0},
     {2, 2},
     CUDNN_TRANSFORM_FOLD},
    {"[2,3,5,6]",
     "[2,24,3,2]",
     "'fold':[2,4],'pad_before':[0,0,1,0],'pad_after':[0,0,0,2]",
     NULL,
     {0, 0, 1, 0},
     {0, 0, 0, 2},
     {2, 4},
     CUDNN_TRANSFORM_FOLD},
    {"[2,12,3,4]",
     "[2,3,6,8]",
     "'fold':[2,2],'unfold':true",
     NULL,
     {0, 0, 0, 0},
     {0, 0, 0, 0},
     {2, 2},
     CUDNN_TRANSFORM_UNFOLD},
    {"[2,12,3,4]",
     "[2,3,5,6]",
     "'fold':[2,2],'unfold':true,'pad_before':[0,0,1,0],'pad_after':[0,0,0,2]",
     NULL,
     {0, 0, -1, 0},
     {0, 0, 0, -2},
     {2, 2},
     CUDNN_TRANSFORM_UNFOLD},
    {"[1,3,4,5]",
     "[2,8,7,8]",
     "'pad_before':[1,2,3,1],'pad_after':[0,3,0,2]",
     NULL,
     {1, 2, 3, 1},
     {0, 3, 0, 2},
     {1, 1},
     CUDNN_TRANSFORM_FOLD},
    {"[2,12,3,4]",
     "[2,3,7,9]",
     "'fold':[2,2],'unfold':true,'pad_after':[0,0,0,1]",
     "'pad_before':[0,0,1,2]",
     {0, 0, 1, 2},
     {0, 0, 0, -1},
     {2, 2},
     CUDNN_TRANSFORM_UNFOLD},
    {"[2,3,7,7]",
     "[2,12,3,4]",
     "'unfold':true,'pad_before':[0,0,1,0]",
     "'fold':[2,2],'pad_after':[0,0,0,1]",
     {0, 0, -1, 0},
     {0, 0, 0, 1},
     {2, 2},
     CUDNN_TRANSFORM_FOLD},
    /* An extent that is not a multiple of its fold is zero-padded. */
    {"[2,3,5,8]",
     "[2,18,3,3]",
     "'fold':[2,3],'pad_after':[0,0,1,1]",
     NULL,
     {0, 0, 0, 0},
     {0, 0, 0, 0},
     {2, 3},
     CUDNN_TRANSFORM_FOLD},
};
enum { MOVES = sizeof moves / sizeof *moves };

static cudnnTensorTransformDescriptor_t transform(int move, cudnnTensorFormat_t format) {
  cudnnTensorTransformDescriptor_t descriptor = NULL;
  SUCCEEDS(cudnnCreateTensorTransformDescriptor(&descriptor));
  SUCCEEDS(cudnnSetTensorTransformDescriptor(descriptor, 4, format, moves[move].before,
                                             moves[move].after, moves[move].folds,
                                             moves[move].direction));
  return descriptor;
}

static int same_tensors(cudnnTensorDescriptor_t a, cudnnTensorDescriptor_t b) {
  int rank[2], dims[2][8] = {{0}}, strides[2][8] = {{0}};
  cudnnDataType_t types[2];
  SUCCEEDS(cudnnGetTensorNdDescriptor(a, 8, &types[0], &rank[0], dims[0], strides[0]));
  SUCCEEDS(cudnnGetTensorNdDescriptor(b, 8, &types[1], &rank[1], dims[1], strides[1]));
  return types[0] == types[1] && rank[0] == rank[1] &&
         memcmp(dims[0], dims[1], sizeof dims[0]) == 0 &&
         memcmp(strides[0], strides[1], sizeof strides[0]) == 0;
}

static void move_elements(int move, const Variant* variant) {
  Oracle* oracle = oracle_variant(
      variant,
      GRAPH(TENSOR("input", "x", "%s") "," TENSOR("input", "before", "%s") "," VIRTUAL(
                "moved") "," VIRTUAL("f") "," TENSOR("output", "y", "%s"),
            "{'op':'tensor_transform','inputs':{'x':'x'},'outputs':{'y':'moved'},"
            "'attributes':{%s}},"
            "{'op':'tensor_transform','inputs':{'x':'moved'},'outputs':{'y':'f'},"
            "'attributes':{%s}}," BLEND("f", "before", "y")),
      moves[move].from, moves[move].to, moves[move].to, moves[move].attributes,
      moves[move].then != NULL ? moves[move].then : "");
  const int is_nhwc = strcmp(variant->layout, "channels_last") == 0;
  cudnnTensorTransformDescriptor_t how =
      transform(move, is_nhwc ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW);
  cudnnTensorDescriptor_t to = NULL;
  size_t bytes = 0;
  SUCCEEDS(cudnnCreateTensorDescriptor(&to));
  SUCCEEDS(cudnnInitTransformDest(how, oracle_tensor(oracle, "x"), to, &bytes));
  CHECK(bytes == oracle_bytes(oracle, "y"));
  CHECK(same_tensors(to, oracle_tensor(oracle, "y")));
  oracle_before(oracle, variant, "before", "y");
  SUCCEEDS(cudnnTransformTensorEx(handle, how, factor_of(variant, variant->alpha),
                                  oracle_tensor(oracle, "x"), oracle_device(oracle, "x"),
                                  factor_of(variant, variant->beta), to,
                                  oracle_device(oracle, "y")));
  oracle_check(oracle);
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnTransformTensorEx(handle, how, NULL, oracle_tensor(oracle, "x"),
                                 oracle_device(oracle, "x"), NULL, oracle_tensor(oracle, "x"),
                                 oracle_device(oracle, "y")));
  SUCCEEDS(cudnnDestroyTensorDescriptor(to));
  SUCCEEDS(cudnnDestroyTensorTransformDescriptor(how));
  oracle_destroy(oracle);
}

/* A filter from KCRS to KRSC, padded. */
static void move_filter(void) {
  const int from_dims[4] = {1, 3, 4, 5}, to_dims[4] = {2, 8, 7, 8};
  Oracle* oracle = oracle_graph(
      GRAPH("{'name':'w','kind':'input','dtype':'f32','dims':[1,3,4,5]},"
            "{'name':'v','kind':'output','dtype':'f32','dims':[2,8,7,8],'layout':'channels_last'}",
            "{'op':'tensor_transform','inputs':{'x':'w'},'outputs':{'y':'v'},"
            "'attributes':{'pad_before':[1,2,3,1],'pad_after':[0,3,0,2],'alpha':0.5}}"));
  const float half = 0.5F;
  cudnnFilterDescriptor_t from = NULL, to = NULL;
  SUCCEEDS(cudnnCreateFilterDescriptor(&from));
  SUCCEEDS(cudnnCreateFilterDescriptor(&to));
  SUCCEEDS(cudnnSetFilterNdDescriptor(from, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 4, from_dims));
  SUCCEEDS(cudnnSetFilterNdDescriptor(to, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NHWC, 4, to_dims));
  cudnnTensorTransformDescriptor_t how = transform(4, CUDNN_TENSOR_NHWC);
  SUCCEEDS(cudnnTransformFilter(handle, how, &half, from, oracle_device(oracle, "w"), &zero, to,
                                oracle_device(oracle, "v")));
  oracle_check(oracle);
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnTransformFilter(handle, how, &half, from, NULL, NULL, to,
                                                       oracle_device(oracle, "v")));
  SUCCEEDS(cudnnDestroyTensorTransformDescriptor(how));
  SUCCEEDS(cudnnDestroyFilterDescriptor(from));
  SUCCEEDS(cudnnDestroyFilterDescriptor(to));
  oracle_destroy(oracle);
}

static void destinations(void) {
  cudnnTensorTransformDescriptor_t how = NULL;
  cudnnTensorDescriptor_t from = NULL, to = NULL, expected = NULL;
  size_t bytes = 0;
  const int32_t after[4] = {0, 1, 0, 0};
  SUCCEEDS(cudnnCreateTensorTransformDescriptor(&how));
  SUCCEEDS(cudnnCreateTensorDescriptor(&from));
  SUCCEEDS(cudnnCreateTensorDescriptor(&to));
  SUCCEEDS(cudnnCreateTensorDescriptor(&expected));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnInitTransformDest(how, from, to, &bytes));
  SUCCEEDS(cudnnSetTensorTransformDescriptor(how, 4, CUDNN_TENSOR_NCHW_VECT_C, NULL, after, NULL,
                                             CUDNN_TRANSFORM_FOLD));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnInitTransformDest(how, from, to, &bytes));
  SUCCEEDS(cudnnSetTensor4dDescriptor(from, CUDNN_TENSOR_NHWC, CUDNN_DATA_INT8, 2, 3, 5, 5));
  SUCCEEDS(cudnnInitTransformDest(how, from, to, &bytes));
  SUCCEEDS(cudnnSetTensor4dDescriptor(expected, CUDNN_TENSOR_NCHW_VECT_C, CUDNN_DATA_INT8x4, 2, 4,
                                      5, 5));
  CHECK(bytes == 200 && same_tensors(to, expected));
  SUCCEEDS(cudnnSetTensor4dDescriptor(from, CUDNN_TENSOR_NHWC, CUDNN_DATA_INT8, 2, 31, 5, 5));
  SUCCEEDS(cudnnInitTransformDest(how, from, to, &bytes));
  SUCCEEDS(cudnnSetTensor4dDescriptor(expected, CUDNN_TENSOR_NCHW_VECT_C, CUDNN_DATA_INT8x32, 2, 32,
                                      5, 5));
  CHECK(bytes == 1600 && same_tensors(to, expected));
  SUCCEEDS(cudnnSetTensor4dDescriptor(from, CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, 2, 31, 5, 5));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnInitTransformDest(how, from, to, &bytes));
  const uint32_t folds[2] = {2, 1}, none[2] = {0, 1};
  SUCCEEDS(cudnnSetTensorTransformDescriptor(how, 4, CUDNN_TENSOR_NCHW, NULL, NULL, folds,
                                             CUDNN_TRANSFORM_FOLD));
  SUCCEEDS(cudnnInitTransformDest(how, from, to, &bytes));
  CHECK(bytes == 4 * 2 * 62 * 3 * 5); /* the half block at the end counts */
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnSetTensorTransformDescriptor(how, 4, CUDNN_TENSOR_NCHW, NULL, NULL, none,
                                            CUDNN_TRANSFORM_FOLD));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnSetTensorTransformDescriptor(how, 2, CUDNN_TENSOR_NCHW, NULL, NULL, NULL,
                                            CUDNN_TRANSFORM_FOLD));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnInitTransformDest(how, from, to, NULL));

  cudnnTensorFormat_t format;
  cudnnFoldingDirection_t direction;
  int32_t pads_before[4], pads_after[4];
  uint32_t reported[2] = {9, 9};
  SUCCEEDS(cudnnSetTensorTransformDescriptor(how, 4, CUDNN_TENSOR_NHWC, moves[1].before,
                                             moves[1].after, moves[1].folds,
                                             CUDNN_TRANSFORM_UNFOLD));
  SUCCEEDS(cudnnGetTensorTransformDescriptor(how, 4, &format, pads_before, pads_after, reported,
                                             &direction));
  CHECK(format == CUDNN_TENSOR_NHWC && direction == CUDNN_TRANSFORM_UNFOLD);
  CHECK(memcmp(pads_before, moves[1].before, sizeof pads_before) == 0);
  CHECK(memcmp(pads_after, moves[1].after, sizeof pads_after) == 0);
  CHECK(reported[0] == 2 && reported[1] == 4);
  SUCCEEDS(cudnnDestroyTensorDescriptor(from));
  SUCCEEDS(cudnnDestroyTensorDescriptor(to));
  SUCCEEDS(cudnnDestroyTensorDescriptor(expected));
  SUCCEEDS(cudnnDestroyTensorTransformDescriptor(how));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnDestroyTensorTransformDescriptor(how));
}

int main(void) {
  SUCCEEDS(cudnnCreate(&handle));
  for (int v = 0; v < VARIANTS; ++v) {
    change_layout(&variants[v], variants[v].dtype);
    if (strcmp(variants[v].dtype, "f64") != 0) change_layout(&variants[v], "f32");
    for (int move = 0; move < MOVES; ++move) move_elements(move, &variants[v]);
  }
  vectors(CUDNN_DATA_INT8x4, 4);
  vectors(CUDNN_DATA_UINT8x4, 4);
  vectors(CUDNN_DATA_INT8x32, 32);
  move_filter();
  destinations();
  SUCCEEDS(cudnnDestroy(handle));
  return failures;
}

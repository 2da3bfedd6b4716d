/* cudnnOpTensor, cudnnAddTensor, cudnnSetTensor, cudnnScaleTensor. */
#include <math.h>
#include <string.h>

#include "oracle.h"

#define DIMS "[2,3,5,4]"

static cudnnHandle_t handle;
static const float one = 1.0F, zero = 0.0F;

static cudnnDataType_t compute_type(const Variant* variant) {
  return strcmp(variant->dtype, "f64") == 0 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
}

/* Dims of the second operand, which broadcasts. */
static const char* const repeated[] = {DIMS,        "[1,3,1,1]", "[1,1,1,1]", "[1,3,5,4]",
                                       "[2,1,5,1]", "[1,1,5,4]", "[2,3,1,4]"};
enum { REPEATED = sizeof repeated / sizeof *repeated };

static void add_tensor(const char* dims, const Variant* variant) {
  Oracle* oracle =
      oracle_variant(variant,
                     GRAPH(TENSOR("input", "a", "%s") "," TENSOR(
                               "input", "before", DIMS) "," TENSOR("output", "c", DIMS),
                           BLEND("a", "before", "c")),
                     dims);
  if (variant->beta == 0.0) { /* the old contents are not read */
    oracle_destroy(oracle);
    return;
  }
  oracle_before(oracle, variant, "before", "c");
  SUCCEEDS(cudnnAddTensor(handle, factor_of(variant, variant->alpha), oracle_tensor(oracle, "a"),
                          oracle_device(oracle, "a"), factor_of(variant, variant->beta),
                          oracle_tensor(oracle, "c"), oracle_device(oracle, "c")));
  oracle_check(oracle);
  oracle_destroy(oracle);
}

/* With beta 0: c = alpha * a, broadcast. */
static void add_tensor_over_nan(void) {
  const float a[3] = {1.0F, -2.0F, 3.0F}, alpha = 2.0F, beta = 0.0F;
  float c[12];
  void *device_a = device_copy(a, sizeof a), *device_c = device_memory(sizeof c);
  CHECK(cudaMemset(device_c, 0xFF, sizeof c) == cudaSuccess);
  cudnnTensorDescriptor_t a_desc = NULL, c_desc = NULL;
  SUCCEEDS(cudnnCreateTensorDescriptor(&a_desc));
  SUCCEEDS(cudnnCreateTensorDescriptor(&c_desc));
  SUCCEEDS(cudnnSetTensor4dDescriptor(a_desc, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 3, 1, 1));
  SUCCEEDS(cudnnSetTensor4dDescriptor(c_desc, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 2, 3, 1, 2));
  SUCCEEDS(cudnnAddTensor(handle, &alpha, a_desc, device_a, &beta, c_desc, device_c));
  CHECK(cudaMemcpy(c, device_c, sizeof c, cudaMemcpyDeviceToHost) == cudaSuccess);
  for (int i = 0; i < 12; ++i) CHECK(c[i] == 2.0F * a[i / 2 % 3]);

  SUCCEEDS(cudnnSetTensor4dDescriptor(a_desc, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 2, 1, 1));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnAddTensor(handle, &alpha, a_desc, device_a, &beta, c_desc, device_c));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnAddTensor(handle, &alpha, a_desc, NULL, &beta, a_desc, device_c));
  SUCCEEDS(cudnnDestroyTensorDescriptor(a_desc));
  SUCCEEDS(cudnnDestroyTensorDescriptor(c_desc));
  cudaFree(device_a);
  cudaFree(device_c);
}

#define BINARY(mode)                                                                             \
  "{'op':'pointwise','inputs':{'x':'a','b':'b'},'outputs':{'y':'f'},'attributes':{'mode':'" mode \
  "','alpha1':0.5,'alpha2':-1.25}},"
static const struct {
  cudnnOpTensorOp_t op;
  const char* node;
} operations[] = {
    {CUDNN_OP_TENSOR_ADD, BINARY("add")},
    {CUDNN_OP_TENSOR_MUL, BINARY("mul")},
    {CUDNN_OP_TENSOR_MIN, BINARY("min")},
    {CUDNN_OP_TENSOR_MAX, BINARY("max")},
    {CUDNN_OP_TENSOR_SQRT,
     "{'op':'pointwise','inputs':{'x':'a'},'outputs':{'y':'f'},'attributes':{'mode':'sqrt','alpha1'"
     ":0.5}},"
     "{'op':'pointwise','inputs':{'x':'b'},'outputs':{'y':'unused'}},"},
    {CUDNN_OP_TENSOR_NOT,
     "{'op':'pointwise','inputs':{'x':'one','b':'a'},'outputs':{'y':'f'},'attributes':{'mode':'sub'"
     ",'alpha2':0.5}},"
     "{'op':'pointwise','inputs':{'x':'b'},'outputs':{'y':'unused'}},"},
};
enum { OPERATIONS = sizeof operations / sizeof *operations };

static void op_tensor(int operation, const char* b_dims, const Variant* variant, int in_place) {
  char nodes[512];
  snprintf(nodes, sizeof nodes, "%s", operations[operation].node);
  Oracle* oracle = oracle_variant(
      variant,
      GRAPH(TENSOR("input", "a", DIMS) "," TENSOR("input", "b", "%s") "," TENSOR(
                "input", "before",
                DIMS) "," CONSTANT("one", "1") "," VIRTUAL("f") "," TENSOR("output", "c", DIMS),
            "%s" BLEND("f", "before", "c")),
      b_dims, nodes);
  if (operations[operation].op == CUDNN_OP_TENSOR_SQRT) oracle_fill(oracle, "a", 0.25, 4.0);
  cudnnOpTensorDescriptor_t how = NULL;
  SUCCEEDS(cudnnCreateOpTensorDescriptor(&how));
  SUCCEEDS(cudnnSetOpTensorDescriptor(how, operations[operation].op, compute_type(variant),
                                      CUDNN_PROPAGATE_NAN));
  const char* a = in_place ? "c" : "a";
  if (in_place)
    CHECK(cudaMemcpy(oracle_device(oracle, "c"), oracle_host(oracle, "a"),
                     oracle_bytes(oracle, "a"), cudaMemcpyHostToDevice) == cudaSuccess);
  else
    oracle_before(oracle, variant, "before", "c");
  SUCCEEDS(cudnnOpTensor(
      handle, how, factor_of(variant, 0.5), oracle_tensor(oracle, a), oracle_device(oracle, a),
      factor_of(variant, -1.25), oracle_tensor(oracle, "b"), oracle_device(oracle, "b"),
      factor_of(variant, variant->beta), oracle_tensor(oracle, "c"), oracle_device(oracle, "c")));
  oracle_check(oracle);
  SUCCEEDS(cudnnDestroyOpTensorDescriptor(how));
  oracle_destroy(oracle);
}

static void nan_of_maximum(void) {
  const float a[4] = {NAN, 1.0F, NAN, -2.0F}, b[4] = {3.0F, NAN, NAN, 5.0F};
  float c[4];
  void *device_a = device_copy(a, sizeof a), *device_b = device_copy(b, sizeof b),
       *device_c = device_memory(sizeof c);
  cudnnTensorDescriptor_t tensor = NULL;
  cudnnOpTensorDescriptor_t how = NULL;
  SUCCEEDS(cudnnCreateTensorDescriptor(&tensor));
  SUCCEEDS(cudnnCreateOpTensorDescriptor(&how));
  SUCCEEDS(cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 4, 1, 1));
  SUCCEEDS(cudnnSetOpTensorDescriptor(how, CUDNN_OP_TENSOR_MAX, CUDNN_DATA_FLOAT,
                                      CUDNN_NOT_PROPAGATE_NAN));
  SUCCEEDS(cudnnOpTensor(handle, how, &one, tensor, device_a, &one, tensor, device_b, &zero, tensor,
                         device_c));
  CHECK(cudaMemcpy(c, device_c, sizeof c, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(c[0] == 3.0F && c[1] == 1.0F && isnan(c[2]) && c[3] == 5.0F);
  SUCCEEDS(
      cudnnSetOpTensorDescriptor(how, CUDNN_OP_TENSOR_MAX, CUDNN_DATA_FLOAT, CUDNN_PROPAGATE_NAN));
  SUCCEEDS(cudnnOpTensor(handle, how, &one, tensor, device_a, &one, tensor, device_b, &zero, tensor,
                         device_c));
  CHECK(cudaMemcpy(c, device_c, sizeof c, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(isnan(c[0]) && isnan(c[1]) && isnan(c[2]) && c[3] == 5.0F);
  SUCCEEDS(cudnnDestroyOpTensorDescriptor(how));
  SUCCEEDS(cudnnDestroyTensorDescriptor(tensor));
  cudaFree(device_a);
  cudaFree(device_b);
  cudaFree(device_c);
}

/* INT8 with float compute: rounded to nearest, saturated. */
static void int8_sum(void) {
  const signed char a[4] = {100, -100, 3, 4}, b[4] = {100, -100, 0, 1};
  const float half = 0.5F;
  signed char c[4];
  void *device_a = device_copy(a, sizeof a), *device_b = device_copy(b, sizeof b),
       *device_c = device_memory(sizeof c);
  cudnnTensorDescriptor_t tensor = NULL;
  cudnnOpTensorDescriptor_t how = NULL;
  SUCCEEDS(cudnnCreateTensorDescriptor(&tensor));
  SUCCEEDS(cudnnCreateOpTensorDescriptor(&how));
  SUCCEEDS(cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_INT8, 1, 4, 1, 1));
  SUCCEEDS(cudnnSetOpTensorDescriptor(how, CUDNN_OP_TENSOR_ADD, CUDNN_DATA_FLOAT,
                                      CUDNN_NOT_PROPAGATE_NAN));
  SUCCEEDS(cudnnOpTensor(handle, how, &half, tensor, device_a, &one, tensor, device_b, &zero,
                         tensor, device_c));
  CHECK(cudaMemcpy(c, device_c, sizeof c, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(c[0] == 127 && c[1] == -128 && c[2] == 2 && c[3] == 3);
  SUCCEEDS(cudnnDestroyOpTensorDescriptor(how));
  SUCCEEDS(cudnnDestroyTensorDescriptor(tensor));
  cudaFree(device_a);
  cudaFree(device_b);
  cudaFree(device_c);
}

/* Only the elements of a padded tensor are set, not its padding. */
static void set_tensor(cudnnDataType_t type, size_t bytes, const void* value, const void* bits) {
  enum { ROWS = 3, COLUMNS = 5, PITCH = 7 };
  unsigned char host[ROWS * PITCH * 32];
  const size_t total = ((ROWS - 1) * PITCH + COLUMNS) * bytes;
  memset(host, 0x5A, sizeof host);
  void* device = device_copy(host, sizeof host);
  cudnnTensorDescriptor_t tensor = NULL;
  SUCCEEDS(cudnnCreateTensorDescriptor(&tensor));
  const int channels = type == CUDNN_DATA_INT8x4 || type == CUDNN_DATA_UINT8x4 ? 4
                       : type == CUDNN_DATA_INT8x32                            ? 32
                                                                               : 1;
  SUCCEEDS(cudnnSetTensor4dDescriptorEx(tensor, type, 1, channels, ROWS, COLUMNS, ROWS * PITCH,
                                        ROWS * PITCH, PITCH, 1));
  size_t size = 0;
  SUCCEEDS(cudnnGetTensorSizeInBytes(tensor, &size));
  CHECK(channels > 1 || size == total);
  SUCCEEDS(cudnnSetTensor(handle, tensor, device, value));
  CHECK(cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost) == cudaSuccess);
  int wrong = 0;
  for (int position = 0; position < ROWS * PITCH; ++position)
    for (size_t byte = 0; byte < bytes; ++byte) {
      const unsigned char expected =
          position % PITCH < COLUMNS ? ((const unsigned char*)bits)[byte] : 0x5A;
      wrong += host[(size_t)position * bytes + byte] != expected;
    }
  if (wrong != 0)
    fprintf(stderr, "data type %d: %d wrong bytes in %d elements\n", (int)type, wrong,
            ROWS * PITCH);
  CHECK(wrong == 0);
  SUCCEEDS(cudnnDestroyTensorDescriptor(tensor));
  cudaFree(device);
}

static void set_tensors(void) {
  const float single = -1.5F, seven = -7.0F;
  const double wide = 0.1;
  const unsigned short half = 0xBE00, brain = 0xBFC0; /* -1.5 */
  const signed char small = -7;
  const unsigned char byte = 200;
  const int whole = -123456789;
  const long long large = 0x123456789ABCDEFLL;
  signed char lanes[32];
  for (int lane = 0; lane < 32; ++lane) lanes[lane] = (signed char)(lane * 9 - 120);
  set_tensor(CUDNN_DATA_FLOAT, sizeof single, &single, &single);
  set_tensor(CUDNN_DATA_DOUBLE, sizeof wide, &wide, &wide);
  /* For narrow types the value is a float. */
  set_tensor(CUDNN_DATA_HALF, sizeof half, &single, &half);
  set_tensor(CUDNN_DATA_BFLOAT16, sizeof brain, &single, &brain);
  set_tensor(CUDNN_DATA_INT8, sizeof small, &seven, &small);
  set_tensor(CUDNN_DATA_UINT8, sizeof byte, &byte, &byte);
  set_tensor(CUDNN_DATA_INT32, sizeof whole, &whole, &whole);
  set_tensor(CUDNN_DATA_INT64, sizeof large, &large, &large);
  set_tensor(CUDNN_DATA_INT8x4, 4, lanes, lanes);
  set_tensor(CUDNN_DATA_UINT8x4, 4, lanes, lanes);
  set_tensor(CUDNN_DATA_INT8x32, 32, lanes, lanes);
}

static void scale_tensor(const Variant* variant) {
  Oracle* oracle = oracle_variant(
      variant,
      GRAPH(
          TENSOR("input", "x", DIMS) "," TENSOR("output", "y", DIMS),
          "{'op':'pointwise','inputs':{'x':'x'},'outputs':{'y':'y'},'attributes':{'alpha1':@A}}"));
  CHECK(cudaMemcpy(oracle_device(oracle, "y"), oracle_host(oracle, "x"), oracle_bytes(oracle, "x"),
                   cudaMemcpyHostToDevice) == cudaSuccess);
  SUCCEEDS(cudnnScaleTensor(handle, oracle_tensor(oracle, "y"), oracle_device(oracle, "y"),
                            factor_of(variant, variant->alpha)));
  oracle_check(oracle);
  oracle_destroy(oracle);
}

static void misuse(void) {
  cudnnOpTensorDescriptor_t how = NULL;
  cudnnOpTensorOp_t op;
  cudnnDataType_t compute;
  cudnnNanPropagation_t nan;
  SUCCEEDS(cudnnCreateOpTensorDescriptor(&how));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnGetOpTensorDescriptor(how, &op, &compute, &nan));
  RETURNS(
      CUDNN_STATUS_BAD_PARAM,
      cudnnSetOpTensorDescriptor(how, (cudnnOpTensorOp_t)6, CUDNN_DATA_FLOAT, CUDNN_PROPAGATE_NAN));
  SUCCEEDS(
      cudnnSetOpTensorDescriptor(how, CUDNN_OP_TENSOR_MIN, CUDNN_DATA_DOUBLE, CUDNN_PROPAGATE_NAN));
  SUCCEEDS(cudnnGetOpTensorDescriptor(how, &op, &compute, &nan));
  CHECK(op == CUDNN_OP_TENSOR_MIN && compute == CUDNN_DATA_DOUBLE && nan == CUDNN_PROPAGATE_NAN);
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnGetOpTensorDescriptor(how, NULL, &compute, &nan));

  cudnnTensorDescriptor_t tensor = NULL;
  SUCCEEDS(cudnnCreateTensorDescriptor(&tensor));
  float numbers[4] = {0};
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnSetTensor(handle, tensor, numbers, numbers));
  SUCCEEDS(cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 4, 1, 1));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnSetTensor(handle, tensor, numbers, NULL));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnScaleTensor(handle, tensor, NULL, numbers));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnOpTensor(handle, how, NULL, tensor, numbers, NULL, tensor,
                                                NULL, NULL, tensor, numbers));
  SUCCEEDS(cudnnDestroyTensorDescriptor(tensor));
  SUCCEEDS(cudnnDestroyOpTensorDescriptor(how));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnDestroyOpTensorDescriptor(how));
}

int main(void) {
  SUCCEEDS(cudnnCreate(&handle));
  for (int v = 0; v < VARIANTS; ++v) {
    scale_tensor(&variants[v]);
    for (int dims = 0; dims < REPEATED; ++dims) add_tensor(repeated[dims], &variants[v]);
    Variant no_alpha = variants[v]; /* the call has no alpha */
    no_alpha.alpha = 1.0;
    for (int operation = 0; operation < OPERATIONS; ++operation) {
      op_tensor(operation, repeated[v % REPEATED], &no_alpha, 0);
      op_tensor(operation, repeated[(operation + v + 1) % REPEATED], &no_alpha,
                no_alpha.beta == 0.0);
    }
  }
  add_tensor_over_nan();
  nan_of_maximum();
  int8_sum();
  set_tensors();
  misuse();
  SUCCEEDS(cudnnDestroy(handle));
  return failures;
}

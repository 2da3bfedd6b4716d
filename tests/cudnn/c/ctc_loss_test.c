/* CTC loss with labels on the host and on the device, from probabilities and from logits, with
 * sequences that are too short for their labels. */
#include <math.h>

#include "tensors.h"

static cudnnHandle_t handle;

enum { MAX_SEQUENCES = 4, MAX_LABELS = 320 };

typedef struct {
  const char* dtype;
  int times, classes, sequences;
  int input_lengths[MAX_SEQUENCES], label_lengths[MAX_SEQUENCES];
  cudnnLossNormalizationMode_t normalization;
  cudnnCTCGradMode_t too_short;
  cudnnCTCLossAlgo_t algo;
  int on_device; /* the _v8 calls */
} Case;

/* Labels start at 1; every third one repeats its predecessor. */
static int make_labels(const Case* c, int* labels) {
  int count = 0;
  for (int n = 0; n < c->sequences; ++n)
    for (int i = 0; i < c->label_lengths[n]; ++i, ++count)
      labels[count] = i % 3 == 2 ? labels[count - 1] : 1 + (n + 2 * i) % (c->classes - 1);
  return count;
}

/* A sequence needs one step per label, and one blank between equal labels. */
static int is_too_short(const Case* c, const int* labels, int sequence) {
  int first = 0;
  for (int n = 0; n < sequence; ++n) first += c->label_lengths[n];
  int steps = c->label_lengths[sequence];
  for (int i = 1; i < c->label_lengths[sequence]; ++i)
    steps += labels[first + i] == labels[first + i - 1];
  return steps > c->input_lengths[sequence];
}

static Oracle* ctc_oracle(const Case* c, int label_count) {
  const Tensor x = {c->dtype, 0, 3, {c->times, c->sequences, c->classes}};
  const Tensor lengths = {"i32", 0, 1, {c->sequences}}, labels = {"i32", 0, 1, {label_count}};
  const Tensor costs = {scalar_type(c->dtype), 0, 1, {c->sequences}};
  Json json = {"", ""};
  json_tensor(&json, "x", "input", &x);
  json_tensor(&json, "labels", "input", &labels);
  json_tensor(&json, "label_lengths", "input", &lengths);
  json_tensor(&json, "input_lengths", "input", &lengths);
  json_tensor(&json, "costs", "output", &costs);
  json_tensor(&json, "gradients", "output", &x);
  json_node(&json,
            "{\"op\":\"ctc_loss\",\"inputs\":{\"x\":\"x\",\"labels\":\"labels\",\"label_lengths\":"
            "\"label_lengths\",\"input_lengths\":\"input_lengths\"},\"outputs\":{\"loss\":"
            "\"costs\",\"gradient\":\"gradients\"},\"attributes\":{\"input\":\"%s\","
            "\"zero_infinity\":true}}",
            c->normalization == CUDNN_LOSS_NORMALIZATION_NONE ? "probabilities" : "logits");
  return json_oracle(&json);
}

/* Positive rows that sum to 1. */
static void make_probabilities(Oracle* o, const Case* c) {
  oracle_fill(o, "x", 0.1, 1.0);
  float* x = oracle_host(o, "x");
  for (int row = 0; row < c->times * c->sequences; ++row) {
    float sum = 0.0F;
    for (int k = 0; k < c->classes; ++k) sum += x[row * c->classes + k];
    for (int k = 0; k < c->classes; ++k) x[row * c->classes + k] /= sum;
  }
  oracle_upload(o, "x");
}

static void put_ints(Oracle* o, const char* tensor, const int* values) {
  memcpy(oracle_host(o, tensor), values, oracle_bytes(o, tensor));
  oracle_upload(o, tensor);
}

static cudnnCTCLossDescriptor_t descriptor_for(const Case* c) {
  cudnnCTCLossDescriptor_t descriptor = NULL;
  SUCCEEDS(cudnnCreateCTCLossDescriptor(&descriptor));
  const cudnnDataType_t type = data_type(scalar_type(c->dtype));
  if (c->on_device)
    SUCCEEDS(
        cudnnSetCTCLossDescriptor_v9(descriptor, type, c->normalization, c->too_short, MAX_LABELS));
  else
    SUCCEEDS(cudnnSetCTCLossDescriptorEx(descriptor, type, c->normalization,
                                         (cudnnNanPropagation_t)c->too_short));
  return descriptor;
}

static void call(const Case* c, Oracle* o, const int* labels, void* gradients) {
  const Tensor x = {c->dtype, 0, 3, {c->times, c->sequences, c->classes}};
  cudnnTensorDescriptor_t desc = descriptor_of(&x);
  cudnnCTCLossDescriptor_t ctc = descriptor_for(c);
  size_t bytes = 0;
  void *probs = oracle_device(o, "x"), *costs = oracle_device(o, "costs");
  if (c->on_device) {
    SUCCEEDS(cudnnGetCTCLossWorkspaceSize_v8(handle, c->algo, ctc, desc, desc, &bytes));
    void* workspace = device_memory(bytes);
    SUCCEEDS(cudnnCTCLoss_v8(handle, c->algo, ctc, desc, probs, oracle_device(o, "labels"),
                             oracle_device(o, "label_lengths"), oracle_device(o, "input_lengths"),
                             costs, desc, gradients, bytes, workspace));
    cudaFree(workspace);
  } else {
    SUCCEEDS(cudnnGetCTCLossWorkspaceSize(handle, desc, desc, labels, c->label_lengths,
                                          c->input_lengths, c->algo, ctc, &bytes));
    void* workspace = device_memory(bytes);
    SUCCEEDS(cudnnCTCLoss(handle, desc, probs, labels, c->label_lengths, c->input_lengths, costs,
                          desc, gradients, c->algo, ctc, workspace, bytes));
    cudaFree(workspace);
  }
  SUCCEEDS(cudnnDestroyTensorDescriptor(desc));
  SUCCEEDS(cudnnDestroyCTCLossDescriptor(ctc));
}

/* Checks that the gradients of too short sequences are still `before`, then overwrites them with
 * the expected values. */
static void check_untouched(const Case* c, Oracle* o, const int* labels, const float* before) {
  oracle_download(o, "gradients");
  float* gradients = oracle_host(o, "gradients");
  for (int t = 0; t < c->times; ++t)
    for (int n = 0; n < c->sequences; ++n)
      for (int k = 0; is_too_short(c, labels, n) && k < c->classes; ++k) {
        const int at = (t * c->sequences + n) * c->classes + k;
        CHECK(gradients[at] == before[at]);
        gradients[at] = 0.0F;
      }
  oracle_upload(o, "gradients");
}

/* Where no path passes, checks that the gradient equals the probability, then overwrites it with
 * the expected value. */
static void check_probabilities(Oracle* o) {
  oracle_download(o, "gradients");
  float *gradients = oracle_host(o, "gradients"), *x = oracle_host(o, "x");
  int found = 0;
  for (size_t i = 0; i < oracle_bytes(o, "gradients") / sizeof(float); ++i)
    if (gradients[i] > 0.0F) {
      ++found;
      CHECK(gradients[i] == x[i]);
      gradients[i] = 0.0F;
    }
  CHECK(found > 0);
  oracle_upload(o, "gradients");
}

static void test_loss(const Case* c) {
  int labels[MAX_SEQUENCES * MAX_LABELS] = {0};
  const int count = make_labels(c, labels);
  Oracle* o = ctc_oracle(c, count > 0 ? count : 1);
  if (c->normalization == CUDNN_LOSS_NORMALIZATION_NONE) make_probabilities(o, c);
  put_ints(o, "labels", labels);
  put_ints(o, "label_lengths", c->label_lengths);
  put_ints(o, "input_lengths", c->input_lengths);
  float* before = malloc(oracle_bytes(o, "gradients"));
  memcpy(before, oracle_host(o, "gradients"), oracle_bytes(o, "gradients"));

  call(c, o, labels, NULL); /* costs alone */
  oracle_download(o, "costs");
  char* alone = malloc(oracle_bytes(o, "costs"));
  memcpy(alone, oracle_host(o, "costs"), oracle_bytes(o, "costs"));
  call(c, o, labels, oracle_device(o, "gradients"));
  if (c->too_short == CUDNN_CTC_SKIP_OOB_GRADIENTS) check_untouched(c, o, labels, before);
  if (c->normalization == CUDNN_LOSS_NORMALIZATION_NONE) check_probabilities(o);
  oracle_check(o);
  CHECK(memcmp(alone, oracle_host(o, "costs"), oracle_bytes(o, "costs")) == 0);
  free(before);
  free(alone);
  oracle_destroy(o);
}

static void test_descriptors(void) {
  cudnnCTCLossDescriptor_t ctc = NULL;
  cudnnDataType_t type = CUDNN_DATA_INT8;
  cudnnLossNormalizationMode_t normalization = CUDNN_LOSS_NORMALIZATION_SOFTMAX;
  cudnnNanPropagation_t nan = CUDNN_PROPAGATE_NAN;
  cudnnCTCGradMode_t mode = CUDNN_CTC_SKIP_OOB_GRADIENTS;
  int longest = -1;
  SUCCEEDS(cudnnCreateCTCLossDescriptor(&ctc));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnGetCTCLossDescriptor(ctc, &type));
  SUCCEEDS(cudnnSetCTCLossDescriptor(ctc, CUDNN_DATA_FLOAT));
  SUCCEEDS(cudnnGetCTCLossDescriptor(ctc, &type));
  SUCCEEDS(cudnnGetCTCLossDescriptorEx(ctc, &type, &normalization, &nan));
  CHECK(type == CUDNN_DATA_FLOAT && normalization == CUDNN_LOSS_NORMALIZATION_NONE);
  CHECK(nan == CUDNN_NOT_PROPAGATE_NAN);
  SUCCEEDS(cudnnSetCTCLossDescriptor_v8(ctc, CUDNN_DATA_DOUBLE, CUDNN_LOSS_NORMALIZATION_SOFTMAX,
                                        CUDNN_PROPAGATE_NAN, 1000));
  SUCCEEDS(cudnnGetCTCLossDescriptor_v9(ctc, &type, &normalization, &mode, &longest));
  CHECK(type == CUDNN_DATA_DOUBLE && normalization == CUDNN_LOSS_NORMALIZATION_SOFTMAX);
  CHECK(mode == CUDNN_CTC_SKIP_OOB_GRADIENTS && longest == 1000);
  SUCCEEDS(cudnnSetCTCLossDescriptor_v9(ctc, CUDNN_DATA_FLOAT, CUDNN_LOSS_NORMALIZATION_NONE,
                                        CUDNN_CTC_ZERO_OOB_GRADIENTS, 7));
  SUCCEEDS(cudnnGetCTCLossDescriptor_v8(ctc, &type, &normalization, &nan, &longest));
  CHECK(nan == CUDNN_NOT_PROPAGATE_NAN && longest == 7);
  RETURNS(CUDNN_STATUS_NOT_SUPPORTED, cudnnSetCTCLossDescriptor(ctc, CUDNN_DATA_INT8));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnSetCTCLossDescriptorEx(ctc, CUDNN_DATA_FLOAT, (cudnnLossNormalizationMode_t)5,
                                      CUDNN_PROPAGATE_NAN));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnSetCTCLossDescriptor_v9(ctc, CUDNN_DATA_FLOAT, CUDNN_LOSS_NORMALIZATION_NONE,
                                       (cudnnCTCGradMode_t)2, 7));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnSetCTCLossDescriptor_v9(ctc, CUDNN_DATA_FLOAT, CUDNN_LOSS_NORMALIZATION_NONE,
                                       CUDNN_CTC_ZERO_OOB_GRADIENTS, -1));
  SUCCEEDS(cudnnDestroyCTCLossDescriptor(ctc));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnSetCTCLossDescriptor(ctc, CUDNN_DATA_FLOAT));
}

static void test_misuse(void) {
  const Tensor x = {"f32", 0, 3, {4, 2, 3}}, other = {"f32", 0, 3, {4, 2, 4}};
  const Tensor image = {"f32", 0, 4, {4, 2, 3, 1}};
  cudnnTensorDescriptor_t desc = descriptor_of(&x), wrong = descriptor_of(&other);
  cudnnTensorDescriptor_t four = descriptor_of(&image);
  cudnnCTCLossDescriptor_t ctc = NULL;
  const int labels[] = {1, 2, 1}, label_lengths[] = {2, 1}, input_lengths[] = {4, 3};
  const int negative[] = {2, -1}, too_long[] = {5, 4};
  const cudnnCTCLossAlgo_t algo = CUDNN_CTC_LOSS_ALGO_DETERMINISTIC;
  size_t bytes = 0;
  SUCCEEDS(cudnnCreateCTCLossDescriptor(&ctc));
  SUCCEEDS(cudnnSetCTCLossDescriptorEx(ctc, CUDNN_DATA_FLOAT, CUDNN_LOSS_NORMALIZATION_SOFTMAX,
                                       CUDNN_NOT_PROPAGATE_NAN));
#define SIZE(probs, gradients, lengths, times, algorithm)                                        \
  cudnnGetCTCLossWorkspaceSize(handle, probs, gradients, labels, lengths, times, algorithm, ctc, \
                               &bytes)
  SUCCEEDS(SIZE(desc, desc, label_lengths, input_lengths, algo));
  RETURNS(CUDNN_STATUS_BAD_PARAM, SIZE(desc, wrong, label_lengths, input_lengths, algo));
  RETURNS(CUDNN_STATUS_BAD_PARAM, SIZE(four, four, label_lengths, input_lengths, algo));
  RETURNS(CUDNN_STATUS_BAD_PARAM, SIZE(desc, desc, negative, input_lengths, algo));
  RETURNS(CUDNN_STATUS_BAD_PARAM, SIZE(desc, desc, label_lengths, too_long, algo));
  RETURNS(CUDNN_STATUS_BAD_PARAM, SIZE(desc, desc, NULL, input_lengths, algo));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          SIZE(desc, desc, label_lengths, input_lengths, (cudnnCTCLossAlgo_t)2));
  float* m = device_memory(4096 + bytes);
#define LOSS(probs, costs, size)                                                               \
  cudnnCTCLoss(handle, desc, probs, labels, label_lengths, input_lengths, costs, desc, m + 64, \
               algo, ctc, m + 128, size)
  SUCCEEDS(SIZE(desc, desc, label_lengths, input_lengths, algo));
  SUCCEEDS(LOSS(m, m + 32, bytes));
  RETURNS(CUDNN_STATUS_BAD_PARAM, LOSS(NULL, m + 32, bytes));
  RETURNS(CUDNN_STATUS_BAD_PARAM, LOSS(m, NULL, bytes));
  RETURNS(CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, LOSS(m, m + 32, bytes - 1));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnCTCLoss_v8(handle, algo, ctc, desc, m, NULL, NULL, NULL,
                                                  m + 32, desc, m + 64, bytes, m + 128));
  cudaFree(m);
  SUCCEEDS(cudnnDestroyTensorDescriptor(desc));
  SUCCEEDS(cudnnDestroyTensorDescriptor(wrong));
  SUCCEEDS(cudnnDestroyTensorDescriptor(four));
  SUCCEEDS(cudnnDestroyCTCLossDescriptor(ctc));
}

int main(void) {
  SUCCEEDS(cudnnCreate(&handle));
  const cudnnLossNormalizationMode_t none = CUDNN_LOSS_NORMALIZATION_NONE;
  const cudnnLossNormalizationMode_t softmax = CUDNN_LOSS_NORMALIZATION_SOFTMAX;
  const cudnnCTCGradMode_t zero = CUDNN_CTC_ZERO_OOB_GRADIENTS;
  const cudnnCTCGradMode_t skip = CUDNN_CTC_SKIP_OOB_GRADIENTS;
  const cudnnCTCLossAlgo_t sure = CUDNN_CTC_LOSS_ALGO_DETERMINISTIC;
  const cudnnCTCLossAlgo_t any = CUDNN_CTC_LOSS_ALGO_NON_DETERMINISTIC;
  const Case cases[] = {
      {"f32", 12, 6, 3, {12, 12, 12}, {4, 3, 5}, softmax, zero, sure, 0},
      {"f32", 12, 6, 3, {12, 7, 10}, {4, 3, 5}, softmax, zero, any, 1},
      {"f32", 6, 5, 4, {6, 3, 6, 2}, {2, 4, 0, 2}, softmax, zero, sure, 0},
      {"f32", 6, 5, 4, {6, 3, 6, 2}, {2, 4, 5, 2}, softmax, skip, sure, 0},
      {"f32", 6, 5, 4, {6, 3, 5, 2}, {2, 4, 5, 2}, softmax, skip, any, 1},
      {"f32", 9, 7, 2, {9, 8}, {3, 4}, none, zero, sure, 0},
      {"f32", 9, 7, 3, {9, 8, 1}, {3, 4, 3}, none, skip, sure, 1},
      {"f32", 9, 7, 3, {9, 8, 1}, {3, 4, 3}, none, zero, any, 1},
      {"f64", 8, 4, 2, {8, 6}, {3, 2}, softmax, zero, sure, 0},
      {"f32", 420, 3, 2, {420, 410}, {300, 1}, softmax, skip, sure, 0}, /* more than 256 labels */
      {"f32", 420, 3, 2, {420, 410}, {290, 2}, softmax, zero, sure, 1},
      {"f32", 3, 4, 2, {3, 3}, {0, 0}, softmax, zero, sure, 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    const int before = failures;
    test_loss(&cases[i]);
    if (failures > before) fprintf(stderr, "in case %d\n", (int)i);
  }
  test_descriptors();
  test_misuse();
  SUCCEEDS(cudnnDestroy(handle));
  return failures;
}

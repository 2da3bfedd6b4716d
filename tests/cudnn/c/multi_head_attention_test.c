/* Multi-head attention: projections, beams, windows, lengths, layouts, dropout and single steps
 * against the oracle. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "attention_case.h"

static cudnnHandle_t handle;

static cudnnStatus_t forward(const Attention* attn, const Oracle* oracle, int step) {
  return cudnnMultiHeadAttnForward(
      handle, attn->attention, step, attn->low, attn->high, NULL, NULL, attn->q,
      oracle_device(oracle, "q"), attn->test.has_residual ? oracle_device(oracle, "q") : NULL,
      attn->k, oracle_device(oracle, "k"), attn->v, oracle_device(oracle, "v"), attn->o,
      oracle_device(oracle, "o"), attn->weights_bytes,
      attn->weights_bytes > 0 ? attn->weights : NULL, attn->workspace_bytes, attn->workspace,
      attn->reserve_bytes, attn->reserve);
}

static void train(const AttentionCase* test) {
  Attention attn = attention_create(handle, test, 1);
  Oracle* oracle = attention_oracle(&attn, 1);
  const int has_weights = attn.weights_bytes > 0;
  if (has_weights) CHECK(attn.weights_bytes == oracle_bytes(oracle, "weights"));
  const void* weights = has_weights ? attn.weights : NULL;
  SUCCEEDS(forward(&attn, oracle, -1));
  SUCCEEDS(cudnnMultiHeadAttnBackwardData(
      handle, attn.attention, attn.low, attn.high, NULL, NULL, attn.o, oracle_device(oracle, "d_o"),
      attn.q, oracle_device(oracle, "dq"), oracle_device(oracle, "q"), attn.k,
      oracle_device(oracle, "dk"), oracle_device(oracle, "k"), attn.v, oracle_device(oracle, "dv"),
      oracle_device(oracle, "v"), attn.weights_bytes, weights, attn.workspace_bytes, attn.workspace,
      attn.reserve_bytes, attn.reserve));
  SUCCEEDS(cudnnMultiHeadAttnBackwardWeights(
      handle, attn.attention, test->accumulation, attn.q, oracle_device(oracle, "q"), attn.k,
      oracle_device(oracle, "k"), attn.v, oracle_device(oracle, "v"), attn.o,
      oracle_device(oracle, "d_o"), attn.weights_bytes, weights, has_weights ? attn.dweights : NULL,
      attn.workspace_bytes, attn.workspace, attn.reserve_bytes, attn.reserve));
  if (has_weights) attention_copy_gradient(&attn, oracle);
  oracle_check(oracle);
  oracle_destroy(oracle);
  attention_destroy(&attn);
}

static void infer(const AttentionCase* test) {
  Attention attn = attention_create(handle, test, 0);
  Oracle* oracle = attention_oracle(&attn, 0);
  SUCCEEDS(forward(&attn, oracle, -1));
  oracle_check(oracle);
  oracle_fill(oracle, "o", -1.0, 1.0);
  for (int step = 0; step < test->queries; ++step) SUCCEEDS(forward(&attn, oracle, step));
  oracle_check(oracle);
  oracle_destroy(oracle);
  attention_destroy(&attn);
}

static const AttentionCase kPlain = {.dtype = CUDNN_DATA_FLOAT,
                                     .heads = 2,
                                     .q_size = 6,
                                     .k_size = 5,
                                     .v_size = 4,
                                     .q_projected = 3,
                                     .k_projected = 3,
                                     .v_projected = 2,
                                     .o_projected = 6,
                                     .queries = 3,
                                     .keys = 5,
                                     .batch = 2,
                                     .beams = 2};

static void test_modes(void) {
  const cudnnDataType_t types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_DOUBLE};
  for (int type = 0; type < 3; ++type)
    for (unsigned mode = 0; mode < 4; ++mode) {
      AttentionCase test = kPlain;
      test.dtype = types[type];
      test.mode = mode;
      test.axes = type;
      test.has_lengths = mode % 2 == 1;
      test.has_windows = mode != 0;
      test.has_residual = type != 1;
      test.accumulation = mode < 2 ? CUDNN_WGRAD_MODE_ADD : CUDNN_WGRAD_MODE_SET;
      train(&test);
      infer(&test);
    }
}

static void test_projections(void) {
  AttentionCase test = kPlain;
  test.o_projected = 0;
  train(&test);
  infer(&test);
  test = kPlain;
  test.q_projected = test.k_projected = test.v_projected = test.o_projected = 0;
  test.k_size = test.q_size;
  train(&test);
  infer(&test);
  test = kPlain;
  test.q_projected = 0;
  test.k_projected = test.q_size;
  test.mode = CUDNN_ATTN_ENABLE_PROJ_BIASES;
  train(&test);
}

static void test_dropout(void) {
  AttentionCase test = kPlain;
  test.dropout = 0.3F;
  train(&test);
  test.output_dropout = 0.5F;
  test.mode = CUDNN_ATTN_QUERYMAP_ONE_TO_ONE;
  test.has_residual = test.has_lengths = 1;
  train(&test);
  infer(&test); /* without dropout */
}

/* Rows past the end of a sequence hold the paddingFill of the descriptor. */
static void test_fill(void) {
  AttentionCase test = kPlain;
  test.has_lengths = 1;
  Attention attn = attention_create(handle, &test, 0);
  Oracle* oracle = attention_oracle(&attn, 0);
  const int dims[4] = {test.queries, test.batch, test.beams, attention_output_size(&test)};
  float fill = 2.5F;
  SUCCEEDS(cudnnSetSeqDataDescriptor(attn.o, test.dtype, 4, dims, kOrders[0],
                                     (size_t)(test.batch * test.beams), attn.q_lengths, &fill));
  SUCCEEDS(forward(&attn, oracle, -1));
  oracle_download(oracle, "o");
  float* o = oracle_host(oracle, "o");
  for (int t = 0; t < test.queries; ++t)
    for (int n = 0; n < test.batch * test.beams; ++n)
      if (t >= attn.q_lengths[n]) {
        float* row = o + (t * test.batch * test.beams + n) * attention_output_size(&test);
        for (int i = 0; i < attention_output_size(&test); ++i) {
          CHECK(row[i] == 2.5F);
          row[i] = 0.0F; /* what the oracle expects */
        }
      }
  oracle_upload(oracle, "o");
  oracle_check(oracle);
  oracle_destroy(oracle);
  attention_destroy(&attn);
}

/* One head, one key: softmax is 1 and o = Wo (Wv v + bv) + bo, through the addresses that programs
 * copy their weights to. */
static void test_weights(void) {
  AttentionCase test = kPlain;
  test.mode = CUDNN_ATTN_ENABLE_PROJ_BIASES;
  test.queries = test.keys = test.batch = test.beams = 1;
  Attention attn = attention_create(handle, &test, 0);
  Oracle* oracle = attention_oracle(&attn, 0);
  SUCCEEDS(forward(&attn, oracle, -1));
  oracle_download(oracle, "o");
  const char* base = attn.weights;
  float* host = malloc(attn.weights_bytes);
  cudaMemcpy(host, base, attn.weights_bytes, cudaMemcpyDeviceToHost);
  const float* v = oracle_host(oracle, "v");
  const float* parts[CUDNN_ATTN_WKIND_COUNT];
  int dims[CUDNN_ATTN_WKIND_COUNT][3], strides[CUDNN_ATTN_WKIND_COUNT][3], rank = 0, count = 0;
  cudnnTensorDescriptor_t desc;
  SUCCEEDS(cudnnCreateTensorDescriptor(&desc));
  for (int kind = 0; kind < CUDNN_ATTN_WKIND_COUNT; ++kind) {
    void* address = NULL;
    cudnnDataType_t type;
    SUCCEEDS(cudnnGetMultiHeadAttnWeights(handle, attn.attention,
                                          (cudnnMultiHeadAttnWeightKind_t)kind, attn.weights_bytes,
                                          base, desc, &address));
    SUCCEEDS(cudnnGetTensorNdDescriptor(desc, 3, &type, &rank, dims[kind], strides[kind]));
    CHECK(rank == 3 && type == CUDNN_DATA_FLOAT);
    parts[kind] = host + ((const char*)address - base) / (ptrdiff_t)sizeof(float);
    count += dims[kind][0] * dims[kind][1] * dims[kind][2];
  }
  CHECK((size_t)count * sizeof(float) == attn.weights_bytes);
  CHECK(strides[0][0] == 3 && strides[0][1] == 1 && strides[0][2] == 6); /* columns of all heads */
  CHECK(strides[3][0] == 12 && strides[3][1] == 1 && strides[3][2] == 6);
  const int wv = CUDNN_MH_ATTN_V_WEIGHTS, wo = CUDNN_MH_ATTN_O_WEIGHTS, bv = CUDNN_MH_ATTN_V_BIASES,
            bo = CUDNN_MH_ATTN_O_BIASES;
  for (int i = 0; i < test.o_projected; ++i) {
    double sum = (double)parts[bo][i * strides[bo][1]];
    for (int h = 0; h < test.heads; ++h)
      for (int j = 0; j < test.v_projected; ++j) {
        double value = (double)parts[bv][h * strides[bv][0] + j * strides[bv][1]];
        for (int c = 0; c < test.v_size; ++c)
          value += (double)parts[wv][h * strides[wv][0] + j * strides[wv][1] + c * strides[wv][2]] *
                   (double)v[c];
        sum +=
            value * (double)parts[wo][h * strides[wo][0] + i * strides[wo][1] + j * strides[wo][2]];
      }
    CHECK(fabs((double)((const float*)oracle_host(oracle, "o"))[i] - sum) < 1e-5);
  }
  void* address = NULL;
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnGetMultiHeadAttnWeights(handle, attn.attention, (cudnnMultiHeadAttnWeightKind_t)8,
                                       attn.weights_bytes, base, desc, &address));
  RETURNS(CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT,
          cudnnGetMultiHeadAttnWeights(handle, attn.attention, CUDNN_MH_ATTN_Q_WEIGHTS,
                                       attn.weights_bytes - 1, base, desc, &address));
  SUCCEEDS(cudnnDestroyTensorDescriptor(desc));
  free(host);
  oracle_destroy(oracle);
  attention_destroy(&attn);
}

static void test_descriptors(void) {
  cudnnSeqDataDescriptor_t data;
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnCreateSeqDataDescriptor(NULL));
  SUCCEEDS(cudnnCreateSeqDataDescriptor(&data));
  const int dims[4] = {4, 3, 2, 5}, lengths[6] = {4, 3, 2, 1, 0, 4}, long_one[6] = {5};
  const cudnnSeqDataAxis_t twice[4] = {CUDNN_SEQDATA_TIME_DIM, CUDNN_SEQDATA_TIME_DIM,
                                       CUDNN_SEQDATA_BEAM_DIM, CUDNN_SEQDATA_VECT_DIM};
  const cudnnDataType_t type = CUDNN_DATA_FLOAT;
  float fill = 3.0F;
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnGetSeqDataDescriptor(data, NULL, NULL, 0, NULL, NULL, NULL, 0, NULL, NULL));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnSetSeqDataDescriptor(data, type, 3, dims, kOrders[0], 6, lengths, NULL));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnSetSeqDataDescriptor(data, type, 4, dims, twice, 6, lengths, NULL));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnSetSeqDataDescriptor(data, type, 4, dims, kOrders[0], 5, lengths, NULL));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnSetSeqDataDescriptor(data, type, 4, dims, kOrders[0], 6, long_one, NULL));
  RETURNS(CUDNN_STATUS_NOT_SUPPORTED,
          cudnnSetSeqDataDescriptor(data, CUDNN_DATA_INT8, 4, dims, kOrders[0], 6, lengths, NULL));
  SUCCEEDS(cudnnSetSeqDataDescriptor(data, type, 4, dims, kOrders[2], 6, lengths, &fill));
  int rank = 0, got_dims[4] = {0}, got_lengths[6] = {0};
  cudnnSeqDataAxis_t axes[4];
  size_t count = 0;
  fill = 0.0F;
  SUCCEEDS(cudnnGetSeqDataDescriptor(data, NULL, &rank, 4, got_dims, axes, &count, 6, got_lengths,
                                     &fill));
  CHECK(rank == 4 && count == 6 && fill == 3.0F && memcmp(dims, got_dims, sizeof dims) == 0 &&
        memcmp(lengths, got_lengths, sizeof lengths) == 0 &&
        memcmp(axes, kOrders[2], sizeof axes) == 0);
  SUCCEEDS(cudnnDestroySeqDataDescriptor(data));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnDestroySeqDataDescriptor(data));

  cudnnAttnDescriptor_t attention;
  SUCCEEDS(cudnnCreateAttnDescriptor(&attention));
  size_t bytes = 0;
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnGetMultiHeadAttnBuffers(handle, attention, &bytes, &bytes, NULL));
  RETURNS(CUDNN_STATUS_BAD_PARAM, /* keys and queries of different sizes */
          cudnnSetAttnDescriptor(attention, 0, 1, 1.0, type, type, CUDNN_DEFAULT_MATH, NULL, NULL,
                                 4, 5, 4, 0, 0, 0, 0, 3, 3, 1, 1));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnSetAttnDescriptor(attention, 8, 1, 1.0, type, type, CUDNN_DEFAULT_MATH, NULL, NULL,
                                 4, 4, 4, 0, 0, 0, 0, 3, 3, 1, 1));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnSetAttnDescriptor(attention, 0, 0, 1.0, type, type, CUDNN_DEFAULT_MATH, NULL, NULL,
                                 4, 4, 4, 0, 0, 0, 0, 3, 3, 1, 1));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnSetAttnDescriptor(attention, 0, 2147483647, 1.0, type, type, CUDNN_DEFAULT_MATH,
                                 NULL, NULL, 4, 4, 2147483647, 0, 0, 0, 2147483647, 3, 3,
                                 2147483647, 2147483647));
  SUCCEEDS(cudnnSetAttnDescriptor(attention, 1, 2, 0.25, type, type, CUDNN_DEFAULT_MATH, NULL, NULL,
                                  4, 4, 5, 6, 6, 7, 8, 9, 10, 11, 12));
  unsigned mode = 0;
  int heads = 0, sizes[11] = {0};
  double scale = 0.0;
  cudnnDropoutDescriptor_t dropout = (cudnnDropoutDescriptor_t)&heads;
  SUCCEEDS(cudnnGetAttnDescriptor(attention, &mode, &heads, &scale, NULL, NULL, NULL, &dropout,
                                  NULL, &sizes[0], &sizes[1], &sizes[2], &sizes[3], &sizes[4],
                                  &sizes[5], &sizes[6], &sizes[7], &sizes[8], &sizes[9],
                                  &sizes[10]));
  const int expected[11] = {4, 4, 5, 6, 6, 7, 8, 9, 10, 11, 12};
  CHECK(mode == 1 && heads == 2 && scale == 0.25 && dropout == NULL &&
        memcmp(sizes, expected, sizeof sizes) == 0);
  SUCCEEDS(cudnnDestroyAttnDescriptor(attention));
}

static void test_misuse(void) {
  AttentionCase test = kPlain;
  Attention attn = attention_create(handle, &test, 1);
  Oracle* oracle = attention_oracle(&attn, 1);
  Attention bad = attn;
  RETURNS(CUDNN_STATUS_BAD_PARAM, forward(&attn, oracle, 0)); /* one step while training */
  bad.reserve_bytes -= 1;
  RETURNS(CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, forward(&bad, oracle, -1));
  bad = attn;
  bad.weights_bytes -= 1;
  RETURNS(CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, forward(&bad, oracle, -1));
  bad = attn;
  bad.q = attn.k;
  RETURNS(CUDNN_STATUS_BAD_PARAM, forward(&bad, oracle, -1));
  bad = attn;
  bad.o = attn.v;
  RETURNS(CUDNN_STATUS_BAD_PARAM, forward(&bad, oracle, -1));
  bad = attn;
  bad.v = NULL;
  RETURNS(CUDNN_STATUS_BAD_PARAM, forward(&bad, oracle, -1));
  bad = attn;
  bad.reserve = NULL;
  bad.reserve_bytes = 0;
  RETURNS(CUDNN_STATUS_BAD_PARAM, forward(&bad, oracle, test.queries));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnMultiHeadAttnForward(handle, attn.attention, -1, NULL, attn.high, NULL, NULL, attn.q,
                                    oracle_device(oracle, "q"), NULL, attn.k,
                                    oracle_device(oracle, "k"), attn.v, oracle_device(oracle, "v"),
                                    attn.o, oracle_device(oracle, "o"), attn.weights_bytes,
                                    attn.weights, attn.workspace_bytes, attn.workspace, 0, NULL));
  oracle_destroy(oracle);
  attention_destroy(&attn);
}

int main(void) {
  SUCCEEDS(cudnnCreate(&handle));
  test_weights();
  test_modes();
  test_projections();
  test_dropout();
  test_fill();
  test_misuse();
  test_descriptors();
  SUCCEEDS(cudnnDestroy(handle));
  return failures != 0;
}

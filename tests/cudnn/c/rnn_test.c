/* Recurrent networks: all cells, biases, directions, layouts and lengths against the oracle. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rnn_case.h"

static cudnnHandle_t handle;

static void* optional(const Oracle* oracle, const Rnn* rnn, const char* tensor) {
  const int is_cell = tensor[0] == 'c' || (tensor[0] == 'd' && tensor[1] == 'c');
  if (rnn->test.without_states || (is_cell && rnn->test.cell != CUDNN_LSTM)) return NULL;
  return oracle_device(oracle, tensor);
}

static cudnnStatus_t forward(const Rnn* rnn, const Oracle* oracle, cudnnForwardMode_t phase) {
  return cudnnRNNForward(handle, rnn->rnn, phase, NULL, rnn->x, oracle_device(oracle, "x"), rnn->y,
                         oracle_device(oracle, "y"), rnn->h, optional(oracle, rnn, "hx"),
                         optional(oracle, rnn, "hy"), rnn->c, optional(oracle, rnn, "cx"),
                         optional(oracle, rnn, "cy"), rnn->weights_bytes,
                         oracle_device(oracle, "weights"), rnn->workspace_bytes, rnn->workspace,
                         rnn->reserve_bytes, rnn->reserve);
}

static void train(const RnnCase* test) {
  Oracle* oracle = rnn_oracle(test, 1);
  Rnn rnn = rnn_create(handle, test, CUDNN_FWD_MODE_TRAINING);
  CHECK(rnn.weights_bytes == oracle_bytes(oracle, "weights"));
  SUCCEEDS(forward(&rnn, oracle, CUDNN_FWD_MODE_TRAINING));
  SUCCEEDS(cudnnRNNBackwardData_v8(
      handle, rnn.rnn, NULL, rnn.y, oracle_device(oracle, "y"), oracle_device(oracle, "dy"), rnn.x,
      oracle_device(oracle, "dx"), rnn.h, optional(oracle, &rnn, "hx"),
      optional(oracle, &rnn, "dhy"), optional(oracle, &rnn, "dhx"), rnn.c,
      optional(oracle, &rnn, "cx"), optional(oracle, &rnn, "dcy"), optional(oracle, &rnn, "dcx"),
      rnn.weights_bytes, oracle_device(oracle, "weights"), rnn.workspace_bytes, rnn.workspace,
      rnn.reserve_bytes, rnn.reserve));
  if (test->accumulation == CUDNN_WGRAD_MODE_ADD)
    cudaMemcpy(oracle_device(oracle, "dweights"), oracle_device(oracle, "before"),
               oracle_bytes(oracle, "before"), cudaMemcpyDeviceToDevice);
  /* PyTorch passes a different workspace to this call. */
  cudaMemset(rnn.workspace, 0xff, rnn.workspace_bytes);
  SUCCEEDS(cudnnRNNBackwardWeights_v8(
      handle, rnn.rnn, test->accumulation, NULL, rnn.x, oracle_device(oracle, "x"), rnn.h,
      optional(oracle, &rnn, "hx"), rnn.y, oracle_device(oracle, "y"), rnn.weights_bytes,
      oracle_device(oracle, "dweights"), rnn.workspace_bytes, rnn.workspace, rnn.reserve_bytes,
      rnn.reserve));
  oracle_check(oracle);
  rnn_destroy(&rnn);
  oracle_destroy(oracle);
}

static void infer(const RnnCase* test) {
  RnnCase saved = *test;
  saved.dropout = 0; /* not in inference */
  Oracle* oracle = rnn_oracle(&saved, 0);
  Rnn rnn = rnn_create(handle, test, CUDNN_FWD_MODE_INFERENCE);
  CHECK(rnn.reserve_bytes == 0);
  SUCCEEDS(forward(&rnn, oracle, CUDNN_FWD_MODE_INFERENCE));
  oracle_check(oracle);
  rnn_destroy(&rnn);
  oracle_destroy(oracle);
}

static void test_cells(void) {
  RnnCase test = {.bias = CUDNN_RNN_DOUBLE_BIAS,
                  .steps = 4,
                  .batch = 3,
                  .input_size = 5,
                  .hidden = 6,
                  .layers = 1};
  for (int cell = CUDNN_RNN_RELU; cell <= CUDNN_GRU; ++cell) {
    test.cell = (cudnnRNNMode_t)cell;
    const cudnnDataType_t types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_DOUBLE};
    for (int type = 0; type < 3; ++type) {
      test.dtype = types[type];
      test.accumulation = type == 0 ? CUDNN_WGRAD_MODE_ADD : CUDNN_WGRAD_MODE_SET;
      train(&test);
      infer(&test);
    }
    test.dtype = CUDNN_DATA_FLOAT;
    for (int bias = CUDNN_RNN_NO_BIAS; bias <= CUDNN_RNN_SINGLE_REC_BIAS; ++bias) {
      test.bias = (cudnnRNNBiasMode_t)bias;
      train(&test);
    }
    test.bias = CUDNN_RNN_DOUBLE_BIAS;
  }
}

static void test_layouts(void) {
  RnnCase test = {.cell = CUDNN_LSTM,
                  .bias = CUDNN_RNN_DOUBLE_BIAS,
                  .steps = 5,
                  .batch = 4,
                  .input_size = 3,
                  .hidden = 4,
                  .layers = 2,
                  .direction = CUDNN_BIDIRECTIONAL};
  const int lengths[3][MAX_SEQUENCES] = {{0}, {5, 4, 2, 1}, {2, 5, 0, 3}};
  for (int layout = CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED;
       layout <= CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED; ++layout)
    for (int i = 0; i < 3; ++i) {
      test.layout = (cudnnRNNDataLayout_t)layout;
      memcpy(test.lengths, lengths[i], sizeof test.lengths);
      test.cell = i == 2 ? CUDNN_GRU : CUDNN_LSTM;
      test.fill = layout == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED ? 0.0F : 1.5F;
      test.dtype = i == 1 ? CUDNN_DATA_HALF : CUDNN_DATA_FLOAT;
      train(&test);
      infer(&test);
    }
}

static void test_options(void) {
  const RnnCase plain = {.cell = CUDNN_LSTM,
                         .bias = CUDNN_RNN_DOUBLE_BIAS,
                         .steps = 4,
                         .batch = 3,
                         .input_size = 6,
                         .hidden = 6,
                         .layers = 2};
  RnnCase test = plain;
  test.without_states = 1;
  train(&test);
  test = plain;
  test.input = CUDNN_SKIP_INPUT;
  train(&test);
  infer(&test);
  test = plain;
  test.projected = 4;
  test.direction = CUDNN_BIDIRECTIONAL;
  train(&test);
  infer(&test);
  test = plain;
  test.clip = 0.25;
  train(&test);
  infer(&test);
  test = plain;
  test.dtype = CUDNN_DATA_BFLOAT16;
  train(&test);
  infer(&test);
  test = plain;
  test.dropout = 1.0F;
  infer(&test);
  test.dropout = 0.5F;
  train(&test);
  infer(&test);
  test.cell = CUDNN_GRU;
  test.lengths[0] = 2;
  test.lengths[1] = 4;
  test.lengths[2] = 3;
  test.layers = 3;
  train(&test);
}

/* The generator advances: the same call drops other features. */
static void test_dropout_advances(void) {
  const RnnCase test = {.cell = CUDNN_RNN_TANH,
                        .bias = CUDNN_RNN_DOUBLE_BIAS,
                        .steps = 4,
                        .batch = 3,
                        .input_size = 6,
                        .hidden = 6,
                        .layers = 2,
                        .dropout = 0.5F};
  Oracle* oracle = rnn_oracle(&test, 0);
  Rnn rnn = rnn_create(handle, &test, CUDNN_FWD_MODE_TRAINING);
  const size_t bytes = oracle_bytes(oracle, "y");
  void* first = malloc(bytes);
  SUCCEEDS(forward(&rnn, oracle, CUDNN_FWD_MODE_TRAINING));
  oracle_check(oracle);
  memcpy(first, oracle_host(oracle, "y"), bytes);
  SUCCEEDS(forward(&rnn, oracle, CUDNN_FWD_MODE_TRAINING));
  oracle_download(oracle, "y");
  CHECK(memcmp(first, oracle_host(oracle, "y"), bytes) != 0);
  const int64_t draws = 4 * 3 * 6;
  memcpy(oracle_host(oracle, "offset"), &(int64_t){draws / 4}, sizeof(int64_t));
  oracle_check(oracle);
  free(first);
  rnn_destroy(&rnn);
  oracle_destroy(oracle);
}

/* Dropout probability 1: the input of the second layer is 0. Also without a workspace. */
static void test_drops_everything(void) {
  RnnCase test = {.cell = CUDNN_LSTM,
                  .bias = CUDNN_RNN_DOUBLE_BIAS,
                  .steps = 4,
                  .batch = 3,
                  .input_size = 6,
                  .hidden = 6,
                  .layers = 2,
                  .dropout = 1.0F};
  Rnn rnn = rnn_create(handle, &test, CUDNN_FWD_MODE_TRAINING);
  test.dropout = 0;
  Oracle* oracle = rnn_oracle(&test, 0);
  rnn.workspace_bytes = 0;
  const size_t bytes = oracle_bytes(oracle, "y");
  float* first = malloc(bytes);
  SUCCEEDS(forward(&rnn, oracle, CUDNN_FWD_MODE_TRAINING));
  oracle_download(oracle, "y");
  memcpy(first, oracle_host(oracle, "y"), bytes);
  oracle_fill(oracle, "x", 2.0, 3.0);
  SUCCEEDS(forward(&rnn, oracle, CUDNN_FWD_MODE_TRAINING));
  oracle_download(oracle, "y");
  CHECK(memcmp(first, oracle_host(oracle, "y"), bytes) == 0);
  free(first);
  rnn_destroy(&rnn);
  oracle_destroy(oracle);
}

/* Sequences of length 0 leave the states unchanged. */
static void test_empty(cudnnRNNDataLayout_t layout) {
  const RnnCase test = {.cell = CUDNN_GRU,
                        .bias = CUDNN_RNN_DOUBLE_BIAS,
                        .steps = 2,
                        .batch = 2,
                        .input_size = 3,
                        .hidden = 4,
                        .layers = 2,
                        .layout = layout};
  Oracle* oracle = rnn_oracle(&test, 0);
  Rnn rnn = rnn_create(handle, &test, CUDNN_FWD_MODE_TRAINING);
  const int none[2] = {0, 0};
  SUCCEEDS(cudnnSetRNNDataDescriptor(rnn.x, test.dtype, layout, 2, 2, 3, none, NULL));
  SUCCEEDS(cudnnSetRNNDataDescriptor(rnn.y, test.dtype, layout, 2, 2, 4, none, NULL));
  cudaFree(rnn.workspace);
  SUCCEEDS(cudnnGetRNNTempSpaceSizes(handle, rnn.rnn, CUDNN_FWD_MODE_INFERENCE, rnn.x,
                                     &rnn.workspace_bytes, NULL));
  rnn.workspace = device_memory(rnn.workspace_bytes);
  SUCCEEDS(forward(&rnn, oracle, CUDNN_FWD_MODE_INFERENCE));
  oracle_download(oracle, "hy");
  CHECK(memcmp(oracle_host(oracle, "hx"), oracle_host(oracle, "hy"), oracle_bytes(oracle, "hx")) ==
        0);
  rnn_destroy(&rnn);
  oracle_destroy(oracle);
}

/* Weights at the addresses of cudnnGetRNNWeightParams(), checked with the formulas of cuDNN's
 * documentation: linear layers i f g o, and r z n. */
static double number(const Oracle* oracle, const float* device_part, int index) {
  const char* base = oracle_device(oracle, "weights");
  const size_t offset = (size_t)((const char*)device_part - base) / sizeof(float);
  return (double)((const float*)oracle_host(oracle, "weights"))[offset + (size_t)index];
}

static double linear(const Rnn* rnn, const Oracle* oracle, int id, int unit, const float* x,
                     int size) {
  cudnnTensorDescriptor_t matrix_desc, bias_desc;
  SUCCEEDS(cudnnCreateTensorDescriptor(&matrix_desc));
  SUCCEEDS(cudnnCreateTensorDescriptor(&bias_desc));
  void *matrix = NULL, *bias = NULL;
  SUCCEEDS(cudnnGetRNNWeightParams(handle, rnn->rnn, 0, rnn->weights_bytes,
                                   oracle_device(oracle, "weights"), id, matrix_desc, &matrix,
                                   bias_desc, &bias));
  cudnnDataType_t type;
  int rank = 0, dims[3] = {0}, strides[3] = {0};
  SUCCEEDS(cudnnGetTensorNdDescriptor(matrix_desc, 3, &type, &rank, dims, strides));
  CHECK(rank == 3 && dims[0] == 1 && dims[1] == rnn->test.hidden && dims[2] == size);
  CHECK(strides[1] == size && strides[2] == 1 && type == CUDNN_DATA_FLOAT);
  SUCCEEDS(cudnnGetTensorNdDescriptor(bias_desc, 3, &type, &rank, dims, strides));
  CHECK(rank == 3 && dims[0] == 1 && dims[1] == rnn->test.hidden && dims[2] == 1);
  SUCCEEDS(cudnnDestroyTensorDescriptor(matrix_desc));
  SUCCEEDS(cudnnDestroyTensorDescriptor(bias_desc));
  double sum = number(oracle, bias, unit);
  for (int i = 0; i < size; ++i) sum += number(oracle, matrix, unit * size + i) * (double)x[i];
  return sum;
}

static double sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }

static void test_gates(cudnnRNNMode_t cell) {
  const RnnCase test = {.cell = cell,
                        .bias = CUDNN_RNN_DOUBLE_BIAS,
                        .steps = 1,
                        .batch = 1,
                        .input_size = 3,
                        .hidden = 4,
                        .layers = 1};
  Oracle* oracle = rnn_oracle(&test, 0);
  Rnn rnn = rnn_create(handle, &test, CUDNN_FWD_MODE_INFERENCE);
  SUCCEEDS(forward(&rnn, oracle, CUDNN_FWD_MODE_INFERENCE));
  oracle_download(oracle, "y");
  const float *x = oracle_host(oracle, "x"), *h = oracle_host(oracle, "hx");
  for (int unit = 0; unit < test.hidden; ++unit) {
    double w[4], r[4], expected;
    const int gates = cell == CUDNN_LSTM ? 4 : cell == CUDNN_GRU ? 3 : 1;
    for (int gate = 0; gate < gates; ++gate) {
      w[gate] = linear(&rnn, oracle, gate, unit, x, test.input_size);
      r[gate] = linear(&rnn, oracle, gates + gate, unit, h, test.hidden);
    }
    if (cell == CUDNN_LSTM) {
      const double i = sigmoid(w[0] + r[0]), f = sigmoid(w[1] + r[1]);
      const double g = tanh(w[2] + r[2]), o = sigmoid(w[3] + r[3]);
      const double before = (double)((const float*)oracle_host(oracle, "cx"))[unit];
      expected = o * tanh(f * before + i * g);
    } else if (cell == CUDNN_GRU) {
      const double reset = sigmoid(w[0] + r[0]), update = sigmoid(w[1] + r[1]);
      const double content = tanh(w[2] + reset * r[2]);
      expected = (1.0 - update) * content + update * (double)h[unit];
    } else {
      expected = cell == CUDNN_RNN_TANH ? tanh(w[0] + r[0]) : fmax(w[0] + r[0], 0.0);
    }
    CHECK(fabs((double)((const float*)oracle_host(oracle, "y"))[unit] - expected) < 1e-5);
  }
  rnn_destroy(&rnn);
  oracle_destroy(oracle);
}

static void test_misuse(void) {
  const RnnCase test = {.cell = CUDNN_LSTM,
                        .bias = CUDNN_RNN_DOUBLE_BIAS,
                        .steps = 3,
                        .batch = 2,
                        .input_size = 3,
                        .hidden = 4,
                        .layers = 1,
                        .lengths = {1, 3}};
  Oracle* oracle = rnn_oracle(&test, 0);
  Rnn rnn = rnn_create(handle, &test, CUDNN_FWD_MODE_TRAINING);
  Rnn bad = rnn;
  bad.weights_bytes -= 1;
  RETURNS(CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, forward(&bad, oracle, CUDNN_FWD_MODE_TRAINING));
  bad = rnn;
  bad.reserve_bytes -= 1;
  RETURNS(CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, forward(&bad, oracle, CUDNN_FWD_MODE_TRAINING));
  bad = rnn;
  bad.reserve = NULL;
  RETURNS(CUDNN_STATUS_BAD_PARAM, forward(&bad, oracle, CUDNN_FWD_MODE_TRAINING));
  bad = rnn;
  bad.workspace_bytes = 0;
  RETURNS(CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT,
          forward(&bad, oracle, CUDNN_FWD_MODE_INFERENCE)); /* no room for the lengths */
  bad = rnn;
  bad.x = rnn.y;
  RETURNS(CUDNN_STATUS_BAD_PARAM, forward(&bad, oracle, CUDNN_FWD_MODE_INFERENCE));
  bad = rnn;
  bad.y = rnn.x;
  RETURNS(CUDNN_STATUS_BAD_PARAM, forward(&bad, oracle, CUDNN_FWD_MODE_INFERENCE));
  bad = rnn;
  bad.h = NULL;
  RETURNS(CUDNN_STATUS_BAD_PARAM, forward(&bad, oracle, CUDNN_FWD_MODE_INFERENCE));
  RETURNS(CUDNN_STATUS_BAD_PARAM, forward(&rnn, oracle, (cudnnForwardMode_t)7));
  rnn_destroy(&rnn);
  RETURNS(CUDNN_STATUS_BAD_PARAM, forward(&rnn, oracle, CUDNN_FWD_MODE_INFERENCE));
  oracle_destroy(oracle);
}

int main(void) {
  SUCCEEDS(cudnnCreate(&handle));
  for (int cell = CUDNN_RNN_RELU; cell <= CUDNN_GRU; ++cell) test_gates((cudnnRNNMode_t)cell);
  test_cells();
  test_layouts();
  test_options();
  test_dropout_advances();
  test_drops_everything();
  test_empty(CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED);
  test_empty(CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED);
  test_misuse();
  SUCCEEDS(cudnnDestroy(handle));
  return failures != 0;
}

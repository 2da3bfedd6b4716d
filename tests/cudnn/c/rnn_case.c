#include "rnn_case.h"

#include <stdlib.h>
#include <string.h>

const unsigned long long kDropoutSeed = 0x123456789abcdefULL;

static int directions(const RnnCase* test) {
  return test->direction == CUDNN_BIDIRECTIONAL ? 2 : 1;
}
static int output_size(const RnnCase* test) {
  return test->projected > 0 ? test->projected : test->hidden;
}

static int length_of(const RnnCase* test, int n) {
  int given = 0;
  for (int i = 0; i < test->batch; ++i) given += test->lengths[i];
  return given > 0 ? test->lengths[n] : test->steps;
}

static int is_even(const RnnCase* test) {
  for (int n = 0; n < test->batch; ++n)
    if (length_of(test, n) != test->steps) return 0;
  return 1;
}

static int is_packed(const RnnCase* test) {
  return test->layout == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED && !is_even(test);
}

static void create_state(cudnnTensorDescriptor_t* descriptor, const RnnCase* test, int size) {
  /* Five axes, as PyTorch passes them. */
  const int dims[5] = {test->layers * directions(test), test->batch, size, 1, 1};
  const int strides[5] = {test->batch * size, size, 1, 1, 1};
  SUCCEEDS(cudnnCreateTensorDescriptor(descriptor));
  SUCCEEDS(cudnnSetTensorNdDescriptor(*descriptor, test->dtype, 5, dims, strides));
}

static void create_data(cudnnRNNDataDescriptor_t* data, const RnnCase* test, int features) {
  int lengths[MAX_SEQUENCES];
  for (int n = 0; n < test->batch; ++n) lengths[n] = length_of(test, n);
  float fill = test->fill;
  double fill_f64 = test->fill;
  unsigned short fill_f16 = 0; /* 0, or 1.5; bfloat16 has 0 only */
  if (test->fill == 1.5F) fill_f16 = 0x3e00;
  void* value = test->dtype == CUDNN_DATA_HALF || test->dtype == CUDNN_DATA_BFLOAT16
                    ? (void*)&fill_f16
                : test->dtype == CUDNN_DATA_DOUBLE ? (void*)&fill_f64
                                                   : (void*)&fill;
  SUCCEEDS(cudnnCreateRNNDataDescriptor(data));
  SUCCEEDS(cudnnSetRNNDataDescriptor(*data, test->dtype, test->layout, test->steps, test->batch,
                                     features, lengths, value));
}

Rnn rnn_create(cudnnHandle_t handle, const RnnCase* test, cudnnForwardMode_t phase) {
  Rnn rnn = {.test = *test, .handle = handle};
  size_t bytes = 0;
  SUCCEEDS(cudnnCreateDropoutDescriptor(&rnn.dropout));
  SUCCEEDS(cudnnDropoutGetStatesSize(handle, &bytes));
  rnn.states = device_memory(bytes);
  SUCCEEDS(cudnnSetDropoutDescriptor(rnn.dropout, handle, test->dropout, rnn.states, bytes,
                                     kDropoutSeed));
  SUCCEEDS(cudnnCreateRNNDescriptor(&rnn.rnn));
  SUCCEEDS(cudnnSetRNNDescriptor_v8(
      rnn.rnn, CUDNN_RNN_ALGO_STANDARD, test->cell, test->bias, test->direction, test->input,
      test->dtype, test->dtype == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT,
      CUDNN_FMA_MATH, test->input_size, test->hidden,
      test->projected > 0 ? test->projected : test->hidden, test->layers, rnn.dropout,
      CUDNN_RNN_PADDED_IO_ENABLED));
  if (test->clip != 0.0)
    SUCCEEDS(cudnnRNNSetClip_v9(rnn.rnn, CUDNN_RNN_CLIP_MINMAX, -test->clip, test->clip));
  create_data(&rnn.x, test, test->input_size);
  create_data(&rnn.y, test, directions(test) * output_size(test));
  create_state(&rnn.h, test, output_size(test));
  create_state(&rnn.c, test, test->hidden);
  SUCCEEDS(cudnnGetRNNWeightSpaceSize(handle, rnn.rnn, &rnn.weights_bytes));
  SUCCEEDS(cudnnGetRNNTempSpaceSizes(handle, rnn.rnn, phase, rnn.x, &rnn.workspace_bytes,
                                     &rnn.reserve_bytes));
  rnn.workspace = device_memory(rnn.workspace_bytes);
  rnn.reserve = device_memory(rnn.reserve_bytes);
  return rnn;
}

void rnn_destroy(Rnn* rnn) {
  SUCCEEDS(cudnnDestroyRNNDescriptor(rnn->rnn));
  SUCCEEDS(cudnnDestroyRNNDataDescriptor(rnn->x));
  SUCCEEDS(cudnnDestroyRNNDataDescriptor(rnn->y));
  SUCCEEDS(cudnnDestroyTensorDescriptor(rnn->h));
  SUCCEEDS(cudnnDestroyTensorDescriptor(rnn->c));
  SUCCEEDS(cudnnDestroyDropoutDescriptor(rnn->dropout));
  cudaFree(rnn->workspace);
  cudaFree(rnn->reserve);
  cudaFree(rnn->states);
}

/* A text buffer. */
typedef struct {
  char* at;
  size_t left;
} Text;

#define PRINT(text, ...)                                                \
  do {                                                                  \
    const int length = snprintf((text)->at, (text)->left, __VA_ARGS__); \
    (text)->at += length;                                               \
    (text)->left -= (size_t)length;                                     \
  } while (0)

static const char* dtype_name(cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_HALF: return "f16";
    case CUDNN_DATA_BFLOAT16: return "bf16";
    case CUDNN_DATA_DOUBLE: return "f64";
    default: return "f32";
  }
}

static void print_sequence(Text* text, const RnnCase* test, const char* name, const char* kind,
                           int features) {
  const char* dtype = dtype_name(test->dtype);
  PRINT(text, "{\"name\": \"%s\", \"kind\": \"%s\", \"dtype\": \"%s\", ", name, kind, dtype);
  if (is_packed(test)) {
    int rows = 0;
    for (int n = 0; n < test->batch; ++n) rows += length_of(test, n);
    PRINT(text, "\"dims\": [%d, %d]},\n", rows, features);
  } else if (test->layout == CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED) {
    PRINT(text, "\"dims\": [%d, %d, %d], \"strides\": [%d, %d, 1]},\n", test->steps, test->batch,
          features, features, test->steps * features);
  } else {
    PRINT(text, "\"dims\": [%d, %d, %d]},\n", test->steps, test->batch, features);
  }
}

static void print_tensor(Text* text, const RnnCase* test, const char* name, const char* kind, int a,
                         int b, int c) {
  const char* dtype = dtype_name(test->dtype);
  PRINT(text, "{\"name\": \"%s\", \"kind\": \"%s\", \"dtype\": \"%s\", ", name, kind, dtype);
  if (b == 0)
    PRINT(text, "\"dims\": [%d]},\n", a);
  else
    PRINT(text, "\"dims\": [%d, %d, %d]},\n", a, b, c);
}

static int weight_count(const RnnCase* test) {
  const int gates = test->cell == CUDNN_LSTM ? 4 : test->cell == CUDNN_GRU ? 3 : 1;
  const int biases = test->bias == CUDNN_RNN_NO_BIAS       ? 0
                     : test->bias == CUDNN_RNN_DOUBLE_BIAS ? 2
                                                           : 1;
  int count = 0;
  for (int layer = 0; layer < test->layers; ++layer) {
    int columns = layer == 0 ? test->input_size : directions(test) * output_size(test);
    if (layer == 0 && test->input == CUDNN_SKIP_INPUT) columns = 0;
    count += directions(test) * (gates * test->hidden * (columns + output_size(test) + biases) +
                                 test->projected * test->hidden);
  }
  return count;
}

static void print_attributes(Text* text, const RnnCase* test) {
  static const char* kModes[] = {"relu", "tanh", "lstm", "gru"};
  static const char* kBiases[] = {"none", "input", "both", "recurrent"};
  PRINT(text,
        "\"attributes\": {\"mode\": \"%s\", \"hidden_size\": %d, \"projection_size\": %d, "
        "\"layers\": %d, \"bidirectional\": %s, \"bias\": \"%s\", \"input\": \"%s\", "
        "\"layout\": \"%s\", \"dropout\": %.9g, \"padding_value\": %.9g",
        kModes[test->cell], test->hidden, test->projected, test->layers,
        directions(test) == 2 ? "true" : "false", kBiases[test->bias],
        test->input == CUDNN_SKIP_INPUT ? "skip" : "linear", is_packed(test) ? "packed" : "padded",
        (double)test->dropout, (double)test->fill);
  if (test->clip != 0.0)
    PRINT(text, ", \"clip_low\": %.9g, \"clip_high\": %.9g", -test->clip, test->clip);
  PRINT(text, "}}");
}

static void print_common(Text* text, const RnnCase* test) {
  if (!is_even(test)) PRINT(text, ", \"seq_lengths\": \"lengths\"");
  if (test->dropout > 0)
    PRINT(text, ", \"dropout_seed\": \"seed\", \"dropout_offset\": \"offset\"");
}

Oracle* rnn_oracle(const RnnCase* test, int with_gradients) {
  static char buffer[1 << 15];
  Text text = {buffer, sizeof buffer};
  const int pseudo = test->layers * directions(test), has_cell = test->cell == CUDNN_LSTM;
  const int features = directions(test) * output_size(test);
  const int has_states = !test->without_states;
  PRINT(&text, "{\"format\": \"ashlar-graph\", \"version\": 1, \"tensors\": [\n");
  print_sequence(&text, test, "x", "input", test->input_size);
  print_sequence(&text, test, "y", "output", features);
  print_tensor(&text, test, "weights", "input", weight_count(test), 0, 0);
  if (has_states) {
    print_tensor(&text, test, "hx", "input", pseudo, test->batch, output_size(test));
    print_tensor(&text, test, "hy", "output", pseudo, test->batch, output_size(test));
  }
  if (has_states && has_cell) {
    print_tensor(&text, test, "cx", "input", pseudo, test->batch, test->hidden);
    print_tensor(&text, test, "cy", "output", pseudo, test->batch, test->hidden);
  }
  if (!is_even(test))
    PRINT(&text,
          "{\"name\": \"lengths\", \"kind\": \"input\", \"dtype\": \"i32\", \"dims\": [%d]},\n",
          test->batch);
  if (test->dropout > 0)
    PRINT(&text,
          "{\"name\": \"seed\", \"kind\": \"input\", \"dtype\": \"i64\", \"dims\": [1]},"
          "{\"name\": \"offset\", \"kind\": \"input\", \"dtype\": \"i64\", \"dims\": [1]},\n");
  if (with_gradients) {
    print_sequence(&text, test, "dy", "input", features);
    print_sequence(&text, test, "dx", "output", test->input_size);
    print_tensor(&text, test, "dweights", "output", weight_count(test), 0, 0);
    if (test->accumulation == CUDNN_WGRAD_MODE_ADD)
      print_tensor(&text, test, "before", "input", weight_count(test), 0, 0);
    if (has_states) {
      print_tensor(&text, test, "dhy", "input", pseudo, test->batch, output_size(test));
      print_tensor(&text, test, "dhx", "output", pseudo, test->batch, output_size(test));
    }
    if (has_states && has_cell) {
      print_tensor(&text, test, "dcy", "input", pseudo, test->batch, test->hidden);
      print_tensor(&text, test, "dcx", "output", pseudo, test->batch, test->hidden);
    }
  }
  text.at -= 2; /* the last comma */
  text.left += 2;

  PRINT(&text,
        "], \"nodes\": [\n{\"op\": \"rnn_forward\", \"inputs\": {\"x\": \"x\", \"weights\": "
        "\"weights\"");
  if (has_states) PRINT(&text, ", \"hx\": \"hx\"");
  if (has_states && has_cell) PRINT(&text, ", \"cx\": \"cx\"");
  print_common(&text, test);
  PRINT(&text, "}, \"outputs\": {\"y\": \"y\"");
  if (has_states) PRINT(&text, ", \"hy\": \"hy\"");
  if (has_states && has_cell) PRINT(&text, ", \"cy\": \"cy\"");
  if (with_gradients) PRINT(&text, ", \"reserve\": \"reserve\"");
  PRINT(&text, "}, ");
  print_attributes(&text, test);
  if (with_gradients) {
    PRINT(
        &text,
        ",\n{\"op\": \"rnn_backward_data\", \"inputs\": {\"dy\": \"dy\", \"weights\": \"weights\", "
        "\"reserve\": \"reserve\"");
    if (has_states) PRINT(&text, ", \"hx\": \"hx\", \"dhy\": \"dhy\"");
    if (has_states && has_cell) PRINT(&text, ", \"cx\": \"cx\", \"dcy\": \"dcy\"");
    print_common(&text, test);
    PRINT(&text, "}, \"outputs\": {\"dx\": \"dx\", \"dgates\": \"dgates\"");
    if (has_states) PRINT(&text, ", \"dhx\": \"dhx\"");
    if (has_states && has_cell) PRINT(&text, ", \"dcx\": \"dcx\"");
    PRINT(&text, "}, ");
    print_attributes(&text, test);
    PRINT(&text,
          ",\n{\"op\": \"rnn_backward_weights\", \"inputs\": {\"x\": \"x\", \"reserve\": "
          "\"reserve\", "
          "\"dgates\": \"dgates\"");
    if (has_states) PRINT(&text, ", \"hx\": \"hx\"");
    if (test->accumulation == CUDNN_WGRAD_MODE_ADD) PRINT(&text, ", \"previous\": \"before\"");
    print_common(&text, test);
    PRINT(&text, "}, \"outputs\": {\"dweights\": \"dweights\"}, ");
    print_attributes(&text, test);
  }
  PRINT(&text, "]}");

  Oracle* oracle = oracle_graph("%s", buffer);
  oracle_fill(oracle, "weights", -0.5, 0.5);
  if (!is_even(test)) {
    int32_t* lengths = oracle_host(oracle, "lengths");
    for (int n = 0; n < test->batch; ++n) lengths[n] = length_of(test, n);
    oracle_upload(oracle, "lengths");
  }
  if (test->dropout > 0) {
    memcpy(oracle_host(oracle, "seed"), &kDropoutSeed, sizeof kDropoutSeed);
    memset(oracle_host(oracle, "offset"), 0, sizeof(int64_t));
  }
  return oracle;
}

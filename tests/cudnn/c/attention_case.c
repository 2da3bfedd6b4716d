#include "attention_case.h"

#include <stdlib.h>
#include <string.h>

static const int64_t kSeed = 77, kOutputSeed = 99;

const cudnnSeqDataAxis_t kOrders[3][4] = {{CUDNN_SEQDATA_TIME_DIM, CUDNN_SEQDATA_BATCH_DIM,
                                           CUDNN_SEQDATA_BEAM_DIM, CUDNN_SEQDATA_VECT_DIM},
                                          {CUDNN_SEQDATA_BATCH_DIM, CUDNN_SEQDATA_BEAM_DIM,
                                           CUDNN_SEQDATA_TIME_DIM, CUDNN_SEQDATA_VECT_DIM},
                                          {CUDNN_SEQDATA_VECT_DIM, CUDNN_SEQDATA_BEAM_DIM,
                                           CUDNN_SEQDATA_TIME_DIM, CUDNN_SEQDATA_BATCH_DIM}};

static int key_beams(const AttentionCase* test) {
  return (test->mode & CUDNN_ATTN_QUERYMAP_ONE_TO_ONE) != 0 ? test->beams : 1;
}
static int has_biases(const AttentionCase* test) {
  return (test->mode & CUDNN_ATTN_ENABLE_PROJ_BIASES) != 0;
}
static int head_values(const AttentionCase* test) {
  return test->v_projected > 0 ? test->v_projected : test->v_size;
}
int attention_output_size(const AttentionCase* test) {
  return test->o_projected > 0 ? test->o_projected : test->heads * head_values(test);
}
static int weight_count(const AttentionCase* test) {
  const int rows[4] = {test->heads * test->q_projected, test->heads * test->k_projected,
                       test->heads * test->v_projected, test->o_projected};
  const int columns[4] = {test->q_size, test->k_size, test->v_size,
                          test->heads * head_values(test)};
  int count = 0;
  for (int i = 0; i < 4; ++i) count += rows[i] * (columns[i] + has_biases(test));
  return count;
}

static cudnnSeqDataDescriptor_t create_data(const AttentionCase* test, int steps, int beams,
                                            int size, const int lengths[]) {
  int dims[CUDNN_SEQDATA_DIM_COUNT];
  dims[CUDNN_SEQDATA_TIME_DIM] = steps;
  dims[CUDNN_SEQDATA_BATCH_DIM] = test->batch;
  dims[CUDNN_SEQDATA_BEAM_DIM] = beams;
  dims[CUDNN_SEQDATA_VECT_DIM] = size;
  cudnnSeqDataDescriptor_t data;
  SUCCEEDS(cudnnCreateSeqDataDescriptor(&data));
  SUCCEEDS(cudnnSetSeqDataDescriptor(data, test->dtype, CUDNN_SEQDATA_DIM_COUNT, dims,
                                     kOrders[test->axes], (size_t)(test->batch * beams), lengths,
                                     NULL));
  return data;
}

static cudnnDropoutDescriptor_t create_dropout(cudnnHandle_t handle, float probability,
                                               int64_t seed, void** states) {
  size_t bytes = 0;
  cudnnDropoutDescriptor_t dropout;
  SUCCEEDS(cudnnDropoutGetStatesSize(handle, &bytes));
  *states = device_memory(bytes);
  SUCCEEDS(cudnnCreateDropoutDescriptor(&dropout));
  SUCCEEDS(cudnnSetDropoutDescriptor(dropout, handle, probability, *states, bytes,
                                     (unsigned long long)seed));
  return dropout;
}

Attention attention_create(cudnnHandle_t handle, const AttentionCase* test, int is_training) {
  Attention attn = {.test = *test};
  for (int t = 0; t < test->queries; ++t) {
    attn.low[t] = test->has_windows ? t % 2 : 0;
    attn.high[t] = test->has_windows ? (t + 2) % (test->keys + 1) : test->keys;
  }
  for (int i = 0; i < test->batch * test->beams; ++i)
    attn.q_lengths[i] = test->has_lengths ? (i * 2 + 1) % (test->queries + 1) : test->queries;
  for (int i = 0; i < test->batch * key_beams(test); ++i)
    attn.kv_lengths[i] = test->has_lengths ? (i * 3 + 2) % (test->keys + 1) : test->keys;
  attn.q = create_data(test, test->queries, test->beams, test->q_size, attn.q_lengths);
  attn.o =
      create_data(test, test->queries, test->beams, attention_output_size(test), attn.q_lengths);
  attn.k = create_data(test, test->keys, key_beams(test), test->k_size, attn.kv_lengths);
  attn.v = create_data(test, test->keys, key_beams(test), test->v_size, attn.kv_lengths);
  attn.dropout = create_dropout(handle, test->dropout, kSeed, &attn.states);
  attn.output_dropout =
      create_dropout(handle, test->output_dropout, kOutputSeed, &attn.output_states);
  SUCCEEDS(cudnnCreateAttnDescriptor(&attn.attention));
  SUCCEEDS(cudnnSetAttnDescriptor(
      attn.attention, test->mode, test->heads, 0.5, test->dtype,
      test->dtype == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT, CUDNN_FMA_MATH,
      attn.dropout, test->output_dropout > 0 ? attn.output_dropout : NULL, test->q_size,
      test->k_size, test->v_size, test->q_projected, test->k_projected, test->v_projected,
      test->o_projected, test->queries + 1, test->keys, test->batch, test->beams));
  SUCCEEDS(cudnnGetMultiHeadAttnBuffers(handle, attn.attention, &attn.weights_bytes,
                                        &attn.workspace_bytes,
                                        is_training ? &attn.reserve_bytes : NULL));
  attn.workspace = device_memory(attn.workspace_bytes);
  attn.reserve = is_training ? device_memory(attn.reserve_bytes) : NULL;
  attn.weights = device_memory(attn.weights_bytes);
  attn.dweights = device_memory(attn.weights_bytes);
  return attn;
}

void attention_destroy(Attention* attn) {
  SUCCEEDS(cudnnDestroyAttnDescriptor(attn->attention));
  SUCCEEDS(cudnnDestroySeqDataDescriptor(attn->q));
  SUCCEEDS(cudnnDestroySeqDataDescriptor(attn->k));
  SUCCEEDS(cudnnDestroySeqDataDescriptor(attn->v));
  SUCCEEDS(cudnnDestroySeqDataDescriptor(attn->o));
  SUCCEEDS(cudnnDestroyDropoutDescriptor(attn->dropout));
  SUCCEEDS(cudnnDestroyDropoutDescriptor(attn->output_dropout));
  cudaFree(attn->workspace);
  cudaFree(attn->reserve);
  cudaFree(attn->states);
  cudaFree(attn->output_states);
  cudaFree(attn->weights);
  cudaFree(attn->dweights);
}

/* "dims": [...], "strides": [...] of [batch, beams, steps, vector]. */
static const char* shape(const AttentionCase* test, int steps, int beams, int size,
                         char text[160]) {
  const int dims[4] = {steps, test->batch, beams, size}; /* by axis */
  int strides[4], stride = 1;
  for (int i = 3; i >= 0; --i) {
    strides[kOrders[test->axes][i]] = stride;
    stride *= dims[kOrders[test->axes][i]];
  }
  snprintf(text, 160, "\"dims\": [%d, %d, %d, %d], \"strides\": [%d, %d, %d, %d]}", test->batch,
           beams, steps, size, strides[CUDNN_SEQDATA_BATCH_DIM], strides[CUDNN_SEQDATA_BEAM_DIM],
           strides[CUDNN_SEQDATA_TIME_DIM], strides[CUDNN_SEQDATA_VECT_DIM]);
  return text;
}

/* cuDNN's matrices are column-major, the graph's row-major; biases are the same. */
static void order_weights(const Attention* attn, const void* from, void* to, int to_columns) {
  const AttentionCase* test = &attn->test;
  const int values = test->v_projected > 0 ? test->v_projected : test->v_size;
  const int rows[4] = {test->heads * test->q_projected, test->heads * test->k_projected,
                       test->heads * test->v_projected, test->o_projected};
  const int columns[4] = {test->q_size, test->k_size, test->v_size, test->heads * values};
  const size_t bytes = test->dtype == CUDNN_DATA_HALF     ? 2
                       : test->dtype == CUDNN_DATA_DOUBLE ? 8
                                                          : 4;
  memcpy(to, from, attn->weights_bytes);
  size_t start = 0;
  for (int part = 0; part < 4; ++part) {
    for (int row = 0; row < rows[part]; ++row)
      for (int column = 0; column < columns[part]; ++column) {
        const size_t by_rows = start + (size_t)(row * columns[part] + column);
        const size_t by_columns = start + (size_t)(column * rows[part] + row);
        memcpy((char*)to + (to_columns ? by_columns : by_rows) * bytes,
               (const char*)from + (to_columns ? by_rows : by_columns) * bytes, bytes);
      }
    start += (size_t)(rows[part] * columns[part]);
  }
}

static void upload_weights(const Attention* attn, const Oracle* oracle, const char* tensor,
                           void* to) {
  void* ordered = malloc(attn->weights_bytes);
  order_weights(attn, oracle_host(oracle, tensor), ordered, 1);
  cudaMemcpy(to, ordered, attn->weights_bytes, cudaMemcpyHostToDevice);
  free(ordered);
}

void attention_copy_gradient(const Attention* attn, Oracle* oracle) {
  void* ordered = malloc(attn->weights_bytes);
  cudaDeviceSynchronize();
  cudaMemcpy(ordered, attn->dweights, attn->weights_bytes, cudaMemcpyDeviceToHost);
  order_weights(attn, ordered, oracle_host(oracle, "dweights"), 0);
  oracle_upload(oracle, "dweights");
  free(ordered);
}

Oracle* attention_oracle(const Attention* attn, int with_gradients) {
  const AttentionCase* test = &attn->test;
  const char* dtype = test->dtype == CUDNN_DATA_HALF     ? "f16"
                      : test->dtype == CUDNN_DATA_DOUBLE ? "f64"
                                                         : "f32";
  char q[160], k[160], v[160], o[160], attributes[512], inputs[512],
      weights[128] = "", before[128] = "", gradients[2048] = "", gradient_nodes[4096] = "";
  shape(test, test->queries, test->beams, test->q_size, q);
  shape(test, test->queries, test->beams, attention_output_size(test), o);
  shape(test, test->keys, key_beams(test), test->k_size, k);
  shape(test, test->keys, key_beams(test), test->v_size, v);
  const int count = weight_count(test), drops = test->dropout > 0 && with_gradients,
            drops_output = test->output_dropout > 0 && with_gradients;
  const int adds = test->accumulation == CUDNN_WGRAD_MODE_ADD;
  snprintf(attributes, sizeof attributes,
           "\"attributes\": {\"heads\": %d, \"q_projection\": %d, \"k_projection\": %d, "
           "\"v_projection\": %d, \"o_projection\": %d, \"projection_biases\": %s, "
           "\"softmax_scale\": 0.5, \"attention_dropout\": %.9g, \"post_dropout\": %.9g}",
           test->heads, test->q_projected, test->k_projected, test->v_projected, test->o_projected,
           has_biases(test) ? "true" : "false", drops ? (double)test->dropout : 0.0,
           drops_output ? (double)test->output_dropout : 0.0);
  snprintf(inputs, sizeof inputs,
           "\"q\": \"q\", \"k\": \"k\", \"v\": \"v\"%s, \"seq_len_q\": \"ql\", \"seq_len_kv\": "
           "\"kl\", \"window_low\": \"low\", \"window_high\": \"high\"%s%s",
           count > 0 ? ", \"weights\": \"weights\"" : "",
           drops ? ", \"dropout_seed\": \"seed\"" : "",
           drops_output ? ", \"post_dropout_seed\": \"output_seed\"" : "");
  if (count > 0)
    snprintf(weights, sizeof weights,
             ",\n{\"name\": \"weights\", \"kind\": \"input\", \"dtype\": \"%s\", \"dims\": [%d]}",
             dtype, count);
  if (with_gradients) {
    if (count > 0 && adds)
      snprintf(before, sizeof before,
               ",\n{\"name\": \"before\", \"kind\": \"input\", \"dtype\": \"%s\", \"dims\": [%d]}",
               dtype, count);
    int length = snprintf(gradients, sizeof gradients,
                          "%s,\n{\"name\": \"d_o\", \"kind\": \"input\", \"dtype\": \"%s\", %s"
                          ",\n{\"name\": \"dq\", \"kind\": \"output\", \"dtype\": \"%s\", %s"
                          ",\n{\"name\": \"dk\", \"kind\": \"output\", \"dtype\": \"%s\", %s"
                          ",\n{\"name\": \"dv\", \"kind\": \"output\", \"dtype\": \"%s\", %s",
                          before, dtype, o, dtype, q, dtype, k, dtype, v);
    if (count > 0)
      snprintf(
          gradients + length, sizeof gradients - (size_t)length,
          ",\n{\"name\": \"dweights\", \"kind\": \"output\", \"dtype\": \"%s\", \"dims\": [%d]}",
          dtype, count);
    length = snprintf(
        gradient_nodes, sizeof gradient_nodes,
        ",\n{\"op\": \"multi_head_attention_backward_data\", \"inputs\": {%s, \"d_o\": \"d_o\"}, "
        "\"outputs\": {\"dq\": \"dq\", \"dk\": \"dk\", \"dv\": \"dv\"}, %s}",
        inputs, attributes);
    if (count > 0)
      snprintf(gradient_nodes + length, sizeof gradient_nodes - (size_t)length,
               ",\n{\"op\": \"multi_head_attention_backward_weights\", \"inputs\": {%s, \"d_o\": "
               "\"d_o\"%s}, \"outputs\": {\"dweights\": \"dweights\"}, %s}",
               inputs, adds ? ", \"previous\": \"before\"" : "", attributes);
  }
  Oracle* oracle = oracle_graph(
      "{\"format\": \"ashlar-graph\", \"version\": 1, \"tensors\": ["
      "{\"name\": \"q\", \"kind\": \"input\", \"dtype\": \"%s\", %s,\n"
      "{\"name\": \"k\", \"kind\": \"input\", \"dtype\": \"%s\", %s,\n"
      "{\"name\": \"v\", \"kind\": \"input\", \"dtype\": \"%s\", %s,\n"
      "{\"name\": \"o\", \"kind\": \"output\", \"dtype\": \"%s\", %s%s,\n"
      "{\"name\": \"ql\", \"kind\": \"input\", \"dtype\": \"i32\", \"dims\": [%d, %d, 1, 1]},\n"
      "{\"name\": \"kl\", \"kind\": \"input\", \"dtype\": \"i32\", \"dims\": [%d, %d, 1, 1]},\n"
      "{\"name\": \"low\", \"kind\": \"input\", \"dtype\": \"i32\", \"dims\": [1, 1, %d, 1]},\n"
      "{\"name\": \"high\", \"kind\": \"input\", \"dtype\": \"i32\", \"dims\": [1, 1, %d, 1]}%s%s"
      "%s],\n\"nodes\": [{\"op\": \"multi_head_attention_forward\", \"inputs\": {%s%s}, "
      "\"outputs\": {\"o\": \"o\"}, %s}%s]}",
      dtype, q, dtype, k, dtype, v, dtype, o, weights, test->batch, test->beams, test->batch,
      key_beams(test), test->queries, test->queries,
      drops ? ",{\"name\": \"seed\", \"kind\": \"input\", \"dtype\": \"i64\", \"dims\": [1]}" : "",
      drops_output
          ? ",{\"name\": \"output_seed\", \"kind\": \"input\", \"dtype\": \"i64\", \"dims\": [1]}"
          : "",
      gradients, inputs, test->has_residual ? ", \"residual\": \"q\"" : "", attributes,
      gradient_nodes);
  memcpy(oracle_host(oracle, "ql"), attn->q_lengths, oracle_bytes(oracle, "ql"));
  memcpy(oracle_host(oracle, "kl"), attn->kv_lengths, oracle_bytes(oracle, "kl"));
  memcpy(oracle_host(oracle, "low"), attn->low, oracle_bytes(oracle, "low"));
  memcpy(oracle_host(oracle, "high"), attn->high, oracle_bytes(oracle, "high"));
  if (drops) memcpy(oracle_host(oracle, "seed"), &kSeed, sizeof kSeed);
  if (drops_output) memcpy(oracle_host(oracle, "output_seed"), &kOutputSeed, sizeof kOutputSeed);
  if (count > 0) upload_weights(attn, oracle, "weights", attn->weights);
  if (count > 0 && with_gradients && test->accumulation == CUDNN_WGRAD_MODE_ADD)
    upload_weights(attn, oracle, "before", attn->dweights);
  return oracle;
}

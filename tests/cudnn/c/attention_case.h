/* A multi-head attention as cuDNN descriptors and as a graph for the oracle. */
#ifndef ASHLAR_TESTS_CUDNN_C_ATTENTION_CASE_H
#define ASHLAR_TESTS_CUDNN_C_ATTENTION_CASE_H

#include "oracle.h"

enum { MAX_STEPS = 8, MAX_SEQUENCES = 16 };

typedef struct {
  unsigned mode;
  cudnnDataType_t dtype;
  int heads;
  int q_size, k_size, v_size, q_projected, k_projected, v_projected, o_projected;
  int queries, keys, batch, beams;
  int has_residual, has_lengths, has_windows;
  int axes; /* index into kOrders */
  float dropout, output_dropout;
  cudnnWgradMode_t accumulation;
} AttentionCase;

typedef struct {
  AttentionCase test;
  cudnnAttnDescriptor_t attention;
  cudnnSeqDataDescriptor_t q, k, v, o;
  cudnnDropoutDescriptor_t dropout, output_dropout;
  void *states, *output_states;
  int low[MAX_STEPS], high[MAX_STEPS], q_lengths[MAX_SEQUENCES], kv_lengths[MAX_SEQUENCES];
  size_t weights_bytes, workspace_bytes, reserve_bytes;
  void *workspace, *reserve;
  void *weights, *dweights; /* in cuDNN's order */
} Attention;

Attention attention_create(cudnnHandle_t handle, const AttentionCase* test, int is_training);
void attention_destroy(Attention* attn);
/* Inputs q, k, v, weights; output o. With gradients: also inputs d_o and (WGRAD_MODE_ADD) before,
 * outputs dq, dk, dv, dweights. The residual is q. attn->weights gets the weights, attn->dweights
 * what they add to. */
Oracle* attention_oracle(const Attention* attn, int with_gradients);
/* attn->dweights becomes the oracle's output. */
void attention_copy_gradient(const Attention* attn, Oracle* oracle);

int attention_output_size(const AttentionCase* test);
extern const cudnnSeqDataAxis_t kOrders[3][4]; /* by AttentionCase.axes */

#endif

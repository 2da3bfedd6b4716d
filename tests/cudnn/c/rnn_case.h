/* A recurrent network as cuDNN descriptors and as a graph for the oracle. */
#ifndef ASHLAR_TESTS_CUDNN_C_RNN_CASE_H
#define ASHLAR_TESTS_CUDNN_C_RNN_CASE_H

#include "oracle.h"

enum { MAX_SEQUENCES = 8 };

typedef struct {
  cudnnRNNMode_t cell;
  cudnnRNNBiasMode_t bias;
  cudnnDirectionMode_t direction;
  cudnnRNNInputMode_t input;
  cudnnDataType_t dtype;
  cudnnRNNDataLayout_t layout;
  int steps, batch, input_size, hidden, projected, layers;
  int lengths[MAX_SEQUENCES]; /* all 0: every sequence has all steps */
  int without_states;         /* null for hx, cx, hy, cy and their gradients */
  double clip;                /* not 0: cell states are clipped to [-clip, clip] */
  float dropout;
  float fill; /* of padding */
  cudnnWgradMode_t accumulation;
} RnnCase;

typedef struct {
  RnnCase test;
  cudnnHandle_t handle;
  cudnnRNNDescriptor_t rnn;
  cudnnRNNDataDescriptor_t x, y;
  cudnnTensorDescriptor_t h, c;
  cudnnDropoutDescriptor_t dropout;
  size_t weights_bytes, workspace_bytes, reserve_bytes;
  void *workspace, *reserve, *states;
} Rnn;

Rnn rnn_create(cudnnHandle_t handle, const RnnCase* test, cudnnForwardMode_t phase);
void rnn_destroy(Rnn* rnn);
/* Inputs x, weights, hx, cx, dy, dhy, dcy (and lengths, seed, offset); outputs y, hy, cy, dx, dhx,
 * dcx, dweights, and with WGRAD_MODE_ADD the input before. Without gradients: the forward pass. */
Oracle* rnn_oracle(const RnnCase* test, int with_gradients);

extern const unsigned long long kDropoutSeed;

#endif

/* Recurrent networks, attention with projection weights, and the CTC loss. */
#ifndef ASHLAR_CUDNN_ADV_H
#define ASHLAR_CUDNN_ADV_H

#include "cudnn_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

cudnnStatus_t cudnnAdvVersionCheck(void);

/* Descriptors of a recurrent network and of its batch of sequences. */
typedef struct cudnnRNNStruct* cudnnRNNDescriptor_t;
typedef struct cudnnRNNDataStruct* cudnnRNNDataDescriptor_t;

/* The cell type. */
typedef enum {
  CUDNN_RNN_RELU = 0,
  CUDNN_RNN_TANH = 1,
  CUDNN_LSTM = 2,
  CUDNN_GRU = 3,
} cudnnRNNMode_t;

/* Which matmuls have a bias: of the input, of the state, or both. */
typedef enum {
  CUDNN_RNN_NO_BIAS = 0,
  CUDNN_RNN_SINGLE_INP_BIAS = 1,
  CUDNN_RNN_DOUBLE_BIAS = 2,
  CUDNN_RNN_SINGLE_REC_BIAS = 3,
} cudnnRNNBiasMode_t;

/* Unidirectional or bidirectional. */
typedef enum {
  CUDNN_UNIDIRECTIONAL = 0,
  CUDNN_BIDIRECTIONAL = 1,
} cudnnDirectionMode_t;

/* Whether the first layer multiplies its input by a matrix. */
typedef enum {
  CUDNN_LINEAR_INPUT = 0,
  CUDNN_SKIP_INPUT = 1,
} cudnnRNNInputMode_t;

/* Whether cell states are clipped. */
typedef enum {
  CUDNN_RNN_CLIP_NONE = 0,
  CUDNN_RNN_CLIP_MINMAX = 1,
} cudnnRNNClipMode_t;

/* Algorithms; all give the same result. */
typedef enum {
  CUDNN_RNN_ALGO_STANDARD = 0,
  CUDNN_RNN_ALGO_PERSIST_STATIC = 1,
  CUDNN_RNN_ALGO_PERSIST_DYNAMIC = 2,
  CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H = 3,
  CUDNN_RNN_ALGO_COUNT = 4,
} cudnnRNNAlgo_t;

/* Time-major (padded or packed) or batch-major. */
typedef enum {
  CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED = 0,
  CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED = 1,
  CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED = 2,
} cudnnRNNDataLayout_t;

/* TRAINING fills the reserve space that the backward passes read. */
typedef enum {
  CUDNN_FWD_MODE_INFERENCE = 0,
  CUDNN_FWD_MODE_TRAINING = 1,
} cudnnForwardMode_t;

/* Weight gradients are accumulated, or overwrite the output. */
typedef enum {
  CUDNN_WGRAD_MODE_ADD = 0,
  CUDNN_WGRAD_MODE_SET = 1,
} cudnnWgradMode_t;

/* Flags: sequences of a padded layout may differ in length. */
#define CUDNN_RNN_PADDED_IO_DISABLED 0
#define CUDNN_RNN_PADDED_IO_ENABLED (1U << 0)

cudnnStatus_t cudnnCreateRNNDescriptor(cudnnRNNDescriptor_t* rnn);
cudnnStatus_t cudnnSetRNNDescriptor_v8(cudnnRNNDescriptor_t rnn, cudnnRNNAlgo_t algo,
                                       cudnnRNNMode_t cell, cudnnRNNBiasMode_t bias_mode,
                                       cudnnDirectionMode_t direction,
                                       cudnnRNNInputMode_t input_mode, cudnnDataType_t dtype,
                                       cudnnDataType_t compute, cudnnMathType_t math,
                                       int32_t input_size, int32_t hidden_size,
                                       int32_t projected_size, int32_t layers,
                                       cudnnDropoutDescriptor_t dropout, uint32_t flags);
cudnnStatus_t cudnnGetRNNDescriptor_v8(cudnnRNNDescriptor_t rnn, cudnnRNNAlgo_t* algo,
                                       cudnnRNNMode_t* cell, cudnnRNNBiasMode_t* bias_mode,
                                       cudnnDirectionMode_t* direction,
                                       cudnnRNNInputMode_t* input_mode, cudnnDataType_t* dtype,
                                       cudnnDataType_t* compute, cudnnMathType_t* math,
                                       int32_t* input_size, int32_t* hidden_size,
                                       int32_t* projected_size, int32_t* layers,
                                       cudnnDropoutDescriptor_t* dropout, uint32_t* flags);
CUDNN_DEPRECATED cudnnStatus_t cudnnRNNSetClip_v8(cudnnRNNDescriptor_t rnn, cudnnRNNClipMode_t clip,
                                                  cudnnNanPropagation_t nan, double lowest,
                                                  double highest);
CUDNN_DEPRECATED cudnnStatus_t cudnnRNNGetClip_v8(cudnnRNNDescriptor_t rnn,
                                                  cudnnRNNClipMode_t* clip,
                                                  cudnnNanPropagation_t* nan, double* lowest,
                                                  double* highest);
cudnnStatus_t cudnnRNNSetClip_v9(cudnnRNNDescriptor_t rnn, cudnnRNNClipMode_t clip, double lowest,
                                 double highest);
cudnnStatus_t cudnnRNNGetClip_v9(cudnnRNNDescriptor_t rnn, cudnnRNNClipMode_t* clip, double* lowest,
                                 double* highest);
cudnnStatus_t cudnnDestroyRNNDescriptor(cudnnRNNDescriptor_t rnn);
cudnnStatus_t cudnnCreateRNNDataDescriptor(cudnnRNNDataDescriptor_t* data);
cudnnStatus_t cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t data, cudnnDataType_t dtype,
                                        cudnnRNNDataLayout_t layout, int max_length, int batch,
                                        int vector_size, const int lengths[], void* fill);
cudnnStatus_t cudnnGetRNNDataDescriptor(cudnnRNNDataDescriptor_t data, cudnnDataType_t* dtype,
                                        cudnnRNNDataLayout_t* layout, int* max_length, int* batch,
                                        int* vector_size, int capacity, int lengths[], void* fill);
cudnnStatus_t cudnnDestroyRNNDataDescriptor(cudnnRNNDataDescriptor_t data);

/* Sizes, and the addresses of the matrix and the bias of a gate in the weight space. A
 * bidirectional layer is two pseudo-layers. */
cudnnStatus_t cudnnBuildRNNDynamic(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, int batch);
cudnnStatus_t cudnnGetRNNTempSpaceSizes(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                                        cudnnForwardMode_t phase, cudnnRNNDataDescriptor_t x_desc,
                                        size_t* workspace_bytes, size_t* reserve_bytes);
cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                                         size_t* weights_bytes);
cudnnStatus_t cudnnGetRNNWeightParams(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                                      int32_t pseudo_layer, size_t weights_bytes,
                                      const void* weights, int32_t gate,
                                      cudnnTensorDescriptor_t matrix_desc, void** matrix,
                                      cudnnTensorDescriptor_t bias_desc, void** bias);

/* Lengths are in device memory. */
cudnnStatus_t cudnnRNNForward(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                              cudnnForwardMode_t phase, const int32_t lengths[],
                              cudnnRNNDataDescriptor_t x_desc, const void* x,
                              cudnnRNNDataDescriptor_t y_desc, void* y,
                              cudnnTensorDescriptor_t h_desc, const void* hx, void* hy,
                              cudnnTensorDescriptor_t c_desc, const void* cx, void* cy,
                              size_t weights_bytes, const void* weights, size_t workspace_bytes,
                              void* workspace, size_t reserve_bytes, void* reserve);
cudnnStatus_t cudnnRNNBackwardData_v8(
    cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, const int32_t lengths[],
    cudnnRNNDataDescriptor_t y_desc, const void* y, const void* dy, cudnnRNNDataDescriptor_t x_desc,
    void* dx, cudnnTensorDescriptor_t h_desc, const void* hx, const void* dhy, void* dhx,
    cudnnTensorDescriptor_t c_desc, const void* cx, const void* dcy, void* dcx,
    size_t weights_bytes, const void* weights, size_t workspace_bytes, void* workspace,
    size_t reserve_bytes, void* reserve);
cudnnStatus_t cudnnRNNBackwardWeights_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                                         cudnnWgradMode_t accumulation, const int32_t lengths[],
                                         cudnnRNNDataDescriptor_t x_desc, const void* x,
                                         cudnnTensorDescriptor_t h_desc, const void* hx,
                                         cudnnRNNDataDescriptor_t y_desc, const void* y,
                                         size_t weights_bytes, void* dweights,
                                         size_t workspace_bytes, void* workspace,
                                         size_t reserve_bytes, void* reserve);

/* Sequences of vectors with beams, and attention over them. */
typedef struct cudnnSeqDataStruct* cudnnSeqDataDescriptor_t;
typedef struct cudnnAttnStruct* cudnnAttnDescriptor_t;

/* Axes of sequence data. Their order in memory is free, except that the vector is innermost. */
typedef enum {
  CUDNN_SEQDATA_TIME_DIM = 0,
  CUDNN_SEQDATA_BATCH_DIM = 1,
  CUDNN_SEQDATA_BEAM_DIM = 2,
  CUDNN_SEQDATA_VECT_DIM = 3,
} cudnnSeqDataAxis_t;

/* Which weights or biases cudnnGetMultiHeadAttnWeights() returns. */
typedef enum {
  CUDNN_MH_ATTN_Q_WEIGHTS = 0,
  CUDNN_MH_ATTN_K_WEIGHTS = 1,
  CUDNN_MH_ATTN_V_WEIGHTS = 2,
  CUDNN_MH_ATTN_O_WEIGHTS = 3,
  CUDNN_MH_ATTN_Q_BIASES = 4,
  CUDNN_MH_ATTN_K_BIASES = 5,
  CUDNN_MH_ATTN_V_BIASES = 6,
  CUDNN_MH_ATTN_O_BIASES = 7,
} cudnnMultiHeadAttnWeightKind_t;

#define CUDNN_SEQDATA_DIM_COUNT 4
#define CUDNN_ATTN_WKIND_COUNT 8

/* Bits of the attention mode: whether every beam has its own keys, and whether projections have
 * biases. */
#define CUDNN_ATTN_QUERYMAP_ALL_TO_ONE 0
#define CUDNN_ATTN_QUERYMAP_ONE_TO_ONE (1U << 0)
#define CUDNN_ATTN_DISABLE_PROJ_BIASES 0
#define CUDNN_ATTN_ENABLE_PROJ_BIASES (1U << 1)

CUDNN_DEPRECATED cudnnStatus_t cudnnCreateSeqDataDescriptor(cudnnSeqDataDescriptor_t* data);
CUDNN_DEPRECATED cudnnStatus_t cudnnSetSeqDataDescriptor(
    cudnnSeqDataDescriptor_t data, cudnnDataType_t dtype, int rank, const int dims[],
    const cudnnSeqDataAxis_t axes[], size_t count, const int lengths[], void* fill);
CUDNN_DEPRECATED cudnnStatus_t cudnnGetSeqDataDescriptor(
    cudnnSeqDataDescriptor_t data, cudnnDataType_t* dtype, int* rank, int capacity, int dims[],
    cudnnSeqDataAxis_t axes[], size_t* count, size_t lengths_capacity, int lengths[], void* fill);
CUDNN_DEPRECATED cudnnStatus_t cudnnDestroySeqDataDescriptor(cudnnSeqDataDescriptor_t data);
CUDNN_DEPRECATED cudnnStatus_t cudnnCreateAttnDescriptor(cudnnAttnDescriptor_t* attention);
CUDNN_DEPRECATED cudnnStatus_t cudnnSetAttnDescriptor(
    cudnnAttnDescriptor_t attention, unsigned mode, int heads, double softmax_scale,
    cudnnDataType_t dtype, cudnnDataType_t compute, cudnnMathType_t math,
    cudnnDropoutDescriptor_t attention_dropout, cudnnDropoutDescriptor_t output_dropout, int q_size,
    int k_size, int v_size, int q_projected, int k_projected, int v_projected, int o_projected,
    int max_q_length, int max_kv_length, int max_batch, int max_beam);
CUDNN_DEPRECATED cudnnStatus_t cudnnGetAttnDescriptor(
    cudnnAttnDescriptor_t attention, unsigned* mode, int* heads, double* softmax_scale,
    cudnnDataType_t* dtype, cudnnDataType_t* compute, cudnnMathType_t* math,
    cudnnDropoutDescriptor_t* attention_dropout, cudnnDropoutDescriptor_t* output_dropout,
    int* q_size, int* k_size, int* v_size, int* q_projected, int* k_projected, int* v_projected,
    int* o_projected, int* max_q_length, int* max_kv_length, int* max_batch, int* max_beam);
CUDNN_DEPRECATED cudnnStatus_t cudnnDestroyAttnDescriptor(cudnnAttnDescriptor_t attention);
CUDNN_DEPRECATED cudnnStatus_t cudnnGetMultiHeadAttnBuffers(cudnnHandle_t handle,
                                                            cudnnAttnDescriptor_t attention,
                                                            size_t* weights_bytes,
                                                            size_t* workspace_bytes,
                                                            size_t* reserve_bytes);
CUDNN_DEPRECATED cudnnStatus_t cudnnGetMultiHeadAttnWeights(
    cudnnHandle_t handle, cudnnAttnDescriptor_t attention, cudnnMultiHeadAttnWeightKind_t kind,
    size_t weights_bytes, const void* weights, cudnnTensorDescriptor_t w_desc, void** address);

/* The key windows [begin, end) per query step are host arrays. A step >= 0 runs that query alone
 * (inference), -1 runs all of them. */
CUDNN_DEPRECATED cudnnStatus_t cudnnMultiHeadAttnForward(
    cudnnHandle_t handle, cudnnAttnDescriptor_t attention, int step, const int window_begin[],
    const int window_end[], const int lengths_q[], const int lengths_kv[],
    cudnnSeqDataDescriptor_t q_desc, const void* queries, const void* residuals,
    cudnnSeqDataDescriptor_t k_desc, const void* keys, cudnnSeqDataDescriptor_t v_desc,
    const void* values, cudnnSeqDataDescriptor_t o_desc, void* out, size_t weights_bytes,
    const void* weights, size_t workspace_bytes, void* workspace, size_t reserve_bytes,
    void* reserve);
CUDNN_DEPRECATED cudnnStatus_t cudnnMultiHeadAttnBackwardData(
    cudnnHandle_t handle, cudnnAttnDescriptor_t attention, const int window_begin[],
    const int window_end[], const int lengths_q[], const int lengths_kv[],
    cudnnSeqDataDescriptor_t dout_desc, const void* dout, cudnnSeqDataDescriptor_t dq_desc,
    void* dqueries, const void* queries, cudnnSeqDataDescriptor_t dk_desc, void* dkeys,
    const void* keys, cudnnSeqDataDescriptor_t dv_desc, void* dvalues, const void* values,
    size_t weights_bytes, const void* weights, size_t workspace_bytes, void* workspace,
    size_t reserve_bytes, void* reserve);
CUDNN_DEPRECATED cudnnStatus_t cudnnMultiHeadAttnBackwardWeights(
    cudnnHandle_t handle, cudnnAttnDescriptor_t attention, cudnnWgradMode_t accumulation,
    cudnnSeqDataDescriptor_t q_desc, const void* queries, cudnnSeqDataDescriptor_t k_desc,
    const void* keys, cudnnSeqDataDescriptor_t v_desc, const void* values,
    cudnnSeqDataDescriptor_t dout_desc, const void* dout, size_t weights_bytes, const void* weights,
    void* dweights, size_t workspace_bytes, void* workspace, size_t reserve_bytes, void* reserve);

/* Whether the input is probabilities, or logits to which the call applies softmax. */
typedef enum {
  CUDNN_LOSS_NORMALIZATION_NONE = 0,
  CUDNN_LOSS_NORMALIZATION_SOFTMAX = 1,
} cudnnLossNormalizationMode_t;

/* CTC loss. */
cudnnStatus_t cudnnCreateCTCLossDescriptor(cudnnCTCLossDescriptor_t* ctc);
CUDNN_DEPRECATED cudnnStatus_t cudnnSetCTCLossDescriptor(cudnnCTCLossDescriptor_t ctc,
                                                         cudnnDataType_t compute);
CUDNN_DEPRECATED cudnnStatus_t cudnnGetCTCLossDescriptor(cudnnCTCLossDescriptor_t ctc,
                                                         cudnnDataType_t* compute);
CUDNN_DEPRECATED cudnnStatus_t cudnnSetCTCLossDescriptorEx(
    cudnnCTCLossDescriptor_t ctc, cudnnDataType_t compute,
    cudnnLossNormalizationMode_t normalization, cudnnNanPropagation_t out_of_bounds);
CUDNN_DEPRECATED cudnnStatus_t cudnnGetCTCLossDescriptorEx(
    cudnnCTCLossDescriptor_t ctc, cudnnDataType_t* compute,
    cudnnLossNormalizationMode_t* normalization, cudnnNanPropagation_t* out_of_bounds);
CUDNN_DEPRECATED cudnnStatus_t
cudnnSetCTCLossDescriptor_v8(cudnnCTCLossDescriptor_t ctc, cudnnDataType_t compute,
                             cudnnLossNormalizationMode_t normalization,
                             cudnnNanPropagation_t out_of_bounds, int max_label_length);
CUDNN_DEPRECATED cudnnStatus_t
cudnnGetCTCLossDescriptor_v8(cudnnCTCLossDescriptor_t ctc, cudnnDataType_t* compute,
                             cudnnLossNormalizationMode_t* normalization,
                             cudnnNanPropagation_t* out_of_bounds, int* max_label_length);
cudnnStatus_t cudnnSetCTCLossDescriptor_v9(cudnnCTCLossDescriptor_t ctc, cudnnDataType_t compute,
                                           cudnnLossNormalizationMode_t normalization,
                                           cudnnCTCGradMode_t out_of_bounds, int max_label_length);
cudnnStatus_t cudnnGetCTCLossDescriptor_v9(cudnnCTCLossDescriptor_t ctc, cudnnDataType_t* compute,
                                           cudnnLossNormalizationMode_t* normalization,
                                           cudnnCTCGradMode_t* out_of_bounds,
                                           int* max_label_length);
cudnnStatus_t cudnnDestroyCTCLossDescriptor(cudnnCTCLossDescriptor_t ctc);

/* Labels and lengths are in host memory; for the _v8 calls in device memory. */
cudnnStatus_t cudnnGetCTCLossWorkspaceSize(cudnnHandle_t handle, cudnnTensorDescriptor_t probs_desc,
                                           cudnnTensorDescriptor_t gradients_desc,
                                           const int* labels, const int* label_lengths,
                                           const int* input_lengths, cudnnCTCLossAlgo_t algo,
                                           cudnnCTCLossDescriptor_t ctc, size_t* bytes);
cudnnStatus_t cudnnGetCTCLossWorkspaceSize_v8(cudnnHandle_t handle, cudnnCTCLossAlgo_t algo,
                                              cudnnCTCLossDescriptor_t ctc,
                                              cudnnTensorDescriptor_t probs_desc,
                                              cudnnTensorDescriptor_t gradients_desc,
                                              size_t* bytes);
cudnnStatus_t cudnnCTCLoss(cudnnHandle_t handle, cudnnTensorDescriptor_t probs_desc,
                           const void* probs, const int labels[], const int label_lengths[],
                           const int input_lengths[], void* costs,
                           cudnnTensorDescriptor_t gradients_desc, void* gradients,
                           cudnnCTCLossAlgo_t algo, cudnnCTCLossDescriptor_t ctc, void* workspace,
                           size_t workspace_bytes);
cudnnStatus_t cudnnCTCLoss_v8(cudnnHandle_t handle, cudnnCTCLossAlgo_t algo,
                              cudnnCTCLossDescriptor_t ctc, cudnnTensorDescriptor_t probs_desc,
                              const void* probs, const int labels[], const int label_lengths[],
                              const int input_lengths[], void* costs,
                              cudnnTensorDescriptor_t gradients_desc, void* gradients,
                              size_t workspace_bytes, void* workspace);

#ifdef __cplusplus
}
#endif

#endif /* ASHLAR_CUDNN_ADV_H */

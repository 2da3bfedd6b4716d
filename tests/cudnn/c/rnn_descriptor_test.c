/* Descriptors of recurrent networks, and the layout of their weights. */
#include "rnn_case.h"

static cudnnHandle_t handle;

/* The weights are contiguous and the gates consecutive, as PyTorch requires. */
static void test_weight_params(void) {
  const RnnCase test = {.cell = CUDNN_LSTM,
                        .bias = CUDNN_RNN_SINGLE_INP_BIAS,
                        .steps = 1,
                        .batch = 1,
                        .input_size = 5,
                        .hidden = 5,
                        .layers = 2,
                        .projected = 3,
                        .direction = CUDNN_BIDIRECTIONAL,
                        .input = CUDNN_SKIP_INPUT};
  Rnn rnn = rnn_create(handle, &test, CUDNN_FWD_MODE_INFERENCE);
  cudnnTensorDescriptor_t desc;
  SUCCEEDS(cudnnCreateTensorDescriptor(&desc));
  size_t covered = 0;
  for (int layer = 0; layer < 4; ++layer)
    for (int id = 0; id < 9; ++id)
      for (int is_bias = 0; is_bias < 2; ++is_bias) {
        char* address = (char*)1;
        char* base = (char*)4096; /* never read */
        SUCCEEDS(cudnnGetRNNWeightParams(handle, rnn.rnn, layer, rnn.weights_bytes, base, id,
                                         is_bias ? NULL : desc, is_bias ? NULL : (void**)&address,
                                         is_bias ? desc : NULL, is_bias ? (void**)&address : NULL));
        cudnnDataType_t type;
        int rank = -1, dims[3] = {0}, strides[3] = {0};
        SUCCEEDS(cudnnGetTensorNdDescriptor(desc, 3, &type, &rank, dims, strides));
        const int exists = is_bias ? id < 4 : !(layer < 2 && id < 4);
        CHECK((address != NULL) == exists);
        CHECK(rank == (exists ? 3 : 0));
        if (!exists) continue;
        covered += (size_t)(dims[0] * dims[1] * dims[2]) * sizeof(float);
        CHECK(address >= base && address < base + rnn.weights_bytes);
        if (id == 8) CHECK(dims[1] == 3 && dims[2] == 5);
      }
  CHECK(covered == rnn.weights_bytes);
  void* address = NULL; /* without weights: an offset */
  SUCCEEDS(cudnnGetRNNWeightParams(handle, rnn.rnn, 1, rnn.weights_bytes, NULL, 4, desc, &address,
                                   NULL, NULL));
  CHECK((size_t)address == (4 * 5 * 3 + 3 * 5) * sizeof(float)); /* biases follow all matrices */
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnGetRNNWeightParams(handle, rnn.rnn, 4, rnn.weights_bytes,
                                                          NULL, 0, desc, &address, NULL, NULL));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnGetRNNWeightParams(handle, rnn.rnn, 0, rnn.weights_bytes,
                                                          NULL, 9, desc, &address, NULL, NULL));
  RETURNS(CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT,
          cudnnGetRNNWeightParams(handle, rnn.rnn, 0, rnn.weights_bytes - 1, NULL, 0, desc,
                                  &address, NULL, NULL));
  SUCCEEDS(cudnnDestroyTensorDescriptor(desc));
  rnn_destroy(&rnn);
}

static cudnnStatus_t set(cudnnRNNDescriptor_t rnn, int cell, int input, int hidden, int projected,
                         int layers, int input_mode, int dtype) {
  return cudnnSetRNNDescriptor_v8(
      rnn, CUDNN_RNN_ALGO_STANDARD, (cudnnRNNMode_t)cell, CUDNN_RNN_DOUBLE_BIAS,
      CUDNN_UNIDIRECTIONAL, (cudnnRNNInputMode_t)input_mode, (cudnnDataType_t)dtype,
      CUDNN_DATA_FLOAT, CUDNN_DEFAULT_MATH, input, hidden, projected, layers, NULL, 0);
}

static void test_descriptor(void) {
  cudnnRNNDescriptor_t rnn;
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnCreateRNNDescriptor(NULL));
  SUCCEEDS(cudnnCreateRNNDescriptor(&rnn));
  size_t bytes = 0;
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnGetRNNWeightSpaceSize(handle, rnn, &bytes));
  RETURNS(CUDNN_STATUS_BAD_PARAM, set(rnn, 9, 4, 4, 4, 1, 0, CUDNN_DATA_FLOAT));
  RETURNS(CUDNN_STATUS_BAD_PARAM, set(rnn, CUDNN_LSTM, 0, 4, 4, 1, 0, CUDNN_DATA_FLOAT));
  RETURNS(CUDNN_STATUS_BAD_PARAM, set(rnn, CUDNN_LSTM, 4, 4, 5, 1, 0, CUDNN_DATA_FLOAT));
  RETURNS(CUDNN_STATUS_BAD_PARAM, set(rnn, CUDNN_LSTM, 4, 4, 4, 0, 0, CUDNN_DATA_FLOAT));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          set(rnn, CUDNN_LSTM, 3, 4, 4, 1, CUDNN_SKIP_INPUT, CUDNN_DATA_FLOAT));
  RETURNS(CUDNN_STATUS_NOT_SUPPORTED, set(rnn, CUDNN_GRU, 4, 4, 2, 1, 0, CUDNN_DATA_FLOAT));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          set(rnn, CUDNN_LSTM, 2147483647, 2147483647, 0, 2147483647, 0, CUDNN_DATA_FLOAT));
  RETURNS(CUDNN_STATUS_NOT_SUPPORTED, set(rnn, CUDNN_GRU, 4, 4, 4, 1, 0, CUDNN_DATA_INT8));
  SUCCEEDS(set(rnn, CUDNN_GRU, 3, 4, 4, 2, 0, CUDNN_DATA_HALF));
  cudnnRNNMode_t cell = CUDNN_LSTM;
  cudnnDataType_t dtype = CUDNN_DATA_FLOAT;
  int32_t input = 0, hidden = 0, projected = 0, layers = 0;
  SUCCEEDS(cudnnGetRNNDescriptor_v8(rnn, NULL, &cell, NULL, NULL, NULL, &dtype, NULL, NULL, &input,
                                    &hidden, &projected, &layers, NULL, NULL));
  CHECK(cell == CUDNN_GRU && dtype == CUDNN_DATA_HALF && input == 3 && hidden == 4 &&
        projected == 4 && layers == 2);
  SUCCEEDS(cudnnBuildRNNDynamic(handle, rnn, 3));

  cudnnRNNClipMode_t clip = CUDNN_RNN_CLIP_MINMAX;
  cudnnNanPropagation_t nan_option = CUDNN_NOT_PROPAGATE_NAN;
  double low = 1.0, high = 1.0;
  SUCCEEDS(cudnnRNNGetClip_v8(rnn, &clip, &nan_option, &low, &high));
  CHECK(clip == CUDNN_RNN_CLIP_NONE);
  SUCCEEDS(cudnnRNNSetClip_v8(rnn, CUDNN_RNN_CLIP_MINMAX, CUDNN_NOT_PROPAGATE_NAN, -2.0, 3.0));
  SUCCEEDS(cudnnRNNGetClip_v8(rnn, &clip, &nan_option, &low, &high));
  CHECK(clip == CUDNN_RNN_CLIP_MINMAX && nan_option == CUDNN_NOT_PROPAGATE_NAN && low == -2.0 &&
        high == 3.0);
  SUCCEEDS(cudnnRNNGetClip_v9(rnn, &clip, &low, &high));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnRNNSetClip_v9(rnn, CUDNN_RNN_CLIP_MINMAX, 2.0, 1.0));
  SUCCEEDS(cudnnDestroyRNNDescriptor(rnn));
  RETURNS(CUDNN_STATUS_BAD_PARAM, cudnnDestroyRNNDescriptor(rnn));
}

static void test_data_descriptor(void) {
  cudnnRNNDataDescriptor_t data;
  SUCCEEDS(cudnnCreateRNNDataDescriptor(&data));
  const int lengths[3] = {4, 0, 2}, wrong[3] = {4, 5, 2};
  double fill = 2.5;
  const cudnnRNNDataLayout_t layout = CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED;
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnGetRNNDataDescriptor(data, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL));
  SUCCEEDS(cudnnSetRNNDataDescriptor(data, CUDNN_DATA_DOUBLE, layout, 4, 3, 5, lengths, &fill));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnSetRNNDataDescriptor(data, CUDNN_DATA_DOUBLE, layout, 4, 3, 5, wrong, &fill));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnSetRNNDataDescriptor(data, CUDNN_DATA_DOUBLE, layout, 4, 0, 5, lengths, &fill));
  RETURNS(CUDNN_STATUS_BAD_PARAM,
          cudnnSetRNNDataDescriptor(data, CUDNN_DATA_DOUBLE, layout, 4, 3, 5, NULL, &fill));
  cudnnDataType_t dtype;
  cudnnRNNDataLayout_t got;
  int steps = 0, batch = 0, size = 0, some[2] = {9, 9};
  fill = 0.0;
  SUCCEEDS(cudnnGetRNNDataDescriptor(data, &dtype, &got, &steps, &batch, &size, 2, some, &fill));
  CHECK(dtype == CUDNN_DATA_DOUBLE && got == layout && steps == 4 && batch == 3 && size == 5 &&
        some[0] == 4 && some[1] == 0 && fill == 2.5);
  SUCCEEDS(cudnnDestroyRNNDataDescriptor(data));
}

int main(void) {
  SUCCEEDS(cudnnCreate(&handle));
  test_weight_params();
  test_data_descriptor();
  test_descriptor();
  SUCCEEDS(cudnnDestroy(handle));
  return failures != 0;
}

#include "legacy/rnn/rnn_descriptor.hpp"

#include <cmath>
#include <limits>

#include "core/data_type.hpp"
#include "core/guarded.hpp"
#include "core/handle.hpp"
#include "core/objects.hpp"
#include "legacy/descriptor_helpers.hpp"

namespace ashlar::cudnn {

namespace {

template <class T>
void require_enum(T value, T last, const char* parameter) {
  if (static_cast<int>(value) < 0 || static_cast<int>(value) > static_cast<int>(last))
    fail(CUDNN_STATUS_BAD_PARAM, "{}: got {}, expected 0 to {}", parameter, static_cast<int>(value),
         static_cast<int>(last));
}

void check(const cudnnRNNStruct& network) {
  require_enum(network.algo, CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H, "algo");
  require_enum(network.cell, CUDNN_GRU, "cellMode");
  require_enum(network.bias_mode, CUDNN_RNN_SINGLE_REC_BIAS, "biasMode");
  require_enum(network.direction, CUDNN_BIDIRECTIONAL, "dirMode");
  require_enum(network.input_mode, CUDNN_SKIP_INPUT, "inputMode");
  require_enum(network.math, CUDNN_FMA_MATH, "mathType");
  require_floating(network.dtype, "dataType");
  require_floating(network.compute, "mathPrec");
  for (const auto& [parameter, size] : {std::pair("inputSize", network.input_size),
                                        {"hiddenSize", network.hidden_size},
                                        {"numLayers", network.layers}})
    if (size < 1) fail(CUDNN_STATUS_BAD_PARAM, "{}: got {}, expected at least 1", parameter, size);
  if (network.projected_size < 0 || network.projected_size > network.hidden_size)
    fail(CUDNN_STATUS_BAD_PARAM, "projSize: got {}, expected at most hiddenSize = {}",
         network.projected_size, network.hidden_size);
  const bool projects =
      network.projected_size != 0 && network.projected_size != network.hidden_size;
  if (projects && network.cell != CUDNN_LSTM)
    fail(CUDNN_STATUS_NOT_SUPPORTED,
         "projSize: got {}, expected hiddenSize = {} (no projection): only an LSTM projects",
         network.projected_size, network.hidden_size);
  if (network.input_mode == CUDNN_SKIP_INPUT && network.input_size != network.hidden_size)
    fail(CUDNN_STATUS_BAD_PARAM,
         "inputSize: got {}, expected hiddenSize = {} with CUDNN_SKIP_INPUT", network.input_size,
         network.hidden_size);
  const double directions = network.direction == CUDNN_BIDIRECTIONAL ? 2.0 : 1.0;
  const double hidden = network.hidden_size;
  if (directions * hidden > std::numeric_limits<int>::max())
    fail(CUDNN_STATUS_BAD_PARAM,
         "hiddenSize: got {}, expected an output size that fits into an int", network.hidden_size);
  constexpr double kMaxGates = 4.0;
  require_countable("weightSpace", {directions * network.layers, kMaxGates * hidden,
                                    network.input_size + (directions + 2.0) * hidden});
}

void set_clip(cudnnRNNStruct& network, cudnnRNNClipMode_t mode, cudnnNanPropagation_t nan,
              double low, double high) {
  require_enum(mode, CUDNN_RNN_CLIP_MINMAX, "clipMode");
  require_enum(nan, CUDNN_PROPAGATE_NAN, "clipNanOpt");
  if (mode == CUDNN_RNN_CLIP_MINMAX && !(std::isfinite(low) && std::isfinite(high) && low <= high))
    fail(CUDNN_STATUS_BAD_PARAM, "lclip, rclip: got {} and {}, expected finite lclip <= rclip", low,
         high);
  network.clip = mode;
  network.clip_nan = nan;
  network.clip_low = low;
  network.clip_high = high;
}

RnnMode mode_of(cudnnRNNMode_t cell) {
  switch (cell) {
    case CUDNN_RNN_RELU: return RnnMode::relu;
    case CUDNN_RNN_TANH: return RnnMode::tanh;
    case CUDNN_LSTM: return RnnMode::lstm;
    default: return RnnMode::gru;
  }
}

RnnBias bias_of(cudnnRNNBiasMode_t mode) {
  switch (mode) {
    case CUDNN_RNN_NO_BIAS: return RnnBias::none;
    case CUDNN_RNN_SINGLE_INP_BIAS: return RnnBias::input;
    case CUDNN_RNN_SINGLE_REC_BIAS: return RnnBias::recurrent;
    default: return RnnBias::both;
  }
}

}  // namespace

const cudnnRNNStruct& network_of(cudnnRNNDescriptor_t descriptor) {
  const cudnnRNNStruct& network = object(descriptor, "rnnDesc");
  if (!network.is_set)
    fail(CUDNN_STATUS_BAD_PARAM,
         "rnnDesc: got a descriptor that was never set, expected cudnnSetRNNDescriptor_v8() first");
  return network;
}

RnnAttributes attributes_of(const cudnnRNNStruct& network) {
  RnnAttributes op;
  op.mode = mode_of(network.cell);
  op.hidden_size = network.hidden_size;
  op.projection_size = network.projected_size == network.hidden_size ? 0 : network.projected_size;
  op.layers = network.layers;
  op.bidirectional = network.direction == CUDNN_BIDIRECTIONAL;
  op.bias = bias_of(network.bias_mode);
  op.input = network.input_mode == CUDNN_SKIP_INPUT ? RnnInput::skip : RnnInput::linear;
  if (op.mode == RnnMode::lstm && network.clip == CUDNN_RNN_CLIP_MINMAX) {
    op.clip_low = network.clip_low;
    op.clip_high = network.clip_high;
    op.clip_nan = network.clip_nan == CUDNN_NOT_PROPAGATE_NAN;
  }
  return op;
}

DType state_dtype(const cudnnRNNStruct& network) {
  return network.dtype == CUDNN_DATA_DOUBLE || network.compute == CUDNN_DATA_DOUBLE ? f64 : f32;
}

}  // namespace ashlar::cudnn

using namespace ashlar::cudnn;

cudnnStatus_t cudnnCreateRNNDescriptor(cudnnRNNDescriptor_t* rnn) {
  return guarded_legacy(__func__, [&] { create_object(rnn, "rnnDesc"); });
}

cudnnStatus_t cudnnDestroyRNNDescriptor(cudnnRNNDescriptor_t rnn) {
  return guarded_legacy(__func__, [&] { destroy_object(rnn, "rnnDesc"); });
}

cudnnStatus_t cudnnSetRNNDescriptor_v8(cudnnRNNDescriptor_t rnn, cudnnRNNAlgo_t algo,
                                       cudnnRNNMode_t cell, cudnnRNNBiasMode_t bias_mode,
                                       cudnnDirectionMode_t direction,
                                       cudnnRNNInputMode_t input_mode, cudnnDataType_t dtype,
                                       cudnnDataType_t compute, cudnnMathType_t math,
                                       int32_t input_size, int32_t hidden_size,
                                       int32_t projected_size, int32_t layers,
                                       cudnnDropoutDescriptor_t dropout, uint32_t flags) {
  return guarded_legacy(__func__, [&] {
    cudnnRNNStruct& fields = object(rnn, "rnnDesc");
    cudnnRNNStruct network = fields;
    network.algo = algo;
    network.cell = cell;
    network.bias_mode = bias_mode;
    network.direction = direction;
    network.input_mode = input_mode;
    network.dtype = dtype;
    network.compute = compute;
    network.math = math;
    network.input_size = input_size;
    network.hidden_size = hidden_size;
    network.projected_size = projected_size;
    network.layers = layers;
    network.dropout = dropout;
    network.flags = flags;
    check(network);
    network.is_set = true;
    fields = network;
  });
}

cudnnStatus_t cudnnGetRNNDescriptor_v8(cudnnRNNDescriptor_t rnn, cudnnRNNAlgo_t* algo,
                                       cudnnRNNMode_t* cell, cudnnRNNBiasMode_t* bias_mode,
                                       cudnnDirectionMode_t* direction,
                                       cudnnRNNInputMode_t* input_mode, cudnnDataType_t* dtype,
                                       cudnnDataType_t* compute, cudnnMathType_t* math,
                                       int32_t* input_size, int32_t* hidden_size,
                                       int32_t* projected_size, int32_t* layers,
                                       cudnnDropoutDescriptor_t* dropout, uint32_t* flags) {
  return guarded_legacy(__func__, [&] {
    const cudnnRNNStruct& network = network_of(rnn);
    write_optional(algo, network.algo);
    write_optional(cell, network.cell);
    write_optional(bias_mode, network.bias_mode);
    write_optional(direction, network.direction);
    write_optional(input_mode, network.input_mode);
    write_optional(dtype, network.dtype);
    write_optional(compute, network.compute);
    write_optional(math, network.math);
    write_optional(input_size, network.input_size);
    write_optional(hidden_size, network.hidden_size);
    write_optional(projected_size, network.projected_size);
    write_optional(layers, network.layers);
    write_optional(dropout, network.dropout);
    write_optional(flags, network.flags);
  });
}

cudnnStatus_t cudnnRNNSetClip_v8(cudnnRNNDescriptor_t rnn, cudnnRNNClipMode_t clip,
                                 cudnnNanPropagation_t nan, double lowest, double highest) {
  return guarded_legacy(__func__,
                        [&] { set_clip(object(rnn, "rnnDesc"), clip, nan, lowest, highest); });
}

cudnnStatus_t cudnnRNNSetClip_v9(cudnnRNNDescriptor_t rnn, cudnnRNNClipMode_t clip, double lowest,
                                 double highest) {
  return guarded_legacy(__func__, [&] {
    set_clip(object(rnn, "rnnDesc"), clip, CUDNN_PROPAGATE_NAN, lowest, highest);
  });
}

cudnnStatus_t cudnnRNNGetClip_v8(cudnnRNNDescriptor_t rnn, cudnnRNNClipMode_t* clip,
                                 cudnnNanPropagation_t* nan, double* lowest, double* highest) {
  return guarded_legacy(__func__, [&] {
    const cudnnRNNStruct& network = object(rnn, "rnnDesc");
    write_optional(clip, network.clip);
    write_optional(nan, network.clip_nan);
    write_optional(lowest, network.clip_low);
    write_optional(highest, network.clip_high);
  });
}

cudnnStatus_t cudnnRNNGetClip_v9(cudnnRNNDescriptor_t rnn, cudnnRNNClipMode_t* clip, double* lowest,
                                 double* highest) {
  return cudnnRNNGetClip_v8(rnn, clip, nullptr, lowest, highest);
}

// Nothing to prepare: each call compiles a plan for its sizes once and caches it.
cudnnStatus_t cudnnBuildRNNDynamic(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, int batch) {
  return guarded_legacy(__func__, [&] {
    object(handle, "handle");
    network_of(rnn);
    if (batch < 1) fail(CUDNN_STATUS_BAD_PARAM, "miniBatch: got {}, expected at least 1", batch);
  });
}

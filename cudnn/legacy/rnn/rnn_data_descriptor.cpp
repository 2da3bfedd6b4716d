#include "legacy/rnn/rnn_data_descriptor.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/data_type.hpp"
#include "core/guarded.hpp"
#include "core/objects.hpp"
#include "legacy/descriptor_helpers.hpp"

namespace ashlar::cudnn {

namespace {

void check(const cudnnRNNDataStruct& sequences) {
  require_floating(sequences.type, "dataType");
  if (sequences.layout < CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED ||
      sequences.layout > CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED)
    fail(CUDNN_STATUS_BAD_PARAM, "layout: got {}, expected 0 to 2",
         static_cast<int>(sequences.layout));
  for (const auto& [parameter, size] : {std::pair("maxSeqLength", sequences.max_length),
                                        {"batchSize", sequences.batch},
                                        {"vectorSize", sequences.vector_size}})
    if (size < 1) fail(CUDNN_STATUS_BAD_PARAM, "{}: got {}, expected at least 1", parameter, size);
}

}  // namespace

const cudnnRNNDataStruct& sequences_of(cudnnRNNDataDescriptor_t descriptor, const char* parameter) {
  const cudnnRNNDataStruct& sequences = object(descriptor, parameter);
  if (!sequences.is_set)
    fail(CUDNN_STATUS_BAD_PARAM,
         "{}: got a descriptor that was never set, expected cudnnSetRNNDataDescriptor() first",
         parameter);
  return sequences;
}

bool has_equal_lengths(const cudnnRNNDataStruct& sequences) {
  return std::all_of(sequences.lengths.begin(), sequences.lengths.end(),
                     [&](int length) { return length == sequences.max_length; });
}

bool is_packed(const cudnnRNNDataStruct& sequences) {
  return sequences.layout == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED &&
         !has_equal_lengths(sequences);
}

std::int64_t row_count(const cudnnRNNDataStruct& sequences) {
  return std::accumulate(sequences.lengths.begin(), sequences.lengths.end(), std::int64_t{0});
}

TensorSpec spec_of(const cudnnRNNDataStruct& sequences) {
  const std::int64_t steps = sequences.max_length, batch = sequences.batch,
                     features = sequences.vector_size;
  TensorSpec spec;
  spec.dtype = require_dtype(sequences.type, "dataType");
  if (is_packed(sequences)) {
    spec.dims = {row_count(sequences), features};
    spec.strides = {features, 1};
    return spec;
  }
  spec.dims = {steps, batch, features};
  spec.strides = sequences.layout == CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED
                     ? Dims{features, steps * features, 1}
                     : Dims{batch * features, features, 1};
  return spec;
}

}  // namespace ashlar::cudnn

using namespace ashlar::cudnn;

cudnnStatus_t cudnnCreateRNNDataDescriptor(cudnnRNNDataDescriptor_t* data) {
  return guarded_legacy(__func__, [&] { create_object(data, "rnnDataDesc"); });
}

cudnnStatus_t cudnnDestroyRNNDataDescriptor(cudnnRNNDataDescriptor_t data) {
  return guarded_legacy(__func__, [&] { destroy_object(data, "rnnDataDesc"); });
}

cudnnStatus_t cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t data, cudnnDataType_t dtype,
                                        cudnnRNNDataLayout_t layout, int max_length, int batch,
                                        int vector_size, const int lengths[], void* fill) {
  return guarded_legacy(__func__, [&] {
    cudnnRNNDataStruct& fields = object(data, "rnnDataDesc");
    cudnnRNNDataStruct sequences;
    sequences.type = dtype;
    sequences.layout = layout;
    sequences.max_length = max_length;
    sequences.batch = batch;
    sequences.vector_size = vector_size;
    check(sequences);
    required(lengths, "seqLengthArray");
    sequences.lengths.assign(lengths, lengths + batch);
    for (int n = 0; n < batch; ++n)
      if (lengths[n] < 0 || lengths[n] > max_length)
        fail(CUDNN_STATUS_BAD_PARAM, "seqLengthArray[{}]: got {}, expected 0 to maxSeqLength = {}",
             n, lengths[n], max_length);
    if (fill != nullptr) std::memcpy(sequences.fill.data(), fill, element_bytes(dtype));
    sequences.is_set = true;
    fields = std::move(sequences);
  });
}

cudnnStatus_t cudnnGetRNNDataDescriptor(cudnnRNNDataDescriptor_t data, cudnnDataType_t* dtype,
                                        cudnnRNNDataLayout_t* layout, int* max_length, int* batch,
                                        int* vector_size, int capacity, int lengths[], void* fill) {
  return guarded_legacy(__func__, [&] {
    const cudnnRNNDataStruct& sequences = sequences_of(data, "rnnDataDesc");
    if (capacity < 0)
      fail(CUDNN_STATUS_BAD_PARAM, "arrayLengthRequested: got {}, expected at least 0", capacity);
    if (capacity > 0)
      std::copy_n(sequences.lengths.begin(), std::min(capacity, sequences.batch),
                  required(lengths, "seqLengthArray"));
    write_optional(dtype, sequences.type);
    write_optional(layout, sequences.layout);
    write_optional(max_length, sequences.max_length);
    write_optional(batch, sequences.batch);
    write_optional(vector_size, sequences.vector_size);
    if (fill != nullptr) std::memcpy(fill, sequences.fill.data(), element_bytes(sequences.type));
  });
}

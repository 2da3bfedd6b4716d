#include "legacy/multi_head_attention/seq_data_descriptor.hpp"

#include <algorithm>
#include <cstring>

#include "core/data_type.hpp"
#include "core/guarded.hpp"
#include "core/objects.hpp"
#include "legacy/descriptor_helpers.hpp"

namespace ashlar::cudnn {

namespace {

constexpr int kAxes = CUDNN_SEQDATA_DIM_COUNT;

void set_axes(cudnnSeqDataStruct& sequences, const int dims[], const cudnnSeqDataAxis_t axes[]) {
  std::array<bool, kAxes> seen = {};
  double count = 1.0;
  for (int i = 0; i < kAxes; ++i) {
    const auto position = static_cast<std::size_t>(i);
    if (dims[i] < 1)
      fail(CUDNN_STATUS_BAD_PARAM, "dimA[{}]: got {}, expected at least 1", i, dims[i]);
    const int axis = static_cast<int>(axes[i]);
    if (axis < 0 || axis >= kAxes || seen[static_cast<std::size_t>(axis)])
      fail(CUDNN_STATUS_BAD_PARAM, "axes[{}]: got {}, expected each axis from 0 to {} once", i,
           axis, kAxes - 1);
    seen[static_cast<std::size_t>(axis)] = true;
    count *= dims[i];
    sequences.dims[position] = dims[i];
    sequences.axes[position] = axes[i];
  }
  require_countable("dimA", {count});
}

void set_lengths(cudnnSeqDataStruct& sequences, std::size_t count, const int lengths[]) {
  const auto expected =
      static_cast<std::size_t>(sequences.batch()) * static_cast<std::size_t>(sequences.beams());
  if (count == 0 && lengths == nullptr) {
    sequences.lengths.assign(expected, sequences.steps());
    return;
  }
  if (count != expected)
    fail(CUDNN_STATUS_BAD_PARAM, "seqLengthArraySize: got {}, expected batch * beams = {}", count,
         expected);
  required(lengths, "seqLengthArray");
  sequences.lengths.assign(lengths, lengths + count);
  for (std::size_t i = 0; i < count; ++i)
    if (lengths[i] < 0 || lengths[i] > sequences.steps())
      fail(CUDNN_STATUS_BAD_PARAM, "seqLengthArray[{}]: got {}, expected 0 to {}", i, lengths[i],
           sequences.steps());
}

}  // namespace

const cudnnSeqDataStruct& sequences_of(cudnnSeqDataDescriptor_t descriptor, const char* parameter) {
  const cudnnSeqDataStruct& sequences = object(descriptor, parameter);
  if (!sequences.is_set)
    fail(CUDNN_STATUS_BAD_PARAM,
         "{}: got a descriptor that was never set, expected cudnnSetSeqDataDescriptor() first",
         parameter);
  return sequences;
}

TensorSpec spec_of(const cudnnSeqDataStruct& sequences) {
  std::array<std::int64_t, kAxes> strides = {};
  std::int64_t stride = 1;
  for (int i = kAxes - 1; i >= 0; --i) {
    const auto axis = static_cast<std::size_t>(sequences.axes[static_cast<std::size_t>(i)]);
    strides[axis] = stride;
    stride *= sequences.dims[axis];
  }
  TensorSpec spec;
  spec.dtype = require_dtype(sequences.type, "dataType");
  spec.dims = {sequences.batch(), sequences.beams(), sequences.steps(), sequences.vector_size()};
  spec.strides = {strides[CUDNN_SEQDATA_BATCH_DIM], strides[CUDNN_SEQDATA_BEAM_DIM],
                  strides[CUDNN_SEQDATA_TIME_DIM], strides[CUDNN_SEQDATA_VECT_DIM]};
  return spec;
}

}  // namespace ashlar::cudnn

using namespace ashlar::cudnn;

cudnnStatus_t cudnnCreateSeqDataDescriptor(cudnnSeqDataDescriptor_t* data) {
  return guarded_legacy(__func__, [&] { create_object(data, "seqDataDesc"); });
}

cudnnStatus_t cudnnDestroySeqDataDescriptor(cudnnSeqDataDescriptor_t data) {
  return guarded_legacy(__func__, [&] { destroy_object(data, "seqDataDesc"); });
}

cudnnStatus_t cudnnSetSeqDataDescriptor(cudnnSeqDataDescriptor_t data, cudnnDataType_t dtype,
                                        int rank, const int dims[], const cudnnSeqDataAxis_t axes[],
                                        size_t count, const int lengths[], void* fill) {
  return guarded_legacy(__func__, [&] {
    cudnnSeqDataStruct& fields = object(data, "seqDataDesc");
    cudnnSeqDataStruct sequences;
    require_floating(dtype, "dataType");
    sequences.type = dtype;
    if (rank != kAxes) fail(CUDNN_STATUS_BAD_PARAM, "nbDims: got {}, expected {}", rank, kAxes);
    set_axes(sequences, required(dims, "dimA"), required(axes, "axes"));
    set_lengths(sequences, count, lengths);
    sequences.has_fill = fill != nullptr;
    if (fill != nullptr) std::memcpy(sequences.fill.data(), fill, element_bytes(dtype));
    sequences.is_set = true;
    fields = std::move(sequences);
  });
}

cudnnStatus_t cudnnGetSeqDataDescriptor(cudnnSeqDataDescriptor_t data, cudnnDataType_t* dtype,
                                        int* rank, int capacity, int dims[],
                                        cudnnSeqDataAxis_t axes[], size_t* count,
                                        size_t lengths_capacity, int lengths[], void* fill) {
  return guarded_legacy(__func__, [&] {
    const cudnnSeqDataStruct& sequences = sequences_of(data, "seqDataDesc");
    if (capacity < 0)
      fail(CUDNN_STATUS_BAD_PARAM, "nbDimsRequested: got {}, expected at least 0", capacity);
    const int copied = std::min(capacity, kAxes);
    if (dims != nullptr) std::copy_n(sequences.dims.begin(), copied, dims);
    if (axes != nullptr) std::copy_n(sequences.axes.begin(), copied, axes);
    if (lengths != nullptr)
      std::copy_n(sequences.lengths.begin(), std::min(lengths_capacity, sequences.lengths.size()),
                  lengths);
    write_optional(dtype, sequences.type);
    write_optional(rank, kAxes);
    write_optional(count, sequences.lengths.size());
    if (fill != nullptr && sequences.has_fill)
      std::memcpy(fill, sequences.fill.data(), element_bytes(sequences.type));
  });
}

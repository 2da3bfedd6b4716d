#include "legacy/tensor_descriptor.hpp"

#include <limits>

#include "core/data_type.hpp"
#include "core/guarded.hpp"
#include "core/objects.hpp"
#include "legacy/set_object.hpp"

namespace ashlar::cudnn {

namespace {

void require_extents(const Dims& dims) {
  for (int axis = 0; axis < dims.rank(); ++axis)
    if (dims[axis] < 1)
      fail(CUDNN_STATUS_BAD_PARAM, "dims[{}]: got {}, expected at least 1", axis, dims[axis]);
}

// The type, dims and vectors of a spec, without strides.
TensorSpec spec_without_strides(cudnnDataType_t type, const Dims& dims) {
  TensorSpec spec;
  spec.dtype = require_dtype(type, "dataType");
  spec.vector = vector_width(type);
  spec.dims = dims;
  require_extents(dims);
  element_count(dims);  // throws on 64-bit overflow
  if (spec.vector == 1) return spec;
  if (dims.rank() <= spec.vector_axis)
    fail(CUDNN_STATUS_BAD_PARAM, "nbDims: got {}, expected at least 2 with {}", dims.rank(),
         data_type_name(type));
  if (dims[spec.vector_axis] % spec.vector != 0)
    fail(CUDNN_STATUS_BAD_PARAM, "dims[1]: got {} channels, expected a multiple of {} with {}",
         dims[spec.vector_axis], spec.vector, data_type_name(type));
  return spec;
}

Dims scaled(Dims strides, std::int64_t factor) {
  for (std::int64_t& stride : strides) stride *= factor;
  return strides;
}

}  // namespace

TensorSpec packed_spec(cudnnDataType_t type, cudnnTensorFormat_t format, const Dims& dims) {
  if (format < CUDNN_TENSOR_NCHW || format > CUDNN_TENSOR_NCHW_VECT_C)
    fail(CUDNN_STATUS_BAD_PARAM, "format: got {}, expected a cudnnTensorFormat_t",
         static_cast<int>(format));
  TensorSpec spec = spec_without_strides(type, dims);
  if ((format == CUDNN_TENSOR_NCHW_VECT_C) != (spec.vector > 1))
    fail(CUDNN_STATUS_BAD_PARAM,
         "dataType: got {}, expected an x4 or x32 type with CUDNN_TENSOR_NCHW_VECT_C and with no "
         "other format",
         data_type_name(type));
  Dims units = dims;
  if (spec.vector > 1) units[spec.vector_axis] /= spec.vector;
  const Layout& layout = format == CUDNN_TENSOR_NHWC && dims.rank() > 2 ? channels_last : row_major;
  spec.strides = scaled(layout.strides_for(units), spec.vector);
  byte_size(spec);  // throws on 64-bit overflow
  return spec;
}

TensorSpec strided_spec(cudnnDataType_t type, const Dims& dims, const Dims& strides) {
  TensorSpec spec = spec_without_strides(type, dims);
  for (int axis = 0; axis < strides.rank(); ++axis)
    if (strides[axis] < 0)
      fail(CUDNN_STATUS_BAD_PARAM, "strides[{}]: got {}, expected at least 0", axis, strides[axis]);
  spec.strides = scaled(strides, spec.vector);
  byte_size(spec);
  return spec;
}

void set(cudnnTensorStruct& descriptor, cudnnDataType_t type, const TensorSpec& spec,
         bool has_explicit_strides) {
  descriptor.type = type;
  descriptor.spec = spec;
  descriptor.has_explicit_strides = has_explicit_strides;
  descriptor.is_set = true;
}

TensorSpec spec_of(cudnnTensorDescriptor_t descriptor, const char* parameter) {
  return set_object(descriptor, parameter).spec;
}

std::optional<TensorSpec> optional_spec_of(cudnnTensorDescriptor_t descriptor,
                                           const char* parameter) {
  if (descriptor == nullptr) return std::nullopt;
  return spec_of(descriptor, parameter);
}

Dims dims_of(int rank, const int values[], const char* parameter) {
  if (rank < 1 || rank > CUDNN_DIM_MAX)
    fail(CUDNN_STATUS_NOT_SUPPORTED, "nbDims: got {}, expected 1 to {}", rank, CUDNN_DIM_MAX);
  required(values, parameter);
  Dims dims;
  for (int axis = 0; axis < rank; ++axis) dims.push_back(values[axis]);
  return dims;
}

int to_int(std::int64_t value, const char* parameter) {
  if (value > std::numeric_limits<int>::max())
    fail(CUDNN_STATUS_NOT_SUPPORTED, "{}: got {}, expected a value that fits into an int",
         parameter, value);
  return static_cast<int>(value);
}

void copy_out(const Dims& values, int capacity, int into[], const char* parameter) {
  if (capacity < 0)
    fail(CUDNN_STATUS_BAD_PARAM, "nbDimsRequested: got {}, expected at least 0", capacity);
  if (capacity > 0) required(into, parameter);
  for (int axis = 0; axis < std::min(capacity, values.rank()); ++axis)
    into[axis] = to_int(values[axis], parameter);
}

std::int64_t byte_size(const TensorSpec& spec) {
  Tensor memory;
  memory.dtype = spec.dtype;
  memory.dims = spec.dims;
  memory.strides = spec.strides;
  if (spec.vector == 1) return ashlar::byte_size(memory);
  memory.dims[spec.vector_axis] /= spec.vector;
  return ashlar::byte_size(memory) + spec.vector - 1;  // an x4 or x32 element is a byte
}

void require_same_dims(const TensorSpec& a, const char* a_name, const TensorSpec& b,
                       const char* b_name) {
  if (a.dims != b.dims)
    fail(CUDNN_STATUS_BAD_PARAM, "{}.dims: got {}, expected {} as {} has", b_name,
         to_string(b.dims), to_string(a.dims), a_name);
}

void require_same_dtype(const TensorSpec& a, const char* a_name, const TensorSpec& b,
                        const char* b_name) {
  if (a.dtype != b.dtype)
    fail(CUDNN_STATUS_BAD_PARAM, "{}.dataType: got {}, expected {} as {} has", b_name,
         to_string(b.dtype), to_string(a.dtype), a_name);
}

}  // namespace ashlar::cudnn

using namespace ashlar::cudnn;
using ashlar::Dims;

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* tensor) {
  return guarded_legacy(__func__, [&] { create_object(tensor, "tensorDesc"); });
}

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t tensor, cudnnTensorFormat_t format,
                                         cudnnDataType_t dtype, int n, int c, int h, int w) {
  return guarded_legacy(__func__, [&] {
    auto& descriptor = object(tensor, "tensorDesc");
    set(descriptor, dtype, packed_spec(dtype, format, {n, c, h, w}));
  });
}

cudnnStatus_t cudnnSetTensor4dDescriptorEx(cudnnTensorDescriptor_t tensor, cudnnDataType_t dtype,
                                           int n, int c, int h, int w, int stride_n, int stride_c,
                                           int stride_h, int stride_w) {
  return guarded_legacy(__func__, [&] {
    auto& descriptor = object(tensor, "tensorDesc");
    set(descriptor, dtype,
        strided_spec(dtype, {n, c, h, w}, {stride_n, stride_c, stride_h, stride_w}), true);
  });
}

cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t tensor, cudnnDataType_t dtype,
                                         int rank, const int dims[], const int strides[]) {
  return guarded_legacy(__func__, [&] {
    auto& descriptor = object(tensor, "tensorDesc");
    const Dims extents = dims_of(rank, dims, "dimA");
    set(descriptor, dtype, strided_spec(dtype, extents, dims_of(rank, strides, "strideA")), true);
  });
}

cudnnStatus_t cudnnSetTensorNdDescriptorEx(cudnnTensorDescriptor_t tensor,
                                           cudnnTensorFormat_t format, cudnnDataType_t dtype,
                                           int rank, const int dims[]) {
  return guarded_legacy(__func__, [&] {
    auto& descriptor = object(tensor, "tensorDesc");
    set(descriptor, dtype, packed_spec(dtype, format, dims_of(rank, dims, "dimA")));
  });
}

// Returns the first four axes; missing axes are 0.
cudnnStatus_t cudnnGetTensor4dDescriptor(cudnnTensorDescriptor_t tensor, cudnnDataType_t* dtype,
                                         int* n, int* c, int* h, int* w, int* stride_n,
                                         int* stride_c, int* stride_h, int* stride_w) {
  return guarded_legacy(__func__, [&] {
    const TensorSpec spec = spec_of(tensor, "tensorDesc");
    const auto dim = [&](int axis) { return axis < spec.dims.rank() ? spec.dims[axis] : 0; };
    const auto stride = [&](int axis) {
      return axis < spec.dims.rank() ? spec.strides[axis] / spec.vector : 0;
    };
    *required(dtype, "dataType") = tensor->type;
    *required(n, "n") = to_int(dim(0), "n");
    *required(c, "c") = to_int(dim(1), "c");
    *required(h, "h") = to_int(dim(2), "h");
    *required(w, "w") = to_int(dim(3), "w");
    *required(stride_n, "nStride") = to_int(stride(0), "nStride");
    *required(stride_c, "cStride") = to_int(stride(1), "cStride");
    *required(stride_h, "hStride") = to_int(stride(2), "hStride");
    *required(stride_w, "wStride") = to_int(stride(3), "wStride");
  });
}

cudnnStatus_t cudnnGetTensorNdDescriptor(cudnnTensorDescriptor_t tensor, int capacity,
                                         cudnnDataType_t* dtype, int* rank, int dims[],
                                         int strides[]) {
  return guarded_legacy(__func__, [&] {
    const TensorSpec spec = spec_of(tensor, "tensorDesc");
    Dims unit_strides = spec.strides;
    for (std::int64_t& stride : unit_strides) stride /= spec.vector;
    copy_out(spec.dims, capacity, dims, "dimA");
    copy_out(unit_strides, capacity, strides, "strideA");
    *required(dtype, "dataType") = tensor->type;
    *required(rank, "nbDims") = spec.dims.rank();
  });
}

cudnnStatus_t cudnnGetTensorSizeInBytes(cudnnTensorDescriptor_t tensor, size_t* bytes) {
  return guarded_legacy(__func__, [&] {
    const TensorSpec spec = spec_of(tensor, "tensorDesc");
    std::int64_t size = byte_size(spec);
    // With explicit strides NVIDIA's library counts a whole vector per channel.
    if (tensor->has_explicit_strides && spec.vector > 1) {
      TensorSpec channels = spec;
      channels.vector = 1;
      size = byte_size(channels) + spec.vector - 1;
    }
    *required(bytes, "size") = static_cast<size_t>(size);
  });
}

cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t tensor) {
  return guarded_legacy(__func__, [&] { destroy_object(tensor, "tensorDesc"); });
}

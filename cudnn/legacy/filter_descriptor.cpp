#include "legacy/filter_descriptor.hpp"

#include "core/guarded.hpp"
#include "core/objects.hpp"
#include "legacy/set_object.hpp"
#include "legacy/tensor_descriptor.hpp"

namespace ashlar::cudnn {

TensorSpec spec_of(cudnnFilterDescriptor_t descriptor, const char* parameter) {
  return set_object(descriptor, parameter).spec;
}

void set(cudnnFilterStruct& descriptor, cudnnDataType_t type, cudnnTensorFormat_t format,
         const Dims& dims) {
  descriptor.spec = packed_spec(type, format, dims);
  descriptor.type = type;
  descriptor.format = format;
  descriptor.is_set = true;
}

}  // namespace ashlar::cudnn

using namespace ashlar::cudnn;

cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* filter_desc) {
  return guarded_legacy(__func__, [&] { create_object(filter_desc, "filterDesc"); });
}

cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t filter_desc, cudnnDataType_t dtype,
                                         cudnnTensorFormat_t format, int k, int c, int h, int w) {
  return guarded_legacy(__func__, [&] {
    set(object(filter_desc, "filterDesc"), dtype, format, {k, c, h, w});
  });
}

cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t filter_desc, cudnnDataType_t dtype,
                                         cudnnTensorFormat_t format, int rank, const int dims[]) {
  return guarded_legacy(__func__, [&] {
    auto& filter = object(filter_desc, "filterDesc");
    set(filter, dtype, format, dims_of(rank, dims, "filterDimA"));
  });
}

cudnnStatus_t cudnnGetFilter4dDescriptor(cudnnFilterDescriptor_t filter_desc,
                                         cudnnDataType_t* dtype, cudnnTensorFormat_t* format,
                                         int* k, int* c, int* h, int* w) {
  return guarded_legacy(__func__, [&] {
    const TensorSpec spec = spec_of(filter_desc, "filterDesc");
    if (spec.dims.rank() != 4)
      fail(CUDNN_STATUS_BAD_PARAM, "filterDesc.nbDims: got {}, expected 4", spec.dims.rank());
    *required(dtype, "dataType") = filter_desc->type;
    *required(format, "format") = filter_desc->format;
    *required(k, "k") = to_int(spec.dims[0], "k");
    *required(c, "c") = to_int(spec.dims[1], "c");
    *required(h, "h") = to_int(spec.dims[2], "h");
    *required(w, "w") = to_int(spec.dims[3], "w");
  });
}

cudnnStatus_t cudnnGetFilterNdDescriptor(cudnnFilterDescriptor_t filter_desc, int capacity,
                                         cudnnDataType_t* dtype, cudnnTensorFormat_t* format,
                                         int* rank, int dims[]) {
  return guarded_legacy(__func__, [&] {
    const TensorSpec spec = spec_of(filter_desc, "filterDesc");
    copy_out(spec.dims, capacity, dims, "filterDimA");
    *required(dtype, "dataType") = filter_desc->type;
    *required(format, "format") = filter_desc->format;
    *required(rank, "nbDims") = spec.dims.rank();
  });
}

cudnnStatus_t cudnnGetFilterSizeInBytes(cudnnFilterDescriptor_t filter_desc, size_t* bytes) {
  return guarded_legacy(__func__, [&] {
    *required(bytes, "size") = static_cast<size_t>(byte_size(spec_of(filter_desc, "filterDesc")));
  });
}

cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t filter_desc) {
  return guarded_legacy(__func__, [&] { destroy_object(filter_desc, "filterDesc"); });
}

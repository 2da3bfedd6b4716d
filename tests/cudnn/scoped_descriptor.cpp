#include "cudnn/scoped_descriptor.hpp"

#include <stdexcept>

namespace ashlar::cudnn::test {

std::string last_error() {
  std::string text(1024, '\0');
  cudnnGetLastErrorString(text.data(), text.size());
  return text.c_str();
}

namespace {

void must(cudnnStatus_t status) {
  if (status != CUDNN_STATUS_SUCCESS) throw std::logic_error(last_error());
}

}  // namespace

ScopedDescriptor::ScopedDescriptor(cudnnBackendDescriptorType_t type,
                                   std::initializer_list<Attribute> attributes) {
  must(cudnnBackendCreateDescriptor(type, &descriptor_));
  for (const auto& [name, values] : attributes) must(set(name, values));
}

cudnnStatus_t ScopedDescriptor::set(cudnnBackendAttributeName_t name, const Values& values) const {
  return cudnnBackendSetAttribute(descriptor_, name, values.type(), values.count(),
                                  values.elements());
}

ScopedDescriptor ScopedDescriptor::done() && {
  must(finalize());
  return std::move(*this);
}

ScopedDescriptor tensor(std::int64_t uid, const std::vector<std::int64_t>& dims,
                        cudnnDataType_t type) {
  std::vector<std::int64_t> strides(dims.size(), 1);
  for (std::size_t axis = dims.size(); axis > 1; --axis)
    strides[axis - 2] = strides[axis - 1] * dims[axis - 1];
  return ScopedDescriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR,
                          {{CUDNN_ATTR_TENSOR_DATA_TYPE, type},
                           {CUDNN_ATTR_TENSOR_DIMENSIONS, dims},
                           {CUDNN_ATTR_TENSOR_STRIDES, strides},
                           {CUDNN_ATTR_TENSOR_UNIQUE_ID, uid},
                           {CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, std::int64_t{16}}})
      .done();
}

}  // namespace ashlar::cudnn::test

#include "cudnn/bad_operation.hpp"

namespace ashlar::cudnn::test {

Call operation(cudnnBackendDescriptorType_t type, Tensors tensors, Parameters parameters,
               std::vector<ScopedDescriptor::Attribute> others) {
  return [=] {
    const ScopedDescriptor descriptor(type);
    std::int64_t uid = 0;
    for (const auto& [name, shape] : tensors) {
      const cudnnStatus_t status = descriptor.set(name, tensor(++uid, shape.dims, shape.type));
      if (status != CUDNN_STATUS_SUCCESS) return status;
    }
    for (const auto& [name, make] : parameters)
      if (const cudnnStatus_t status = descriptor.set(name, make())) return status;
    for (const auto& [name, values] : others)
      if (const cudnnStatus_t status = descriptor.set(name, values)) return status;
    return descriptor.finalize();
  };
}

}  // namespace ashlar::cudnn::test

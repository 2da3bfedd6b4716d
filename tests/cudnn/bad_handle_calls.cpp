// Bad calls with handles, versions and descriptor creation.
#include "cudnn/bad_calls.hpp"
#include "cudnn/scoped_descriptor.hpp"

namespace ashlar::cudnn::test {

namespace {

struct Handle {
  cudnnHandle_t handle = nullptr;
  Handle() { cudnnCreate(&handle); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { cudnnDestroy(handle); }
};

cudnnHandle_t destroyed_handle() {
  cudnnHandle_t handle = nullptr;
  cudnnCreate(&handle);
  cudnnDestroy(handle);
  return handle;
}

cudnnBackendDescriptor_t destroyed_descriptor() {
  cudnnBackendDescriptor_t descriptor = nullptr;
  cudnnBackendCreateDescriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR, &descriptor);
  cudnnBackendDestroyDescriptor(descriptor);
  return descriptor;
}

int foreign = 0;  // an address that is not an object of the library
const auto foreign_handle = reinterpret_cast<cudnnHandle_t>(&foreign);
const cudnnBackendDescriptor_t foreign_descriptor = &foreign;

// Values outside the enumerations, but inside the range of their underlying types.
constexpr auto kNoProperty = static_cast<libraryPropertyType>(3);
constexpr auto kNoDescriptorType = static_cast<cudnnBackendDescriptorType_t>(44);
constexpr auto kLargestDescriptorType = static_cast<cudnnBackendDescriptorType_t>(63);
constexpr auto kNoAttribute = static_cast<cudnnBackendAttributeName_t>(10);
constexpr auto kLargestAttribute = static_cast<cudnnBackendAttributeName_t>(4095);
constexpr auto kNoType = static_cast<cudnnBackendAttributeType_t>(31);

}  // namespace

BadCalls bad_handle_calls() {
  static cudaStream_t stream;
  static cudnnStatus_t pending;
  static cudnnBackendDescriptor_t created;
  static unsigned mask;
  static void* data;
  static cudnnCallback_t callback;
  return {
      {"create: no place", [] { return cudnnCreate(nullptr); }},
      {"destroy: twice", [] { return cudnnDestroy(destroyed_handle()); }},
      {"destroy: foreign", [] { return cudnnDestroy(foreign_handle); }},
      {"destroy: a descriptor",
       [] {
         const ScopedDescriptor x(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
         return cudnnDestroy(static_cast<cudnnHandle_t>(static_cast<void*>(x)));
       }},
      {"set stream: null handle", [] { return cudnnSetStream(nullptr, stream); }},
      {"set stream: destroyed handle", [] { return cudnnSetStream(destroyed_handle(), stream); }},
      {"set stream: foreign handle", [] { return cudnnSetStream(foreign_handle, stream); }},
      {"get stream: null handle", [] { return cudnnGetStream(nullptr, &stream); }},
      {"get stream: destroyed handle", [] { return cudnnGetStream(destroyed_handle(), &stream); }},
      {"get stream: no place", [] { return cudnnGetStream(Handle().handle, nullptr); }},
      {"property: no place", [] { return cudnnGetProperty(PATCH_LEVEL, nullptr); }},
      {"property: unknown",
       [] {
         int value = 0;
         return cudnnGetProperty(kNoProperty, &value);
       }},
      {"runtime error: null handle",
       [] { return cudnnQueryRuntimeError(nullptr, &pending, CUDNN_ERRQUERY_RAWCODE, nullptr); }},
      {"runtime error: no place",
       [] {
         return cudnnQueryRuntimeError(Handle().handle, nullptr, CUDNN_ERRQUERY_RAWCODE, nullptr);
       }},
      {"get callback: no mask", [] { return cudnnGetCallback(nullptr, &data, &callback); }},
      {"get callback: no data", [] { return cudnnGetCallback(&mask, nullptr, &callback); }},
      {"get callback: no function", [] { return cudnnGetCallback(&mask, &data, nullptr); }},

      {"create descriptor: no place",
       [] { return cudnnBackendCreateDescriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR, nullptr); }},
      {"create descriptor: type 44",
       [] { return cudnnBackendCreateDescriptor(kNoDescriptorType, &created); }},
      {"create descriptor: type 63",
       [] { return cudnnBackendCreateDescriptor(kLargestDescriptorType, &created); }},
      {"destroy descriptor: twice",
       [] { return cudnnBackendDestroyDescriptor(destroyed_descriptor()); }},
      {"destroy descriptor: foreign",
       [] { return cudnnBackendDestroyDescriptor(foreign_descriptor); }},
      {"destroy descriptor: a handle",
       [] {
         const Handle handle;
         return cudnnBackendDestroyDescriptor(handle.handle);
       }},
      {"initialize: null", [] { return cudnnBackendInitialize(nullptr); }},
      {"initialize: destroyed", [] { return cudnnBackendInitialize(destroyed_descriptor()); }},
      {"finalize: null", [] { return cudnnBackendFinalize(nullptr); }},
      {"finalize: destroyed", [] { return cudnnBackendFinalize(destroyed_descriptor()); }},
      {"finalize: foreign", [] { return cudnnBackendFinalize(foreign_descriptor); }},
      {"finalize: twice", [] { return tensor(1, {2}).finalize(); }},
      {"set: null descriptor",
       [] {
         return cudnnBackendSetAttribute(nullptr, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1,
                                         &foreign);
       }},
      {"set: destroyed descriptor",
       [] {
         return cudnnBackendSetAttribute(destroyed_descriptor(), CUDNN_ATTR_TENSOR_UNIQUE_ID,
                                         CUDNN_TYPE_INT64, 1, &foreign);
       }},
      {"get: null descriptor",
       [] {
         return cudnnBackendGetAttribute(nullptr, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 0,
                                         nullptr, nullptr);
       }},
      {"get: destroyed descriptor",
       [] {
         return cudnnBackendGetAttribute(destroyed_descriptor(), CUDNN_ATTR_TENSOR_UNIQUE_ID,
                                         CUDNN_TYPE_INT64, 0, nullptr, nullptr);
       }},
      {"set: attribute 10",
       [] {
         return ScopedDescriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR)
             .set(kNoAttribute, std::int64_t{1});
       }},
      {"set: attribute 4095",
       [] {
         return ScopedDescriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR)
             .set(kLargestAttribute, std::int64_t{1});
       }},
      {"set: type 31",
       [] {
         return cudnnBackendSetAttribute(ScopedDescriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR),
                                         CUDNN_ATTR_TENSOR_UNIQUE_ID, kNoType, 1, &foreign);
       }},
      {"get: type 31",
       [] {
         return cudnnBackendGetAttribute(tensor(1, {2}), CUDNN_ATTR_TENSOR_UNIQUE_ID, kNoType, 0,
                                         nullptr, nullptr);
       }},
  };
}

}  // namespace ashlar::cudnn::test

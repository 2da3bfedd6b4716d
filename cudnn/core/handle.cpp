#include "core/handle.hpp"

#include <ashlar/device.hpp>

#include "core/guarded.hpp"
#include "core/objects.hpp"
#include "core/settings.hpp"

using namespace ashlar::cudnn;

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  return guarded(__func__, [&] {
    const std::string& requested = settings().device;
    const ashlar::Device device =
        requested.empty() ? ashlar::Device::current() : ashlar::Device::named(requested);
    create_object(handle, "handle", cudnnContext{device});
  });
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  return guarded(__func__, [&] { destroy_object(handle, "handle"); });
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  return guarded(__func__, [&] { object(handle, "handle").stream = stream; });
}

cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t* stream) {
  return guarded(__func__, [&] { *required(stream, "stream") = object(handle, "handle").stream; });
}

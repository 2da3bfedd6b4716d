#include "core/handle.hpp"

#include <ashlar/runtime.hpp>

#include "core/answer.hpp"
#include "core/objects.hpp"
#include "core/settings.hpp"

using namespace ashlar::cudnn;

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  return answer(__func__, [&] {
    const std::string& asked = settings().device;
    const ashlar::Device device =
        asked.empty() ? ashlar::current_device() : ashlar::Device::named(asked);
    create_object(handle, "handle", cudnnContext{device});
  });
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  return answer(__func__, [&] { destroy_object(handle, "handle"); });
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  return answer(__func__, [&] { object(handle, "handle").stream = stream; });
}

cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t* stream) {
  return answer(__func__, [&] { *required(stream, "stream") = object(handle, "handle").stream; });
}

// current_device() and stream-ordered copies.
#include <ashlar/runtime.hpp>

#include "api/backends.hpp"
#include "cuda/cuda_device.hpp"

namespace ashlar {

Device current_device() {
  if (const auto ordinal = cuda::current_ordinal()) return Device(cuda::detect_gpu(*ordinal));
  return Device::best();
}

void upload(const Device& device, void* to, const void* from_host, std::int64_t bytes,
            void* stream) {
  backend_for(device.props().kind).upload(device.props(), to, from_host, bytes, stream);
}

void enqueue_upload(const Device& device, void* to, std::span<const std::int32_t> words,
                    void* stream) {
  backend_for(device.props().kind).enqueue_upload(device.props(), to, words, stream);
}

void download(const Device& device, void* to_host, const void* from, std::int64_t bytes,
              void* stream) {
  backend_for(device.props().kind).download(device.props(), to_host, from, bytes, stream);
}

void fill(const Device& device, void* to, std::byte value, std::int64_t bytes, void* stream) {
  backend_for(device.props().kind).fill(device.props(), to, value, bytes, stream);
}

}  // namespace ashlar

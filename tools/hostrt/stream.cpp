#include "stream.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "device.hpp"
#include "error.hpp"
#include "event.hpp"
#include "memory.hpp"
#include "registry.hpp"

using namespace ashlar::hostrt;

struct CUstream_st {
  unsigned int flags;
  int priority;
  unsigned long long id;
  std::mutex mutex = {};
  std::shared_ptr<Capture> capture = {};  // may have ended

  CUstream_st(unsigned int flags_, int priority_, unsigned long long id_)
      : flags(flags_), priority(priority_), id(id_) {}
};

namespace {

Registry<CUstream_st>& streams() { return Registry<CUstream_st>::instance(); }

// The null stream, cudaStreamLegacy and cudaStreamPerThread: they always exist.
bool is_built_in(cudaStream_t stream) {
  return stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread;
}

// Work runs synchronously, so there is nothing to wait for; waiting on a captured stream is an
// error.
cudaError_t wait(cudaStream_t stream) {
  if (const auto capture = capture_of(stream)) {
    capture->is_invalid = true;
    return cudaErrorStreamCaptureUnsupported;
  }
  return check(stream);
}

// Reads a property of a stream; `built_in` is the value for the built-in streams.
template <typename T, typename Read>
cudaError_t get(cudaStream_t stream, T* out, T built_in, Read&& read) {
  if (out == nullptr) {
    return record_error(cudaErrorInvalidValue);
  }
  if (is_built_in(stream)) {
    *out = built_in;
    return cudaSuccess;
  }
  const auto object = streams().find(stream);
  if (object == nullptr) {
    return record_error(cudaErrorInvalidResourceHandle);
  }
  *out = read(*object);
  return cudaSuccess;
}

}  // namespace

namespace ashlar::hostrt {

cudaError_t check(cudaStream_t stream) {
  return is_built_in(stream) || streams().find(stream) != nullptr ? cudaSuccess
                                                                  : cudaErrorInvalidResourceHandle;
}

std::shared_ptr<Capture> capture_of(cudaStream_t stream) {
  const auto object = is_built_in(stream) ? nullptr : streams().find(stream);
  if (object == nullptr) {
    return nullptr;
  }
  const std::lock_guard lock(object->mutex);
  return object->capture != nullptr && !object->capture->is_over ? object->capture : nullptr;
}

void join(cudaStream_t stream, std::shared_ptr<Capture> capture) {
  if (const auto object = streams().find(stream)) {
    const std::lock_guard lock(object->mutex);
    object->capture = std::move(capture);
  }
}

void destroy_streams() { streams().clear(); }

}  // namespace ashlar::hostrt

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  return cudaStreamCreateWithPriority(stream, flags, kLeastPriority);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags, int priority) {
  static std::atomic<unsigned long long> next_id{3};  // after the built-in streams
  if (stream == nullptr || (flags & ~static_cast<unsigned int>(cudaStreamNonBlocking)) != 0) {
    return record_error(cudaErrorInvalidValue);
  }
  const int clamped = std::clamp(priority, kGreatestPriority, kLeastPriority);
  *stream = streams().add(std::make_shared<CUstream_st>(flags, clamped, next_id++));
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return record_error(streams().remove(stream) ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return record_error(wait(stream)); }
cudaError_t cudaStreamQuery(cudaStream_t stream) { return record_error(wait(stream)); }

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
  if ((flags & ~static_cast<unsigned int>(cudaEventWaitExternal)) != 0) {
    return record_error(cudaErrorInvalidValue);
  }
  if (!is_event(event) || check(stream) != cudaSuccess) {
    return record_error(cudaErrorInvalidResourceHandle);
  }
  if (auto capture = capture_of_event(event)) {
    join(stream, std::move(capture));
  }
  return cudaSuccess;
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int* flags) {
  return get(stream, flags, 0U, [](const CUstream_st& s) { return s.flags; });
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  return get(stream, priority, kLeastPriority, [](const CUstream_st& s) { return s.priority; });
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
  return get(stream, device, 0, [](const CUstream_st&) { return 0; });
}

cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
  const unsigned long long fixed = stream == cudaStreamPerThread ? 2 : 1;
  return get(stream, id, fixed, [](const CUstream_st& s) { return s.id; });
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback,
                                  void* user_data, unsigned int flags) {
  if (callback == nullptr || flags != 0) {
    return record_error(cudaErrorInvalidValue);
  }
  const cudaError_t error = check(stream);
  return error != cudaSuccess ? record_error(error)
                              : submit(stream, [=] { callback(stream, cudaSuccess, user_data); });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* user_data) {
  if (function == nullptr) {
    return record_error(cudaErrorInvalidValue);
  }
  const cudaError_t error = check(stream);
  return error != cudaSuccess ? record_error(error) : submit(stream, [=] { function(user_data); });
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void* pointer, size_t,
                                     unsigned int flags) {
  const auto block = Memory::instance().find(pointer);
  if (!block || block->type != cudaMemoryTypeManaged || flags == 0 || flags > cudaMemAttachSingle ||
      (flags & (flags - 1)) != 0) {
    return record_error(cudaErrorInvalidValue);
  }
  return record_error(check(stream));
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  thread_local cudaStreamCaptureMode current = cudaStreamCaptureModeGlobal;
  if (mode == nullptr || *mode < cudaStreamCaptureModeGlobal ||
      *mode > cudaStreamCaptureModeRelaxed) {
    return record_error(cudaErrorInvalidValue);
  }
  std::swap(*mode, current);
  return cudaSuccess;
}

cudaError_t cudaDeviceReset() {
  destroy_streams();
  destroy_events();
  Memory::instance().release_all();
  return cudaSuccess;
}

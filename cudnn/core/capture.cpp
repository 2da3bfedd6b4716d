#include "core/capture.hpp"

#include <dlfcn.h>

#include <atomic>
#include <memory>

namespace ashlar::cudnn {

namespace {

using Work = std::function<void()>;
using Capture = int (*)(cudaStream_t, void (*)(void*), void*, void (*)(void*));

// ashlar_hostrt_capture of tools/hostrt; null when it is not loaded. The process may load it after
// libcudnn, so a miss is not cached.
Capture find_hostrt_capture() {
  static std::atomic<Capture> known{nullptr};
  if (known == nullptr) {
    for (const char* name : {"libcudart.so.13", "libcudart.so.12"}) {
      void* library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
      if (library == nullptr) continue;
      if (void* found = dlsym(library, "ashlar_hostrt_capture"); found != nullptr) {
        known = reinterpret_cast<Capture>(found);
        break;
      }
      dlclose(library);
    }
  }
  return known;
}

}  // namespace

bool is_captured(const Device& device, cudaStream_t stream) {
  if (stream == nullptr || device.props().kind != DeviceKind::cpu) return false;
  const Capture capture = find_hostrt_capture();
  return capture != nullptr && capture(stream, nullptr, nullptr, nullptr) != 0;
}

void record_work(cudaStream_t stream, std::function<void()> work) {
  const auto run = [](void* data) { (*static_cast<Work*>(data))(); };
  const auto release = [](void* data) { delete static_cast<Work*>(data); };
  auto owner = std::make_unique<Work>(std::move(work));
  if (find_hostrt_capture()(stream, run, owner.get(), release) != 0) owner.release();
}

}  // namespace ashlar::cudnn

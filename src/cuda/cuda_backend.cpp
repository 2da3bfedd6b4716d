#include "cuda/cuda_backend.hpp"

#include <mutex>

#include "cuda/cublaslt/cublaslt_api.hpp"
#include "cuda/driver/context.hpp"
#include "cuda/driver/recorded_graph.hpp"
#include "cuda/driver/stream_event.hpp"
#include "cuda/engine_table.hpp"
#include "cuda/engines/engines.hpp"

namespace ashlar::cuda {

namespace {

StreamHandle handle(void* stream) { return static_cast<StreamHandle>(stream); }
DeviceAddress address(const void* memory) { return reinterpret_cast<DeviceAddress>(memory); }

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(const Engine& last_resort) : host_(make_host_engine(last_resort)) {}

  // Created on first use: programs without GPU plans load no CUDA library.
  EngineTable engines() const override {
    std::call_once(engines_made_, [this] {
      if (cublaslt().api != nullptr) engines_.push_back(&cublaslt_engine());
      for (const Engine* engine : engine_table()) engines_.push_back(engine);
      engines_.push_back(host_.get());
    });
    return engines_;
  }
  // Device memory is scarce, and streams can wait for each other on the device.
  int owned_slots() const override { return 2; }

  std::byte* allocate(const DeviceProps& device, std::int64_t bytes) const override {
    const ContextScope scope(device.ordinal);
    DeviceAddress memory = 0;
    check(driver_api().allocate(&memory, static_cast<std::size_t>(bytes)),
          fmt::format("allocating {} bytes on the GPU", bytes).c_str());
    return reinterpret_cast<std::byte*>(memory);
  }
  void release(const DeviceProps& device, std::byte* memory, std::int64_t) const noexcept override {
    // A failure is ignored: the memory is freed with the process.
    try {
      const ContextScope scope(device.ordinal);
      driver_api().release(address(memory));
    } catch (const Error&) {
    }
  }

  void upload(const DeviceProps& device, void* to, const void* from, std::int64_t bytes,
              void* stream) const override {
    if (bytes == 0) return;
    const ContextScope scope(device.ordinal);
    check(driver_api().copy_to_device(address(to), from, static_cast<std::size_t>(bytes),
                                      handle(stream)),
          "copying to the GPU");
    synchronize(device, stream);
  }
  void enqueue_upload(const DeviceProps& device, void* to, std::span<const std::int32_t> words,
                      void* stream) const override {
    if (words.empty()) return;
    const ContextScope scope(device.ordinal);
    if (is_capturing(stream)) {
      // A copy node would read the host memory at every launch of the graph; memset nodes hold
      // their values.
      for (std::size_t i = 0; i < words.size(); ++i)
        check(driver_api().fill_words(address(to) + sizeof(words[0]) * i,
                                      static_cast<unsigned>(words[i]), 1, handle(stream)),
              "recording values");
      return;
    }
    // The driver copies pageable memory into a staging buffer before it returns. The caller's may
    // be pinned, which the GPU would read later.
    const std::vector<std::int32_t> pageable(words.begin(), words.end());
    check(driver_api().copy_to_device(address(to), pageable.data(), words.size_bytes(),
                                      handle(stream)),
          "copying to the GPU");
  }
  void download(const DeviceProps& device, void* to, const void* from, std::int64_t bytes,
                void* stream) const override {
    if (bytes == 0) return;
    const ContextScope scope(device.ordinal);
    check(driver_api().copy_to_host(to, address(from), static_cast<std::size_t>(bytes),
                                    handle(stream)),
          "copying from the GPU");
    synchronize(device, stream);
  }
  void fill(const DeviceProps& device, void* to, std::byte value, std::int64_t bytes,
            void* stream) const override {
    if (bytes == 0) return;
    const ContextScope scope(device.ordinal);
    check(driver_api().fill_bytes(address(to), static_cast<unsigned char>(value),
                                  static_cast<std::size_t>(bytes), handle(stream)),
          "filling memory of the GPU");
  }
  void synchronize(const DeviceProps& device, void* stream) const override {
    const ContextScope scope(device.ordinal);
    check(driver_api().synchronize_stream(handle(stream)), "waiting for the GPU");
    rethrow_host_failure(device.ordinal);
  }
  std::unique_ptr<Marker> marker(const DeviceProps& device) const override {
    return std::make_unique<StreamEvent>(device.ordinal);
  }
  std::unique_ptr<Recording> recording(const DeviceProps& device,
                                       std::function<void(void* stream)> work) const override {
    return std::make_unique<RecordedGraph>(device.ordinal, work);
  }

 private:
  std::unique_ptr<Engine> host_;
  mutable std::once_flag engines_made_;
  mutable std::vector<const Engine*> engines_;
};

}  // namespace

std::unique_ptr<Backend> make_backend(const Engine& last_resort) {
  return std::make_unique<CudaBackend>(last_resort);
}

}  // namespace ashlar::cuda

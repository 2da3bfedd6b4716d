#include "cuda/driver/loaded_kernel.hpp"

#include "base/fail.hpp"
#include "cuda/driver/context.hpp"

namespace ashlar::cuda {

struct LoadedKernel::Code {
  LibraryHandle library = nullptr;
  explicit Code(const std::string& cubin, const std::string& name) {
    check(
        driver_api().load_library(&library, cubin.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
        fmt::format("loading kernel '{}'", name).c_str());
  }
  // Fails only where the context is gone already.
  ~Code() { driver_api().unload_library(library); }
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
};

LoadedKernel::LoadedKernel(DeviceOrdinal device, const std::string& cubin, const std::string& name,
                           unsigned shared_bytes)
    : name_(name), device_(device), shared_bytes_(shared_bytes) {
  const ContextScope scope(device);
  const DriverApi& api = driver_api();
  code_ = std::make_shared<Code>(cubin, name);
  const std::string what = fmt::format("loading kernel '{}'", name);
  check(api.library_kernel(&kernel_, code_->library, name.c_str()), what.c_str());
  constexpr unsigned kWithoutAsking = 48 << 10;
  if (shared_bytes > kWithoutAsking)
    check(api.set_kernel_attribute(KernelAttribute::dynamic_shared_bytes,
                                   static_cast<int>(shared_bytes), kernel_, device),
          what.c_str());
  check(api.kernel_function(&function_, kernel_), what.c_str());
}

void LoadedKernel::launch(StreamHandle stream, const Grid& grid, unsigned threads,
                          void* arguments) const {
  const LaunchConfig config{grid.x, grid.y,        grid.z, threads, 1,
                            1,      shared_bytes_, stream, nullptr, 0};
  void* parameters[] = {arguments};
  // A kernel handle stands for its function in whichever context is current.
  const Result result =
      driver_api().launch(&config, reinterpret_cast<FunctionHandle>(kernel_), parameters, nullptr);
  if (result != Result::success)
    check(result, fmt::format("launching kernel '{}' ({} x {} x {} blocks of {} threads)", name_,
                              grid.x, grid.y, grid.z, threads)
                      .c_str());
}

int LoadedKernel::registers() const {
  int value = 0;
  check(driver_api().kernel_attribute(&value, KernelAttribute::registers, kernel_, device_),
        "asking for registers");
  return value;
}

int LoadedKernel::local_bytes() const {
  int value = 0;
  check(driver_api().kernel_attribute(&value, KernelAttribute::local_bytes, kernel_, device_),
        "asking for local memory");
  return value;
}

}  // namespace ashlar::cuda

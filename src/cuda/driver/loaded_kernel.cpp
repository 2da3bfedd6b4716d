#include "cuda/driver/loaded_kernel.hpp"

#include <mutex>

#include "base/fail.hpp"

namespace ashlar::cuda {

namespace {

// Raises the kernel's dynamic shared-memory limit, a single value in the driver, to the maximum
// over its users.
void allow_shared_bytes(KernelHandle kernel, DeviceOrdinal device, unsigned bytes,
                        const char* what) {
  constexpr unsigned kWithoutAsking = 32 << 10;  // below 48 KiB including static shared memory
  if (bytes <= kWithoutAsking) return;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const DriverApi& api = driver_api();
  int allowed = 0;
  check(api.kernel_attribute(&allowed, KernelAttribute::dynamic_shared_bytes, kernel, device),
        what);
  if (allowed < static_cast<int>(bytes))
    check(api.set_kernel_attribute(KernelAttribute::dynamic_shared_bytes, static_cast<int>(bytes),
                                   kernel, device),
          what);
}

}  // namespace

LoadedCode::LoadedCode(const std::string& cubin, const std::string& name) {
  check(
      driver_api().load_library(&library_, cubin.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
      fmt::format("loading kernel '{}'", name).c_str());
}

// Fails only where the context no longer exists.
LoadedCode::~LoadedCode() { driver_api().unload_library(library_); }

LoadedKernel::LoadedKernel(DeviceOrdinal device, std::shared_ptr<const LoadedCode> code,
                           const std::string& name, unsigned shared_bytes,
                           const std::string& purpose)
    : code_(std::move(code)),
      title_(purpose.empty() ? fmt::format("kernel '{}'", name)
                             : fmt::format("kernel '{}' of '{}'", name, purpose)),
      device_(device),
      shared_bytes_(shared_bytes) {
  const ContextScope scope(device);
  const DriverApi& api = driver_api();
  const std::string what = "loading " + title_;
  check(api.library_kernel(&kernel_, code_->library(), name.c_str()), what.c_str());
  allow_shared_bytes(kernel_, device, shared_bytes, what.c_str());
  // A CUkernel handle stands for its function in the current context.
  anywhere_ = in_primary_ = reinterpret_cast<FunctionHandle>(kernel_);
  FunctionHandle here = nullptr;
  check(api.kernel_function(&here, kernel_), what.c_str());
  if (scope.is_primary()) in_primary_ = here;
}

void LoadedKernel::launch(const ContextScope& scope, StreamHandle stream, const LaunchForm& form,
                          void* arguments) const {
  LaunchAttribute attributes[3];
  unsigned count = 0;
  if (form.cooperative) {
    attributes[count] = {LaunchAttributeId::cooperative, 0, {}};
    attributes[count++].value.cooperative = 1;
  }
  if (form.cluster > 1) {
    attributes[count] = {LaunchAttributeId::cluster_dimension, 0, {}};
    attributes[count++].value.cluster = {form.cluster, 1, 1};
  }
  if (form.is_dependent_launch) {
    attributes[count] = {LaunchAttributeId::programmatic_serialization, 0, {}};
    attributes[count++].value.programmatic_serialization = 1;
  }
  const Grid& grid = form.grid;
  const LaunchConfig config{grid.x, grid.y,        grid.z, form.threads, 1,
                            1,      shared_bytes_, stream, attributes,   count};
  void* parameters[] = {arguments};
  const Result result = driver_api().launch(&config, scope.is_primary() ? in_primary_ : anywhere_,
                                            parameters, nullptr);
  if (result != Result::success)
    check(result, fmt::format("launching {} ({} x {} x {} blocks of {} threads)", title_, grid.x,
                              grid.y, grid.z, form.threads)
                      .c_str());
}

void LoadedKernel::wait(StreamHandle stream) const {
  const Result result = driver_api().synchronize_stream(stream);
  if (result != Result::success) check(result, ("running " + title_).c_str());
}

int LoadedKernel::registers() const {
  int value = 0;
  check(driver_api().kernel_attribute(&value, KernelAttribute::registers, kernel_, device_),
        "querying the register count");
  return value;
}

int LoadedKernel::local_bytes() const {
  int value = 0;
  check(driver_api().kernel_attribute(&value, KernelAttribute::local_bytes, kernel_, device_),
        "querying local memory");
  return value;
}

}  // namespace ashlar::cuda

#include "cuda/driver/driver_api.hpp"

#include "base/fail.hpp"
#include "base/shared_library.hpp"

namespace ashlar::cuda {

namespace {

constexpr int kOldestVersion = 12000;  // the first with context-independent kernels (cuLibrary*)

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

// Returns the first missing symbol, or null.
const char* load_functions(const SharedLibrary& library, DriverApi& api) {
  const char* missing = nullptr;
  const auto load = [&](auto*& function, const char* name) {
    if (!library.load(function, name) && missing == nullptr) missing = name;
  };
  load(api.init, "cuInit");
  load(api.driver_version, "cuDriverGetVersion");
  load(api.error_name, "cuGetErrorName");
  load(api.error_text, "cuGetErrorString");
  load(api.device_count, "cuDeviceGetCount");
  load(api.device_get, "cuDeviceGet");
  load(api.device_name, "cuDeviceGetName");
  load(api.device_attribute, "cuDeviceGetAttribute");
  load(api.device_memory, "cuDeviceTotalMem_v2");
  load(api.retain_primary_context, "cuDevicePrimaryCtxRetain");
  load(api.primary_context_state, "cuDevicePrimaryCtxGetState");
  load(api.current_context, "cuCtxGetCurrent");
  load(api.push_context, "cuCtxPushCurrent_v2");
  load(api.pop_context, "cuCtxPopCurrent_v2");
  load(api.context_device, "cuCtxGetDevice");
  load(api.synchronize_context, "cuCtxSynchronize");
  load(api.load_library, "cuLibraryLoadData");
  load(api.unload_library, "cuLibraryUnload");
  load(api.library_kernel, "cuLibraryGetKernel");
  load(api.kernel_function, "cuKernelGetFunction");
  load(api.kernel_attribute, "cuKernelGetAttribute");
  load(api.set_kernel_attribute, "cuKernelSetAttribute");
  load(api.launch, "cuLaunchKernelEx");
  load(api.blocks_per_sm, "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  library.load(api.encode_tiled, "cuTensorMapEncodeTiled");
  library.load(api.encode_im2col, "cuTensorMapEncodeIm2col");
  library.load(api.replace_address, "cuTensorMapReplaceAddress");
  load(api.allocate, "cuMemAlloc_v2");
  load(api.release, "cuMemFree_v2");
  load(api.copy_to_device, "cuMemcpyHtoDAsync_v2");
  load(api.copy_to_host, "cuMemcpyDtoHAsync_v2");
  load(api.copy_on_device, "cuMemcpyDtoDAsync_v2");
  load(api.fill_bytes, "cuMemsetD8Async");
  load(api.fill_words, "cuMemsetD32Async");
  load(api.allocate_host, "cuMemHostAlloc");
  load(api.release_host, "cuMemFreeHost");
  load(api.create_stream, "cuStreamCreate");
  load(api.destroy_stream, "cuStreamDestroy_v2");
  load(api.synchronize_stream, "cuStreamSynchronize");
  load(api.stream_context, "cuStreamGetCtx");
  load(api.wait_event, "cuStreamWaitEvent");
  load(api.call_host, "cuLaunchHostFunc");
  load(api.is_capturing, "cuStreamIsCapturing");
  load(api.begin_capture, "cuStreamBeginCapture_v2");
  load(api.end_capture, "cuStreamEndCapture");
  load(api.create_event, "cuEventCreate");
  load(api.destroy_event, "cuEventDestroy_v2");
  load(api.record_event, "cuEventRecord");
  load(api.synchronize_event, "cuEventSynchronize");
  load(api.elapsed_milliseconds, "cuEventElapsedTime");
  load(api.create_graph, "cuGraphCreate");
  load(api.instantiate_graph, "cuGraphInstantiateWithFlags");
  load(api.launch_graph, "cuGraphLaunch");
  load(api.destroy_graph, "cuGraphDestroy");
  load(api.destroy_graph_exec, "cuGraphExecDestroy");
  return missing;
}

Driver open_driver() {
  Driver driver;
  const SharedLibrary library = SharedLibrary::open("libcuda.so.1");
  if (!library.is_open()) {
    driver.reason = fmt::format("no NVIDIA driver: {}", library.error());
    return driver;
  }
  driver.path = library.path();
  static DriverApi api;
  const char* missing = load_functions(library, api);
  if (api.driver_version != nullptr) api.driver_version(&driver.version);
  if (driver.version < kOldestVersion || missing != nullptr) {
    driver.reason =
        fmt::format("the NVIDIA driver is too old: {} offers CUDA {}{}, Ashlar needs {} or newer",
                    driver.path, version_text(driver.version),
                    missing != nullptr ? fmt::format(" without {}", missing) : std::string(),
                    version_text(kOldestVersion));
    return driver;
  }
  const Result started = api.init(0);
  if (started != Result::success && started != Result::no_device) {
    const char* text = nullptr;
    api.error_text(started, &text);
    driver.reason = fmt::format("the NVIDIA driver does not start: {}",
                                text != nullptr ? text : "unknown error");
    return driver;
  }
  if (started == Result::no_device || api.device_count(&driver.devices) != Result::success ||
      driver.devices == 0) {
    driver.reason = "the NVIDIA driver finds no GPU (is CUDA_VISIBLE_DEVICES empty?)";
    return driver;
  }
  driver.api = &api;
  return driver;
}

}  // namespace

const Driver& driver() {
  static const Driver opened = open_driver();
  return opened;
}

const DriverApi& driver_api() {
  const Driver& opened = driver();
  if (opened.api == nullptr) fail(ErrorCode::device, "cuda: {}", opened.reason);
  return *opened.api;
}

std::string describe(Result result) {
  const char *name = nullptr, *text = nullptr;
  if (const DriverApi* api = driver().api) {
    api->error_name(result, &name);
    api->error_text(result, &text);
  }
  return fmt::format("{} ({})", text != nullptr ? text : "unknown error",
                     name != nullptr ? name : fmt::format("{}", static_cast<int>(result)).c_str());
}

void check(Result result, const char* what) {
  if (result == Result::success) return;
  const ErrorCode code =
      result == Result::out_of_memory ? ErrorCode::out_of_memory : ErrorCode::device;
  const char* advice = "";
  switch (result) {
    case Result::illegal_address:
    case Result::misaligned_address:
    case Result::launch_failed:
      advice =
          "; this kernel, or an earlier one, accessed invalid memory: ASHLAR_CUDA_SYNC=1 tells "
          "which, compute-sanitizer where";
      break;
    case Result::launch_out_of_resources:
      advice = "; the launch asks for more registers or shared memory than this GPU has";
      break;
    case Result::no_binary_for_gpu:
    case Result::invalid_image: advice = "; the kernel was compiled for another GPU"; break;
    case Result::out_of_memory: advice = "; free device memory or grant a smaller workspace"; break;
    default: break;
  }
  fail(code, "cuda: {}: {}{}", what, describe(result), advice);
}

}  // namespace ashlar::cuda

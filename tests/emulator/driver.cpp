// Emulated libcuda: devices, contexts, memory. The functions match the declarations of
// src/cuda/driver/driver_api.hpp; a type mismatch is a compile error.
#include <array>
#include <cstring>

#include "memory.hpp"
#include "objects.hpp"
#include "options.hpp"

namespace emulated {

namespace {

constexpr int kMaxDevices = 8;
std::array<ContextObject, kMaxDevices> primary_contexts = {
    {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}}};
thread_local std::vector<ContextHandle> context_stack;

struct ErrorText {
  int error;
  const char *name, *text;
};
constexpr ErrorText kErrors[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "no kernel image is available for execution on the device"},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {600, "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
     "system has unsupported display driver / cuda driver combination"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
};
const ErrorText* find_error(Result result) {
  for (const ErrorText& entry : kErrors)
    if (entry.error == static_cast<int>(result)) return &entry;
  return nullptr;
}

constexpr auto kInvalidDevice = static_cast<Result>(101);

CopyNode::Side on_host(const void* memory) {
  return {.memory_type = 1, .host = const_cast<void*>(memory)};
}
CopyNode::Side on_device(DeviceAddress address) { return {.memory_type = 2, .device = address}; }

bool exists(DeviceOrdinal device) { return device >= 0 && device < options().devices; }

}  // namespace

ContextHandle current_context() { return context_stack.empty() ? nullptr : context_stack.back(); }

}  // namespace emulated

using namespace emulated;

extern "C" {

Result cuInit(unsigned flags) {
  if (flags != 0) return Result::invalid_value;
  if (options().start_error != 0) return static_cast<Result>(options().start_error);
  return options().devices == 0 ? Result::no_device : Result::success;
}
Result cuDriverGetVersion(int* version) {
  *version = options().version;
  return Result::success;
}
Result cuGetErrorName(Result error, const char** name) {
  const ErrorText* found = find_error(error);
  *name = found != nullptr ? found->name : nullptr;
  return found != nullptr ? Result::success : Result::invalid_value;
}
Result cuGetErrorString(Result error, const char** text) {
  const ErrorText* found = find_error(error);
  *text = found != nullptr ? found->text : nullptr;
  return found != nullptr ? Result::success : Result::invalid_value;
}

// --- devices

Result cuDeviceGetCount(int* count) {
  *count = options().devices;
  return Result::success;
}
Result cuDeviceGet(DeviceOrdinal* device, int ordinal) {
  *device = ordinal;
  return exists(ordinal) ? Result::success : kInvalidDevice;
}
Result cuDeviceGetName(char* name, int length, DeviceOrdinal device) {
  if (!exists(device) || length < 1) return kInvalidDevice;
  std::strncpy(name, "Emulated GPU", static_cast<std::size_t>(length));
  name[length - 1] = '\0';
  return Result::success;
}
// Attributes of an H200.
Result cuDeviceGetAttribute(int* value, DeviceAttribute attribute, DeviceOrdinal device) {
  if (!exists(device)) return kInvalidDevice;
  switch (attribute) {
    case DeviceAttribute::max_threads_per_block: *value = 1024; break;
    case DeviceAttribute::registers_per_block: *value = 65536; break;
    case DeviceAttribute::clock_kilohertz: *value = 1980000; break;
    case DeviceAttribute::sm_count: *value = options().sm_count; break;
    case DeviceAttribute::memory_clock_kilohertz: *value = 3201000; break;
    case DeviceAttribute::memory_bus_bits: *value = 6144; break;
    case DeviceAttribute::l2_bytes: *value = 50 << 20; break;
    case DeviceAttribute::threads_per_sm: *value = 2048; break;
    case DeviceAttribute::capability_major: *value = options().capability / 10; break;
    case DeviceAttribute::capability_minor: *value = options().capability % 10; break;
    case DeviceAttribute::shared_bytes_per_sm: *value = 228 << 10; break;
    case DeviceAttribute::shared_bytes_per_block: *value = kMaxSharedBytes; break;
    default: return Result::invalid_value;
  }
  return Result::success;
}
Result cuDeviceTotalMem_v2(std::size_t* bytes, DeviceOrdinal device) {
  *bytes = static_cast<std::size_t>(options().memory);
  return exists(device) ? Result::success : kInvalidDevice;
}

// --- contexts

Result cuDevicePrimaryCtxRetain(ContextHandle* context, DeviceOrdinal device) {
  if (!exists(device)) return kInvalidDevice;
  *context = &primary_contexts[static_cast<std::size_t>(device)];
  return Result::success;
}
Result cuDevicePrimaryCtxGetState(DeviceOrdinal device, unsigned* flags, int* active) {
  *flags = 0;
  *active = exists(device) ? 1 : 0;
  return exists(device) ? Result::success : kInvalidDevice;
}
Result cuCtxGetCurrent(ContextHandle* context) {
  *context = current_context();
  return Result::success;
}
Result cuCtxPushCurrent_v2(ContextHandle context) {
  if (context == nullptr) return kInvalidContext;
  context_stack.push_back(context);
  return Result::success;
}
Result cuCtxPopCurrent_v2(ContextHandle* context) {
  if (context_stack.empty()) return kInvalidContext;
  *context = context_stack.back();
  context_stack.pop_back();
  return Result::success;
}
Result cuCtxGetDevice(DeviceOrdinal* device) {
  if (current_context() == nullptr) return kInvalidContext;
  *device = current_context()->device;
  return Result::success;
}
Result cuCtxSynchronize() {
  if (current_context() == nullptr) return kInvalidContext;
  return refuse_while_capturing() ? Result::stream_capture_unsupported : Result::success;
}

// --- memory

Result cuMemAlloc_v2(DeviceAddress* address, std::size_t bytes) {
  if (current_context() == nullptr) return kInvalidContext;
  if (bytes == 0) return Result::invalid_value;
  if (refuse_while_capturing()) return Result::stream_capture_unsupported;
  *address = allocate(bytes);
  return *address != 0 ? Result::success : Result::out_of_memory;
}
Result cuMemFree_v2(DeviceAddress address) {
  if (current_context() == nullptr) return kInvalidContext;
  if (refuse_while_capturing()) return Result::stream_capture_unsupported;
  return address == 0 || release(address) ? Result::success : Result::invalid_value;
}
Result cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  if (current_context() == nullptr) return kInvalidContext;
  *free = free_bytes();
  *total = static_cast<std::size_t>(options().memory);
  return Result::success;
}
Result cuMemHostAlloc(void** memory, std::size_t bytes, unsigned) {
  if (current_context() == nullptr) return kInvalidContext;
  if (refuse_while_capturing()) return Result::stream_capture_unsupported;
  *memory = allocate_host(bytes);
  return *memory != nullptr ? Result::success : Result::out_of_memory;
}
Result cuMemFreeHost(void* memory) {
  return release(reinterpret_cast<std::uint64_t>(memory)) ? Result::success : Result::invalid_value;
}

Result cuMemcpyHtoDAsync_v2(DeviceAddress to, const void* from, std::size_t bytes,
                            StreamHandle stream) {
  return submit(stream, {.type = GraphNodeType::copy,
                         .copy = {.from = on_host(from),
                                  .to = on_device(to),
                                  .width_bytes = bytes,
                                  .height = 1,
                                  .depth = 1}});
}
Result cuMemcpyDtoHAsync_v2(void* to, DeviceAddress from, std::size_t bytes, StreamHandle stream) {
  return submit(stream, {.type = GraphNodeType::copy,
                         .copy = {.from = on_device(from),
                                  .to = on_host(to),
                                  .width_bytes = bytes,
                                  .height = 1,
                                  .depth = 1}});
}
Result cuMemcpyDtoDAsync_v2(DeviceAddress to, DeviceAddress from, std::size_t bytes,
                            StreamHandle stream) {
  return submit(stream, {.type = GraphNodeType::copy,
                         .copy = {.from = on_device(from),
                                  .to = on_device(to),
                                  .width_bytes = bytes,
                                  .height = 1,
                                  .depth = 1}});
}
Result cuMemsetD8Async(DeviceAddress to, unsigned char value, std::size_t bytes,
                       StreamHandle stream) {
  return submit(stream, {.type = GraphNodeType::fill, .fill = {to, 0, value, 1, bytes, 1}});
}
Result cuMemsetD32Async(DeviceAddress to, unsigned value, std::size_t count, StreamHandle stream) {
  return submit(stream, {.type = GraphNodeType::fill, .fill = {to, 0, value, 4, count, 1}});
}

}  // extern "C"

EMULATES(cuInit, init);
EMULATES(cuDriverGetVersion, driver_version);
EMULATES(cuGetErrorName, error_name);
EMULATES(cuGetErrorString, error_text);
EMULATES(cuDeviceGetCount, device_count);
EMULATES(cuDeviceGet, device_get);
EMULATES(cuDeviceGetName, device_name);
EMULATES(cuDeviceGetAttribute, device_attribute);
EMULATES(cuDeviceTotalMem_v2, device_memory);
EMULATES(cuDevicePrimaryCtxRetain, retain_primary_context);
EMULATES(cuDevicePrimaryCtxGetState, primary_context_state);
EMULATES(cuCtxGetCurrent, current_context);
EMULATES(cuCtxPushCurrent_v2, push_context);
EMULATES(cuCtxPopCurrent_v2, pop_context);
EMULATES(cuCtxGetDevice, context_device);
EMULATES(cuCtxSynchronize, synchronize_context);
EMULATES(cuMemAlloc_v2, allocate);
EMULATES(cuMemFree_v2, release);
EMULATES(cuMemcpyHtoDAsync_v2, copy_to_device);
EMULATES(cuMemcpyDtoHAsync_v2, copy_to_host);
EMULATES(cuMemcpyDtoDAsync_v2, copy_on_device);
EMULATES(cuMemsetD8Async, fill_bytes);
EMULATES(cuMemsetD32Async, fill_words);
EMULATES(cuMemHostAlloc, allocate_host);
EMULATES(cuMemFreeHost, release_host);

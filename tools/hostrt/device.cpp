#include "device.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <thread>

#include "error.hpp"

using namespace ashlar::hostrt;

namespace {

constexpr char kPciBusId[] = "0000:00:00.0";
constexpr int kMaxPitch = 0x7fffffff;

// The limits of compute capability 9.0, so that programs which size their work by them behave
// sensibly. Memory size and SM count are the host's memory and CPU count.
cudaDeviceProp make_properties() {
  cudaDeviceProp p{};
  std::snprintf(p.name, sizeof p.name, "Ashlar host CPU");
  p.totalGlobalMem = total_memory();
  p.sharedMemPerBlock = 48 << 10;
  p.sharedMemPerBlockOptin = 227 << 10;
  p.sharedMemPerMultiprocessor = 228 << 10;
  p.reservedSharedMemPerBlock = 1 << 10;
  p.regsPerBlock = 65536;
  p.regsPerMultiprocessor = 65536;
  p.warpSize = 32;
  p.memPitch = kMaxPitch;
  p.maxThreadsPerBlock = 1024;
  p.maxThreadsDim[0] = 1024;
  p.maxThreadsDim[1] = 1024;
  p.maxThreadsDim[2] = 64;
  p.maxGridSize[0] = 0x7fffffff;
  p.maxGridSize[1] = 65535;
  p.maxGridSize[2] = 65535;
  p.maxThreadsPerMultiProcessor = 2048;
  p.maxBlocksPerMultiProcessor = 32;
  p.totalConstMem = 64 << 10;
  p.major = 9;
  p.minor = 0;
  p.textureAlignment = 512;
  p.texturePitchAlignment = 32;
  p.surfaceAlignment = 512;
  p.multiProcessorCount = cpu_count();
  p.integrated = 1;
  p.canMapHostMemory = 1;
  p.concurrentKernels = 1;
  p.asyncEngineCount = 1;
  p.unifiedAddressing = 1;
  p.memoryBusWidth = 64;
  p.l2CacheSize = 32 << 20;
  p.streamPrioritiesSupported = 1;
  p.globalL1CacheSupported = 1;
  p.localL1CacheSupported = 1;
  p.managedMemory = 1;
  p.hostNativeAtomicSupported = 1;
  p.pageableMemoryAccess = 1;
  p.pageableMemoryAccessUsesHostPageTables = 1;
  p.directManagedMemAccessFromHost = 1;
  p.concurrentManagedAccess = 1;
  p.canUseHostPointerForRegisteredMem = 1;
  p.hostRegisterSupported = 1;
  p.hostRegisterReadOnlySupported = 1;
  p.memoryPoolsSupported = 1;
  return p;
}

// Attributes that are neither a property nor known are 0.
int attribute_value(cudaDeviceAttr attribute) {
  const cudaDeviceProp& p = device_properties();
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: return p.maxThreadsPerBlock;
    case cudaDevAttrMaxBlockDimX: return p.maxThreadsDim[0];
    case cudaDevAttrMaxBlockDimY: return p.maxThreadsDim[1];
    case cudaDevAttrMaxBlockDimZ: return p.maxThreadsDim[2];
    case cudaDevAttrMaxGridDimX: return p.maxGridSize[0];
    case cudaDevAttrMaxGridDimY: return p.maxGridSize[1];
    case cudaDevAttrMaxGridDimZ: return p.maxGridSize[2];
    case cudaDevAttrMaxSharedMemoryPerBlock: return static_cast<int>(p.sharedMemPerBlock);
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: return static_cast<int>(p.sharedMemPerBlockOptin);
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      return static_cast<int>(p.sharedMemPerMultiprocessor);
    case cudaDevAttrReservedSharedMemoryPerBlock:
      return static_cast<int>(p.reservedSharedMemPerBlock);
    case cudaDevAttrTotalConstantMemory: return static_cast<int>(p.totalConstMem);
    case cudaDevAttrWarpSize: return p.warpSize;
    case cudaDevAttrMaxPitch: return kMaxPitch;
    case cudaDevAttrMaxRegistersPerBlock: return p.regsPerBlock;
    case cudaDevAttrMaxRegistersPerMultiprocessor: return p.regsPerMultiprocessor;
    case cudaDevAttrClockRate: return 1'000'000;        // kHz
    case cudaDevAttrMemoryClockRate: return 1'000'000;  // kHz
    case cudaDevAttrGlobalMemoryBusWidth: return p.memoryBusWidth;
    case cudaDevAttrL2CacheSize: return p.l2CacheSize;
    case cudaDevAttrGpuOverlap: return 1;
    case cudaDevAttrAsyncEngineCount: return p.asyncEngineCount;
    case cudaDevAttrMultiProcessorCount: return p.multiProcessorCount;
    case cudaDevAttrMaxThreadsPerMultiProcessor: return p.maxThreadsPerMultiProcessor;
    case cudaDevAttrMaxBlocksPerMultiprocessor: return p.maxBlocksPerMultiProcessor;
    case cudaDevAttrIntegrated: return p.integrated;
    case cudaDevAttrCanMapHostMemory: return p.canMapHostMemory;
    case cudaDevAttrConcurrentKernels: return p.concurrentKernels;
    case cudaDevAttrUnifiedAddressing: return p.unifiedAddressing;
    case cudaDevAttrComputeCapabilityMajor: return p.major;
    case cudaDevAttrComputeCapabilityMinor: return p.minor;
    case cudaDevAttrStreamPrioritiesSupported: return p.streamPrioritiesSupported;
    case cudaDevAttrGlobalL1CacheSupported: return p.globalL1CacheSupported;
    case cudaDevAttrLocalL1CacheSupported: return p.localL1CacheSupported;
    case cudaDevAttrManagedMemory: return p.managedMemory;
    case cudaDevAttrHostNativeAtomicSupported: return p.hostNativeAtomicSupported;
    case cudaDevAttrSingleToDoublePrecisionPerfRatio: return 2;
    case cudaDevAttrPageableMemoryAccess: return p.pageableMemoryAccess;
    case cudaDevAttrPageableMemoryAccessUsesHostPageTables:
      return p.pageableMemoryAccessUsesHostPageTables;
    case cudaDevAttrDirectManagedMemAccessFromHost: return p.directManagedMemAccessFromHost;
    case cudaDevAttrConcurrentManagedAccess: return p.concurrentManagedAccess;
    case cudaDevAttrCanUseHostPointerForRegisteredMem: return p.canUseHostPointerForRegisteredMem;
    case cudaDevAttrHostRegisterSupported: return p.hostRegisterSupported;
    case cudaDevAttrHostRegisterReadOnlySupported: return p.hostRegisterReadOnlySupported;
    case cudaDevAttrMemoryPoolsSupported: return p.memoryPoolsSupported;
    default: return 0;
  }
}

}  // namespace

namespace ashlar::hostrt {

size_t total_memory() {
  return static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

size_t free_memory() {
  return static_cast<size_t>(sysconf(_SC_AVPHYS_PAGES)) *
         static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

int cpu_count() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

const cudaDeviceProp& device_properties() {
  static const cudaDeviceProp properties = make_properties();
  return properties;
}

}  // namespace ashlar::hostrt

cudaError_t cudaGetDeviceCount(int* count) { return return_value(count, kDeviceCount); }
cudaError_t cudaGetDevice(int* device) { return return_value(device, 0); }

cudaError_t cudaSetDevice(int device) {
  return record_error(is_device(device) ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaInitDevice(int device, unsigned int, unsigned int) { return cudaSetDevice(device); }

cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp* wanted) {
  return wanted == nullptr ? record_error(cudaErrorInvalidValue) : return_value(device, 0);
}

cudaError_t cudaSetValidDevices(int* devices, int count) {
  if (count < 0 || count > kDeviceCount || (devices == nullptr && count > 0)) {
    return record_error(cudaErrorInvalidValue);
  }
  return record_error(std::all_of(devices, devices + count, is_device) ? cudaSuccess
                                                                       : cudaErrorInvalidDevice);
}

cudaError_t cudaGetDeviceFlags(unsigned int* flags) {
  return return_value(flags, static_cast<unsigned int>(cudaDeviceScheduleAuto | cudaDeviceMapHost));
}

cudaError_t cudaSetDeviceFlags(unsigned int flags) {
  constexpr unsigned int kKnown = 0x1f;
  return record_error((flags & ~kKnown) == 0 ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  constexpr int kLastAttribute = 148;
  const int number = static_cast<int>(attribute);
  if (value == nullptr || number < 1 || number > kLastAttribute) {
    return record_error(cudaErrorInvalidValue);
  }
  return is_device(device) ? return_value(value, attribute_value(attribute))
                           : record_error(cudaErrorInvalidDevice);
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  if (text == nullptr || length < static_cast<int>(sizeof kPciBusId)) {
    return record_error(cudaErrorInvalidValue);
  }
  if (!is_device(device)) {
    return record_error(cudaErrorInvalidDevice);
  }
  std::memcpy(text, kPciBusId, sizeof kPciBusId);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* text) {
  if (text == nullptr || device == nullptr) {
    return record_error(cudaErrorInvalidValue);
  }
  return std::strcmp(text, kPciBusId) == 0 ? return_value(device, 0)
                                           : record_error(cudaErrorInvalidDevice);
}

cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  switch (limit) {
    case cudaLimitStackSize: return return_value(value, size_t{1} << 10);
    case cudaLimitPrintfFifoSize: return return_value(value, size_t{1} << 20);
    case cudaLimitMallocHeapSize: return return_value(value, size_t{8} << 20);
    default: return record_error(cudaErrorUnsupportedLimit);
  }
}

// Limits apply to kernels, which do not exist here: any known limit is accepted and ignored.
cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t) {
  size_t unused = 0;
  return cudaDeviceGetLimit(&unused, limit);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) {
    *least = kLeastPriority;
  }
  if (greatest != nullptr) {
    *greatest = kGreatestPriority;
  }
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return is_device(device) && is_device(peer) ? return_value(can, 0)
                                              : record_error(cudaErrorInvalidDevice);
}

cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
cudaError_t cudaProfilerStart() { return cudaSuccess; }
cudaError_t cudaProfilerStop() { return cudaSuccess; }

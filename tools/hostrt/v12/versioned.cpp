// CUDA 12 versions of the functions that changed in CUDA 13. Our headers declare CUDA 13; programs
// built for CUDA 12 compile against NVIDIA's CUDA 12 headers.

#include <algorithm>

#include "device.hpp"
#include "error.hpp"
#include "memory.hpp"
#include "stream.hpp"

using namespace ashlar::hostrt;

namespace {

constexpr int kVersion = 12090;

// cudaDeviceProp in the layout of CUDA 12. The texture and surface fields are padding.
struct Properties12 {
  char name[256];
  cudaUUID_t uuid;
  char luid[8];
  unsigned int luid_device_node_mask;
  size_t total_global_mem;
  size_t shared_mem_per_block;
  int regs_per_block;
  int warp_size;
  size_t mem_pitch;
  int max_threads_per_block;
  int max_threads_dim[3];
  int max_grid_size[3];
  int clock_rate;
  size_t total_const_mem;
  int major;
  int minor;
  size_t texture_alignment;
  size_t texture_pitch_alignment;
  int device_overlap;
  int multi_processor_count;
  int kernel_exec_timeout_enabled;
  int integrated;
  int can_map_host_memory;
  int compute_mode;
  int textures_and_surfaces[40];
  size_t surface_alignment;
  int concurrent_kernels;
  int ecc_enabled;
  int pci_bus_id;
  int pci_device_id;
  int pci_domain_id;
  int tcc_driver;
  int async_engine_count;
  int unified_addressing;
  int memory_clock_rate;
  int memory_bus_width;
  int l2_cache_size;
  int persisting_l2_cache_max_size;
  int max_threads_per_multi_processor;
  int stream_priorities_supported;
  int global_l1_cache_supported;
  int local_l1_cache_supported;
  size_t shared_mem_per_multiprocessor;
  int regs_per_multiprocessor;
  int managed_memory;
  int is_multi_gpu_board;
  int multi_gpu_board_group_id;
  int host_native_atomic_supported;
  int single_to_double_precision_perf_ratio;
  int pageable_memory_access;
  int concurrent_managed_access;
  int compute_preemption_supported;
  int can_use_host_pointer_for_registered_mem;
  int cooperative_launch;
  int cooperative_multi_device_launch;
  size_t shared_mem_per_block_optin;
  int pageable_memory_access_uses_host_page_tables;
  int direct_managed_mem_access_from_host;
  int max_blocks_per_multi_processor;
  int access_policy_max_window_size;
  size_t reserved_shared_mem_per_block;
  int host_register_supported;
  int sparse_cuda_array_supported;
  int host_register_read_only_supported;
  int timeline_semaphore_interop_supported;
  int memory_pools_supported;
  int others[8];
  int reserved[63];
};

Properties12 properties() {
  const cudaDeviceProp& from = device_properties();
  Properties12 to{};
  std::copy_n(from.name, sizeof to.name, to.name);
  to.total_global_mem = from.totalGlobalMem;
  to.shared_mem_per_block = from.sharedMemPerBlock;
  to.regs_per_block = from.regsPerBlock;
  to.warp_size = from.warpSize;
  to.mem_pitch = from.memPitch;
  to.max_threads_per_block = from.maxThreadsPerBlock;
  std::copy_n(from.maxThreadsDim, 3, to.max_threads_dim);
  std::copy_n(from.maxGridSize, 3, to.max_grid_size);
  cudaDeviceGetAttribute(&to.clock_rate, cudaDevAttrClockRate, 0);
  to.total_const_mem = from.totalConstMem;
  to.major = from.major;
  to.minor = from.minor;
  to.texture_alignment = from.textureAlignment;
  to.texture_pitch_alignment = from.texturePitchAlignment;
  cudaDeviceGetAttribute(&to.device_overlap, cudaDevAttrGpuOverlap, 0);
  to.multi_processor_count = from.multiProcessorCount;
  to.integrated = from.integrated;
  to.can_map_host_memory = from.canMapHostMemory;
  to.surface_alignment = from.surfaceAlignment;
  to.concurrent_kernels = from.concurrentKernels;
  to.async_engine_count = from.asyncEngineCount;
  to.unified_addressing = from.unifiedAddressing;
  cudaDeviceGetAttribute(&to.memory_clock_rate, cudaDevAttrMemoryClockRate, 0);
  to.memory_bus_width = from.memoryBusWidth;
  to.l2_cache_size = from.l2CacheSize;
  to.max_threads_per_multi_processor = from.maxThreadsPerMultiProcessor;
  to.stream_priorities_supported = from.streamPrioritiesSupported;
  to.global_l1_cache_supported = from.globalL1CacheSupported;
  to.local_l1_cache_supported = from.localL1CacheSupported;
  to.shared_mem_per_multiprocessor = from.sharedMemPerMultiprocessor;
  to.regs_per_multiprocessor = from.regsPerMultiprocessor;
  to.managed_memory = from.managedMemory;
  to.host_native_atomic_supported = from.hostNativeAtomicSupported;
  cudaDeviceGetAttribute(&to.single_to_double_precision_perf_ratio,
                         cudaDevAttrSingleToDoublePrecisionPerfRatio, 0);
  to.pageable_memory_access = from.pageableMemoryAccess;
  to.concurrent_managed_access = from.concurrentManagedAccess;
  to.can_use_host_pointer_for_registered_mem = from.canUseHostPointerForRegisteredMem;
  to.shared_mem_per_block_optin = from.sharedMemPerBlockOptin;
  to.pageable_memory_access_uses_host_page_tables = from.pageableMemoryAccessUsesHostPageTables;
  to.direct_managed_mem_access_from_host = from.directManagedMemAccessFromHost;
  to.max_blocks_per_multi_processor = from.maxBlocksPerMultiProcessor;
  to.reserved_shared_mem_per_block = from.reservedSharedMemPerBlock;
  to.host_register_supported = from.hostRegisterSupported;
  to.host_register_read_only_supported = from.hostRegisterReadOnlySupported;
  to.memory_pools_supported = from.memoryPoolsSupported;
  return to;
}

}  // namespace

// Exported with the names, C linkage and signatures of CUDA 12.
#define CUDA12(name) extern "C" cudaError_t name

CUDA12(cudaDriverGetVersion)(int* version) { return return_value(version, kVersion); }
CUDA12(cudaRuntimeGetVersion)(int* version) { return return_value(version, kVersion); }

CUDA12(cudaGetDeviceProperties_v2)(Properties12* out, int device);
CUDA12(cudaGetDeviceProperties_v2)(Properties12* out, int device) {
  return out != nullptr && !is_device(device) ? record_error(cudaErrorInvalidDevice)
                                              : return_value(out, properties());
}

CUDA12(cudaEventElapsedTime_v2)(float* milliseconds, cudaEvent_t start, cudaEvent_t end);
CUDA12(cudaEventElapsedTime_v2)(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return cudaEventElapsedTime(milliseconds, start, end);
}

CUDA12(cudaStreamGetCaptureInfo_v2)
(cudaStream_t, cudaStreamCaptureStatus*, unsigned long long*, cudaGraph_t*, const cudaGraphNode_t**,
 size_t*);
CUDA12(cudaStreamGetCaptureInfo_v2)
(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id, cudaGraph_t* graph,
 const cudaGraphNode_t** dependencies, size_t* dependency_count) {
  clear(dependencies, dependency_count);
  return capture_info(stream, status, id, graph);
}

CUDA12(cudaStreamGetCaptureInfo_v3)
(cudaStream_t, cudaStreamCaptureStatus*, unsigned long long*, cudaGraph_t*, const cudaGraphNode_t**,
 const cudaGraphEdgeData**, size_t*);
CUDA12(cudaStreamGetCaptureInfo_v3)
(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id, cudaGraph_t* graph,
 const cudaGraphNode_t** dependencies, const cudaGraphEdgeData** edges, size_t* dependency_count) {
  clear(edges);
  return cudaStreamGetCaptureInfo_v2(stream, status, id, graph, dependencies, dependency_count);
}

CUDA12(cudaMemAdvise_v2)(const void*, size_t, cudaMemoryAdvise, cudaMemLocation);
CUDA12(cudaMemAdvise_v2)(const void* pointer, size_t bytes, cudaMemoryAdvise, cudaMemLocation) {
  return record_error(advise(pointer, bytes, nullptr));
}

CUDA12(cudaMemPrefetchAsync_v2)(const void*, size_t, cudaMemLocation, unsigned int, cudaStream_t);
CUDA12(cudaMemPrefetchAsync_v2)
(const void* pointer, size_t bytes, cudaMemLocation, unsigned int flags, cudaStream_t stream) {
  return record_error(flags == 0 ? advise(pointer, bytes, stream) : cudaErrorInvalidValue);
}

// For renamed.cpp.
extern "C" int hostrt_capture_info(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                   unsigned long long* id);
extern "C" int hostrt_capture_info(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                   unsigned long long* id) {
  return capture_info(stream, status, id, nullptr);
}

extern "C" int hostrt_advise(const void* pointer, size_t bytes, cudaStream_t stream);
extern "C" int hostrt_advise(const void* pointer, size_t bytes, cudaStream_t stream) {
  return record_error(advise(pointer, bytes, stream));
}

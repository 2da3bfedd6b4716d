// CUDA 13 versions of the functions that changed from CUDA 12.

#include "device.hpp"
#include "error.hpp"
#include "memory.hpp"
#include "stream.hpp"

using namespace ashlar::hostrt;

cudaError_t cudaDriverGetVersion(int* version) { return return_value(version, CUDART_VERSION); }
cudaError_t cudaRuntimeGetVersion(int* version) { return return_value(version, CUDART_VERSION); }

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* out, int device) {
  return out != nullptr && !is_device(device) ? record_error(cudaErrorInvalidDevice)
                                              : return_value(out, device_properties());
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData** edges, size_t* dependency_count) {
  clear(dependencies, edges, dependency_count);
  return capture_info(stream, status, id, graph);
}

cudaError_t cudaMemAdvise(const void* pointer, size_t bytes, cudaMemoryAdvise, cudaMemLocation) {
  return record_error(advise(pointer, bytes, nullptr));
}

cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t bytes, cudaMemLocation,
                                 unsigned int flags, cudaStream_t stream) {
  return record_error(flags == 0 ? advise(pointer, bytes, stream) : cudaErrorInvalidValue);
}

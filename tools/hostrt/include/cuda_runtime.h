/* The CUDA runtime for C and C++: the functions, and for C++ the typed overloads of the allocation
 * functions. */
#ifndef ASHLAR_HOSTRT_CUDA_RUNTIME_H
#define ASHLAR_HOSTRT_CUDA_RUNTIME_H

#include "cuda_runtime_api.h"

#ifdef __cplusplus
template <typename T>
inline cudaError_t cudaMalloc(T** pointer, size_t bytes) {
  return cudaMalloc(reinterpret_cast<void**>(pointer), bytes);
}

template <typename T>
inline cudaError_t cudaMallocHost(T** pointer, size_t bytes, unsigned int flags = 0) {
  return cudaHostAlloc(reinterpret_cast<void**>(pointer), bytes, flags);
}

template <typename T>
inline cudaError_t cudaHostAlloc(T** pointer, size_t bytes, unsigned int flags) {
  return cudaHostAlloc(reinterpret_cast<void**>(pointer), bytes, flags);
}

template <typename T>
inline cudaError_t cudaMallocManaged(T** pointer, size_t bytes,
                                     unsigned int flags = cudaMemAttachGlobal) {
  return cudaMallocManaged(reinterpret_cast<void**>(pointer), bytes, flags);
}

template <typename T>
inline cudaError_t cudaMallocAsync(T** pointer, size_t bytes, cudaStream_t stream) {
  return cudaMallocAsync(reinterpret_cast<void**>(pointer), bytes, stream);
}
#endif

#endif /* ASHLAR_HOSTRT_CUDA_RUNTIME_H */

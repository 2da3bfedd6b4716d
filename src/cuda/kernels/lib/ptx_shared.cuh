// Shared memory whose size is decided at launch.
#pragma once

#include "lib/integers.cuh"

// Its first byte, a multiple of 16. The bytes are LaunchDesign::shared_bytes.
#if defined(__CUDA_ARCH__)
__device__ inline uint8* shared_memory() {
  extern __shared__ uint4 dynamic_shared_memory[];
  return (uint8*)dynamic_shared_memory;
}
// As instructions for shared memory take it.
__device__ inline uint32 shared_address(const void* pointer) {
  return (uint32)__cvta_generic_to_shared(pointer);
}
#else
// Whoever runs kernels on a CPU defines it.
uint8* shared_memory();
#endif

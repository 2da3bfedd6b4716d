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
  uint64 address;
  asm("cvta.to.shared.u64 %0, %1;" : "=l"(address) : "l"(pointer));
  return (uint32)address;
}
#else
// Whoever runs kernels on a CPU defines it.
uint8* shared_memory();
#endif

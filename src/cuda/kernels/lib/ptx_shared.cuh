// Dynamic shared memory.
#pragma once

#include "lib/integers.cuh"

// Its base address, aligned to 16. Its size is LaunchDesign::shared_bytes.
#if defined(__CUDA_ARCH__)
__device__ inline uint8* shared_memory() {
  extern __shared__ uint4 dynamic_shared_memory[];
  return (uint8*)dynamic_shared_memory;
}
// Address in the shared state space, as PTX instructions expect it.
__device__ inline uint32 shared_address(const void* pointer) {
  return (uint32)__cvta_generic_to_shared(pointer);
}
#else
// Defined by the emulator.
uint8* shared_memory();
#endif

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

// Aligned to 1024, the period of the swizzle. The pointer is not rounded as an integer: the
// compiler would lose its state space.
__device__ inline uint8* aligned_shared_memory() {
  uint8* memory = shared_memory();
  return memory + (1024 - (uint64)memory % 1024) % 1024;
}

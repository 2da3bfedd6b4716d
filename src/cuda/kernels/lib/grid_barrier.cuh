// Blocks of a launch that wait for each other: all of them must be on the GPU at once
// (LaunchDesign::together).
#pragma once

#include "lib/integers.cuh"

// Returns when `counter`, which was 0 when the launch began, has counted `arrivals` blocks. What
// they wrote before can be read with load_fresh.
__device__ inline void meet_blocks(uint32* counter, uint32 arrivals) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(counter, 1u);
    while (*(volatile uint32*)counter < arrivals) __nanosleep(20);
    __threadfence();
  }
  __syncthreads();
}

// From L2, where other blocks write; L1 may have what was there before.
template <class T>
__device__ inline T load_fresh(const T* from) {
  return *(const volatile T*)from;
}

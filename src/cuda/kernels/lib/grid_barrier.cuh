// Blocks of a launch that wait for each other: all of them must be on the GPU at once
// (LaunchDesign::together).
#pragma once

#include "lib/integers.cuh"

// Returns when `counter`, which was 0 when the launch began, has counted `arrivals` blocks. A block
// that waits for seconds ends the launch with an error: nobody comes.
__device__ inline void await_blocks(const uint32* counter, uint32 arrivals) {
  const int kMaxLooks = 1 << 22;  // about a microsecond each
  if (threadIdx.x == 0) {
    for (int looks = 0; *(const volatile uint32*)counter < arrivals; ++looks) {
      if (looks == kMaxLooks) __trap();
      __nanosleep(20);
    }
    __threadfence();
  }
  __syncthreads();
}
// The same for a block that is one of those counted. What they wrote before can be read with
// load_fresh.
__device__ inline void grid_sync(uint32* counter, uint32 arrivals) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(counter, 1u);
  }
  await_blocks(counter, arrivals);
}

// From L2, where other blocks write; L1 may have what was there before.
template <class T>
__device__ inline T load_fresh(const T* from) {
  return *(const volatile T*)from;
}

// Grid-wide barrier of a cooperative launch: all CTAs must be resident at once
// (LaunchDesign::together).
#pragma once

#include "lib/integers.cuh"

// Returns when `counter`, which was 0 at launch, has counted `arrivals` CTAs. A CTA that waits for
// seconds traps: an expected CTA will not arrive.
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
// The same for a CTA that is itself counted. Writes of the other CTAs can then be read with
// load_fresh.
__device__ inline void grid_sync(uint32* counter, uint32 arrivals) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(counter, 1u);
  }
  await_blocks(counter, arrivals);
}

// Reads from L2, where other CTAs write; L1 may hold stale data.
template <class T>
__device__ inline T load_fresh(const T* from) {
  return *(const volatile T*)from;
}

// Barriers of a part of a block.
#pragma once

// All kThreads threads of a group of whole warps have come here, and what they wrote to shared
// memory can be read. Groups are numbered from 0 to 14; other groups go on meanwhile. A whole block
// may use it too.
template <int kThreads>
__device__ inline void group_barrier(int group) {
#if defined(__CUDA_ARCH__)
  asm volatile("bar.sync %0, %1;" ::"r"(group + 1), "n"(kThreads) : "memory");
#else
  emulated_barrier_sync(group + 1, kThreads);
#endif
}

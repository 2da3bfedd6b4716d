// Named barriers (bar.sync) of a part of a CTA.
#pragma once

// Synchronises the kThreads threads of a group of whole warps and makes their writes to shared
// memory visible. Groups are numbered from 0 to 14; other groups are not blocked. A whole CTA may
// use it, too.
template <int kThreads>
__device__ inline void group_barrier(int group) {
#if defined(__CUDA_ARCH__)
  asm volatile("bar.sync %0, %1;" ::"r"(group + 1), "n"(kThreads) : "memory");
#else
  emulated_barrier_sync(group + 1, kThreads);
#endif
}

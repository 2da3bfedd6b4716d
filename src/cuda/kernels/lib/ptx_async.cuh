// Copies from global to shared memory that pass no register: a thread goes on meanwhile.
#pragma once

#include "lib/integers.cuh"

// 16 bytes, both addresses multiples of 16. Elsewhere than on GPUs that have it, done at once.
__device__ inline void copy_async(void* to, const void* from) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  const uint32 address = (uint32)__cvta_generic_to_shared(to);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
#else
  *(uint4*)to = *(const uint4*)from;
#endif
}
// The copies of this thread since the last call are one group.
__device__ inline void end_copy_group() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
// Until all groups but the newest kNewer have arrived, for this thread to read.
template <int kNewer>
__device__ inline void await_copy_groups() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(kNewer) : "memory");
#endif
}

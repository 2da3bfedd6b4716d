// cp.async: asynchronous copies from global to shared memory, which bypass registers. Plain copies
// before sm_80.
#pragma once

#include "lib/elements.cuh"
#include "lib/ptx_shared.cuh"

// kBytes is 4, 8 or 16; both addresses are aligned to it.
template <int kBytes>
__device__ inline void cp_async(void* to_shared, const void* from) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  const uint32 to = shared_address(to_shared);
  if constexpr (kBytes == 16)  // bypasses L1
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(kBytes)
                 : "memory");
#elif defined(__CUDA_ARCH__)
  typedef typename Packet<kBytes>::Type Piece;
  *(Piece*)to_shared = *(const Piece*)from;
#else
  emulated_copy_async(to_shared, from, kBytes, kBytes);
#endif
}
// Reads only the first `present` bytes and zero-fills the rest.
template <int kBytes>
__device__ inline void cp_async_zfill(void* to_shared, const void* from, int present) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  const uint32 to = shared_address(to_shared);
  if constexpr (kBytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(present)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(kBytes),
                 "r"(present)
                 : "memory");
#elif defined(__CUDA_ARCH__)
  for (int i = 0; i < kBytes; ++i)
    ((uint8*)to_shared)[i] = i < present ? ((const uint8*)from)[i] : (uint8)0;
#else
  emulated_copy_async(to_shared, from, kBytes, present);
#endif
}
// Commits the thread's copies since the last call as one group.
__device__ inline void cp_async_commit_group() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#elif !defined(__CUDA_ARCH__)
  emulated_copy_commit();
#endif
}
// Waits until at most kPending groups are in flight. The thread can then read its own copies, other
// threads after a barrier.
template <int kPending>
__device__ inline void cp_async_wait_group() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
#elif !defined(__CUDA_ARCH__)
  emulated_copy_wait(kPending);
#endif
}

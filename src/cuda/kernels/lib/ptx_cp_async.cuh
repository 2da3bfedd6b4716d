// Copies from global to shared memory that go on while the thread does other things: nothing of
// them passes through registers. Before sm_80 they are plain copies.
#pragma once

#include "lib/elements.cuh"
#include "lib/ptx_shared.cuh"

// kBytes are 4, 8 or 16, both addresses multiples of them.
template <int kBytes>
__device__ inline void cp_async(void* to_shared, const void* from) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  const uint32 to = shared_address(to_shared);
  if constexpr (kBytes == 16)  // past L1
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
// The same, of which only the first `present` bytes are read; the others become zeros.
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
// The thread's copies since the last call are a group.
__device__ inline void cp_async_commit_group() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#elif !defined(__CUDA_ARCH__)
  emulated_copy_commit();
#endif
}
// Until all groups but the last kPending are there. The thread itself can then read them, others
// after a barrier.
template <int kPending>
__device__ inline void cp_async_wait_group() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
#elif !defined(__CUDA_ARCH__)
  emulated_copy_wait(kPending);
#endif
}

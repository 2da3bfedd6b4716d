// mbarriers (sm_90 on): barriers in shared memory that count arrivals and transaction bytes, by
// which TMA signals waiting threads.
#pragma once

#include "lib/ptx_shared.cuh"

// A phase completes after `count` arrivals and all expected bytes; then the next one begins. A wait
// names the parity of the phase: 0 for the first, then 1, 0, 1...
typedef uint64 Mbarrier;

// By one thread; fence_barriers() and a CTA or cluster barrier must follow before other threads use
// it.
__device__ inline void init_barrier(Mbarrier* barrier, int count) {
#if !defined(__CUDA_ARCH__)
  emulated_mbarrier_init(barrier, (unsigned)count);
#elif __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(count)
               : "memory");
#endif
}
__device__ inline void fence_barriers() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}
__device__ inline void arrive(Mbarrier* barrier) {
#if !defined(__CUDA_ARCH__)
  emulated_mbarrier_arrive(barrier);
#elif __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
               : "memory");
#endif
}
// Arrives on the same mbarrier of another CTA of the cluster.
__device__ inline void arrive_remote(Mbarrier* barrier, int rank) {
#if !defined(__CUDA_ARCH__)
  emulated_mbarrier_arrive_remote(barrier, (unsigned)rank);
#elif __CUDA_ARCH__ >= 900
  asm volatile(
      "{\n.reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [there];\n}" ::"r"(
          shared_address(barrier)),
      "r"(rank)
      : "memory");
#endif
}
// One arrival, plus `bytes` expected transaction bytes in this phase.
__device__ inline void arrive_and_expect_tx(Mbarrier* barrier, int bytes) {
#if !defined(__CUDA_ARCH__)
  emulated_mbarrier_expect(barrier, (unsigned)bytes);
#elif __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                   shared_address(barrier)),
               "r"(bytes)
               : "memory");
#endif
}
// Waits until the phase of this parity is complete.
__device__ inline void wait_for(Mbarrier* barrier, int parity) {
#if !defined(__CUDA_ARCH__)
  emulated_mbarrier_wait(barrier, (unsigned)parity);
#elif __CUDA_ARCH__ >= 900
  asm volatile(
      "{\n.reg .pred complete;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 complete, [%0], %1;\n"
      "@complete bra done;\n"
      "bra again;\n"
      "done:\n}" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
#endif
}
// Makes the thread's writes to shared memory visible to the async proxy (wgmma, TMA); a barrier
// follows.
__device__ inline void fence_proxy_async() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

// Blocks of a cluster run at the same time and write to each other's shared memory (sm_90 on).
#pragma once

#include "lib/ptx_shared.cuh"

// All threads of the cluster have come here. Every thread of the cluster calls it equally often.
__device__ inline void cluster_barrier() {
#if !defined(__CUDA_ARCH__)
  emulated_cluster_barrier();
#elif __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
#endif
}

// What block `rank` has where `slot` is here. Between two barriers of the cluster: after the first
// it has been written, before the second the block is still there.
__device__ inline float load_from_block(const float* slot, int rank) {
#if !defined(__CUDA_ARCH__)
  return *emulated_cluster_address((float*)slot, (unsigned)rank);
#elif __CUDA_ARCH__ >= 900
  uint32 from;
  float value;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(from) : "r"(shared_address(slot)), "r"(rank));
  asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(value) : "r"(from) : "memory");
  return value;
#else
  return *slot;
#endif
}

// The same of 16 bytes: two to four numbers.
template <class Numbers>
__device__ inline Numbers load_from_block(const Numbers* slot, int rank) {
  static_assert(sizeof(Numbers) == 16, "the access is of 16 bytes");
#if !defined(__CUDA_ARCH__)
  return *emulated_cluster_address((Numbers*)slot, (unsigned)rank);
#elif __CUDA_ARCH__ >= 900
  uint32 from;
  uint4 words;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(from) : "r"(shared_address(slot)), "r"(rank));
  asm volatile("ld.shared::cluster.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
               : "r"(from)
               : "memory");
  return *(Numbers*)&words;
#else
  return *slot;
#endif
}

// A signal in shared memory tells a block that what the others send it is there: round by round,
// `bytes` of them. Without it, a barrier of the cluster would have to wait for all that the threads
// have written, to memory as well.
typedef uint64 Signal;

// By one thread, before a barrier of the cluster.
__device__ inline void start_signal(Signal* signal) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\nfence.mbarrier_init.release.cluster;" ::"r"(
                   shared_address(signal))
               : "memory");
#endif
}
// By one thread of the block in every round.
__device__ inline void expect_bytes(Signal* signal, int bytes) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                   shared_address(signal)),
               "r"(bytes)
               : "memory");
#endif
}
// Writes `value` to where block `rank` has what is `slot` here; counts for the signal there.
template <class R>
__device__ inline void send_to_block(R* slot, int rank, R value, Signal* signal) {
#if !defined(__CUDA_ARCH__)
  *emulated_cluster_address(slot, (unsigned)rank) = value;
#elif __CUDA_ARCH__ >= 900
  uint32 to, of;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(shared_address(slot)), "r"(rank));
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(of) : "r"(shared_address(signal)), "r"(rank));
  if constexpr (sizeof(R) == 4)
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [%0], %1, [%2];" ::"r"(
                     to),
                 "f"((float)value), "r"(of)
                 : "memory");
  else
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.f64 [%0], %1, [%2];" ::"r"(
                     to),
                 "d"((double)value), "r"(of)
                 : "memory");
#endif
}
// Until a round is complete; rounds have parity 0 and 1 in turn.
__device__ inline void wait_for_signal(Signal* signal, int parity) {
#if !defined(__CUDA_ARCH__)
  cluster_barrier();
#elif __CUDA_ARCH__ >= 900
  uint32 is_complete;
  do
    asm volatile(
        "{\n.reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n}"
        : "=r"(is_complete)
        : "r"(shared_address(signal)), "r"(parity)
        : "memory");
  while (is_complete == 0);
#endif
}

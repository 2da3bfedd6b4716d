// Thread block clusters (sm_90 on): cluster barriers and distributed shared memory (DSMEM).
#pragma once

#include "lib/ptx_mbarrier.cuh"

// Cluster barrier with release / acquire semantics. Every thread of the cluster calls it equally
// often.
__device__ inline void cluster_sync() {
#if !defined(__CUDA_ARCH__)
  emulated_cluster_barrier();
#elif __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
#endif
}
// Relaxed cluster barrier, also in two halves: initialised mbarriers (fence_barriers) are visible
// afterwards, other writes need not be. It does not wait for the threads' stores to global memory,
// which takes half a microsecond.
__device__ inline void cluster_arrive_relaxed() {
#if !defined(__CUDA_ARCH__)
  emulated_cluster_arrive();
#elif __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#endif
}
__device__ inline void cluster_wait() {
#if !defined(__CUDA_ARCH__)
  emulated_cluster_wait();
#elif __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
#endif
}
__device__ inline void cluster_sync_relaxed() {
  cluster_arrive_relaxed();
  cluster_wait();
}

// Loads from the shared memory of CTA `rank`, at the address that is `slot` here. Between two
// cluster barriers: the first orders the writes, and the CTA still exists until the second.
__device__ inline float load_dsmem(const float* slot, int rank) {
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

// The same for 16 bytes: two to four values.
template <class Numbers>
__device__ inline Numbers load_dsmem(const Numbers* slot, int rank) {
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

// Stores `value` to the shared memory of CTA `rank`, at the address that is `slot` here. The CTA
// must have started, and reads the value after a cluster barrier.
__device__ inline void store_dsmem(float* slot, int rank, float value) {
#if !defined(__CUDA_ARCH__)
  *emulated_cluster_address(slot, (unsigned)rank) = value;
#elif __CUDA_ARCH__ >= 900
  uint32 to;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(shared_address(slot)), "r"(rank));
  asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(to), "f"(value) : "memory");
#else
  *slot = value;
#endif
}

// Asynchronous store (st.async) of `value` to the shared memory of CTA `rank`, at the address that
// is `slot` here; its bytes count on the mbarrier there. Needs no cluster barrier, which would also
// wait for the threads' stores to global memory. The CTA must have started.
template <class R>
__device__ inline void store_async_dsmem(R* slot, int rank, R value, Mbarrier* barrier) {
#if !defined(__CUDA_ARCH__)
  *emulated_cluster_address(slot, (unsigned)rank) = value;
  emulated_mbarrier_complete_remote(barrier, (unsigned)rank, sizeof(R));
#elif __CUDA_ARCH__ >= 900
  uint32 to, of;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(shared_address(slot)), "r"(rank));
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(of) : "r"(shared_address(barrier)), "r"(rank));
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

// Blocks of a cluster: they run at the same time and reach each other's shared memory (sm_90 on).
#pragma once

#include "lib/integers.cuh"

// All threads of the cluster have come here, and what they wrote to shared memory, of whichever
// block, can be read. Every thread of the cluster calls it equally often.
__device__ inline void cluster_barrier() {
#if !defined(__CUDA_ARCH__)
  emulated_cluster_barrier();
#elif __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
#endif
}

// Where block `rank` of the cluster has what is at `address` of this block's shared memory.
template <class T>
__device__ inline T* in_block(T* address, unsigned rank) {
#if !defined(__CUDA_ARCH__)
  return emulated_cluster_address(address, rank);
#elif __CUDA_ARCH__ >= 900
  uint64 there;
  asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(address), "r"(rank));
  return (T*)there;
#else
  return address;
#endif
}

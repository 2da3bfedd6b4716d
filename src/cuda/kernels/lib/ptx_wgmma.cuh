// wgmma (warpgroup MMA, 128 threads, asynchronous, sm_90a): descriptors, fences, setmaxnreg.
//
// The host prints one struct per instruction shape that a kernel asks for, usually one named Mma
// (text/wgmma_text.hpp): its multiply() is wgmma.mma_async, D (64 x kN) += A B', A 64 x kK and
// B kN x kK. Thread t of the warpgroup has rows 16 (t / 32) + t % 32 / 4 and 8 below, and of every
// 8 columns 2 (t % 4) and the next: accum[4 j + 2 h + i] is row + 8 h, column 8 j + 2 (t % 4) + i.
// A in registers is the fragment of mma.m16n8k16 for the warp's 16 rows: four registers for every
// type. Descriptors name operands in shared memory.
#pragma once

#include "lib/ptx_shared.cuh"

// Shared-memory matrix descriptor: core matrices of 8 rows of `kSwizzle` bytes whose 16-byte pieces
// are swizzled as TMA does it. `leading` and `stride` are byte offsets. K-major: stride between
// groups of 8 rows, leading is ignored. M/N-major: leading between groups of kSwizzle bytes of
// rows, stride between groups of 8 along K.
template <int kSwizzle>
__device__ inline uint64 smem_descriptor(const void* tile, int leading, int stride) {
  const uint64 layout = kSwizzle == 128 ? 1 : kSwizzle == 64 ? 2 : kSwizzle == 32 ? 3 : 0;
#if defined(__CUDA_ARCH__)
  const uint32 address = shared_address(tile);
#else
  const uint32 address = emulated_shared_address(tile);
#endif
  return (uint64)((address & 0x3ffff) >> 4) | (uint64)((leading & 0x3ffff) >> 4) << 16 |
         (uint64)((stride & 0x3ffff) >> 4) << 32 | layout << 62;
}
// The same matrix `bytes` further on; no carry leaves the address field.
__device__ inline uint64 advance_descriptor(uint64 descriptor, int bytes) {
  return descriptor + (uint64)(bytes >> 4);
}

// The thread must not touch accumulator or A registers between this fence and the wait.
__device__ inline void wgmma_fence() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}
__device__ inline void wgmma_commit_group() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#elif !defined(__CUDA_ARCH__)
  emulated_wgmma_commit();
#endif
}
// Waits until at most kPending groups are in flight.
template <int kPending>
__device__ inline void wgmma_wait_group() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
#elif !defined(__CUDA_ARCH__)
  emulated_wgmma_wait(kPending);
#endif
}
// Keeps the compiler from moving reads of the accumulators above the wait.
template <int kCount>
__device__ inline void fence_operand(float (&accum)[kCount]) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(accum[i])::"memory");
#endif
}
template <int kCount>
__device__ inline void fence_operand(int (&accum)[kCount]) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+r"(accum[i])::"memory");
#endif
}
// Of A in registers: the compiler packs it neither after the wgmma are issued nor before the wait.
template <int kCount>
__device__ inline void fence_operand(uint32 (&a)[kCount]) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+r"(a[i])::"memory");
#endif
}
template <int kRows, int kCount, class Accum>
__device__ inline void fence_operand(Accum (&accum)[kRows][kCount]) {
#pragma unroll
  for (int r = 0; r < kRows; ++r) fence_operand(accum[r]);
}

template <int kRows, int kCount, class Accum>
__device__ inline void clear(Accum (&accum)[kRows][kCount]) {
#pragma unroll
  for (int r = 0; r < kRows; ++r)
#pragma unroll
    for (int i = 0; i < kCount; ++i) accum[r][i] = 0;
}

// setmaxnreg moves registers between warpgroups; kCount is a multiple of 8.
template <int kCount>
__device__ inline void setmaxnreg_inc() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kCount));
#endif
}
template <int kCount>
__device__ inline void setmaxnreg_dec() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCount));
#endif
}

// Global memory accesses with cache hints. Read-only: no thread of the launch writes the location.
#pragma once

#include "lib/integers.cuh"

// One access of up to 16 bytes; those of up to 8 the compiler may hoist above earlier stores, which
// for 16 would take too many registers. Not inline assembly: NVRTC takes that for arithmetic if it
// is not volatile and hoists it above the test of the bounds.
#if defined(__CUDA_ARCH__)
__device__ inline uint2 load_read_only(const uint2* from) { return __ldg(from); }
__device__ inline uint32 load_read_only(const uint32* from) { return __ldg(from); }
#endif
template <class Piece>
__device__ inline Piece load_read_only(const Piece* from) {
  return *from;
}

// The same, but the compiler may also hoist it above a test: the address must always be valid.
#if defined(__CUDA_ARCH__)
__device__ inline uint4 load_anywhere(const uint4* from) {
  uint4 v;
  asm("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
      : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
      : "l"(from));
  return v;
}
__device__ inline uint32 load_anywhere(const uint32* from) {
  uint32 v;
  asm("ld.global.nc.u32 %0, [%1];" : "=r"(v) : "l"(from));
  return v;
}
#endif
template <class Piece>
__device__ inline Piece load_anywhere(const Piece* from) {
  return *from;
}

// The same for data that is read once: does not allocate in L1. Stays below earlier stores.
#if defined(__CUDA_ARCH__)
__device__ inline uint4 load_once(const uint4* from) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
      : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
      : "l"(from));
  return v;
}
__device__ inline uint2 load_once(const uint2* from) {
  uint2 v;
  asm volatile("ld.global.nc.L1::no_allocate.v2.u32 {%0, %1}, [%2];"
      : "=r"(v.x), "=r"(v.y)
      : "l"(from));
  return v;
}
#endif
template <class Piece>
__device__ inline Piece load_once(const Piece* from) {
  return *from;
}

// Prefetches a 128-byte line to L2; does not block.
__device__ inline void prefetch_to_l2(const void* from) {
#if defined(__CUDA_ARCH__)
  asm volatile("prefetch.global.L2 [%0];" ::"l"(from));
#else
  (void)from;
#endif
}

// One access: the compiler would split those of 8 bytes, and some of 16.
#if defined(__CUDA_ARCH__)
__device__ inline void store_piece(uint4* to, uint4 v) {
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(v.x), "r"(v.y), "r"(v.z),
               "r"(v.w)
               : "memory");
}
__device__ inline void store_piece(uint2* to, uint2 v) {
  asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(to), "r"(v.x), "r"(v.y) : "memory");
}
#endif
template <class Piece>
__device__ inline void store_piece(Piece* to, Piece v) {
  *to = v;
}

// kBytes bytes, aligned to kBytes, read once: does not allocate in L1. volatile: the compiler does
// not sink the loads below a barrier to save registers.
template <int kBytes> struct StreamPiece;

#if defined(__CUDA_ARCH__)

template <> struct StreamPiece<16> {
  __device__ static uint4 load(const void* from) {
    uint4 v;
    asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
        : "l"(from));
    return v;
  }
  __device__ static void store(void* to, uint4 v) {
    asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(v.x), "r"(v.y),
                 "r"(v.z), "r"(v.w)
                 : "memory");
  }
};
template <> struct StreamPiece<8> {
  __device__ static uint2 load(const void* from) {
    uint2 v;
    asm volatile("ld.global.L1::no_allocate.v2.u32 {%0, %1}, [%2];"
                 : "=r"(v.x), "=r"(v.y)
                 : "l"(from));
    return v;
  }
  __device__ static void store(void* to, uint2 v) {
    asm volatile("st.global.cs.v2.u32 [%0], {%1, %2};" ::"l"(to), "r"(v.x), "r"(v.y) : "memory");
  }
};
template <> struct StreamPiece<4> {
  __device__ static uint32 load(const void* from) {
    uint32 v;
    asm volatile("ld.global.L1::no_allocate.u32 %0, [%1];" : "=r"(v) : "l"(from));
    return v;
  }
  __device__ static void store(void* to, uint32 v) {
    asm volatile("st.global.cs.u32 [%0], %1;" ::"l"(to), "r"(v) : "memory");
  }
};
template <> struct StreamPiece<2> {
  __device__ static uint16 load(const void* from) {
    uint16 v;
    asm volatile("ld.global.L1::no_allocate.u16 %0, [%1];" : "=h"(v) : "l"(from));
    return v;
  }
  __device__ static void store(void* to, uint16 v) {
    asm volatile("st.global.cs.u16 [%0], %1;" ::"l"(to), "h"(v) : "memory");
  }
};
template <> struct StreamPiece<1> {
  __device__ static uint8 load(const void* from) {
    uint32 v;
    asm volatile("ld.global.L1::no_allocate.u8 %0, [%1];" : "=r"(v) : "l"(from));
    return (uint8)v;
  }
  __device__ static void store(void* to, uint8 v) {
    asm volatile("st.global.cs.u8 [%0], %1;" ::"l"(to), "r"((uint32)v) : "memory");
  }
};

#else

template <class Piece> struct PlainPiece {
  static Piece load(const void* from) { return *(const Piece*)from; }
  static void store(void* to, Piece v) { *(Piece*)to = v; }
};
template <> struct StreamPiece<16> : PlainPiece<uint4> {};
template <> struct StreamPiece<8> : PlainPiece<uint2> {};
template <> struct StreamPiece<4> : PlainPiece<uint32> {};
template <> struct StreamPiece<2> : PlainPiece<uint16> {};
template <> struct StreamPiece<1> : PlainPiece<uint8> {};

#endif

// mma.sync with i32 and f64 accumulators; see lib/ptx_mma.cuh.
#pragma once

#include "lib/elements.cuh"

// d += a * b: 16 x 32 times 32 x 8 of 8-bit integers, signed or unsigned on each side. Words of
// four are distributed over lanes as in lib/ptx_mma.cuh. f64: 16 x 4 times 4 x 8. With g = lane / 4
// and t = lane % 4 a lane holds
//   a[0], a[1]: rows g and g + 8, column t; b: row t, column g; d as for the other types
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800

#define MULTIPLY_ADD_INTEGERS(A, B, types)                                                      \
  __device__ inline void multiply_add(A, B, int (&d)[4], const uint32 (&a)[4],                  \
                                      const uint32 (&b)[2]) {                                   \
    asm("mma.sync.aligned.m16n8k32.row.col.s32." types ".s32 {%0, %1, %2, %3}, "                \
        "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                                         \
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])                                        \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                    \
  }
MULTIPLY_ADD_INTEGERS(i8, i8, "s8.s8")
MULTIPLY_ADD_INTEGERS(i8, u8, "s8.u8")
MULTIPLY_ADD_INTEGERS(u8, i8, "u8.s8")
MULTIPLY_ADD_INTEGERS(u8, u8, "u8.u8")
#undef MULTIPLY_ADD_INTEGERS

__device__ inline void multiply_add(f64, double (&d)[4], const double (&a)[2], double b) {
#pragma unroll
  for (int half = 0; half < 2; ++half)
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+d"(d[2 * half]), "+d"(d[2 * half + 1])
        : "d"(a[half]), "d"(b));
}

#elif !defined(__CUDA_ARCH__)

__device__ inline EmulatedMmaType emulated_number(i8) { return EmulatedMmaType::s8; }
__device__ inline EmulatedMmaType emulated_number(u8) { return EmulatedMmaType::u8; }
template <class A, class B>
__device__ inline void multiply_add(A a_type, B b_type, int (&d)[4], const uint32 (&a)[4],
                                    const uint32 (&b)[2]) {
  emulated_mma(emulated_number(a_type), emulated_number(b_type), 32, d, a, b, d);
}
__device__ inline void multiply_add(f64, double (&d)[4], const double (&a)[2], double b) {
  for (int half = 0; half < 2; ++half)
    emulated_mma_f64(8, 4, d + 2 * half, a + half, &b, d + 2 * half);
}

#endif

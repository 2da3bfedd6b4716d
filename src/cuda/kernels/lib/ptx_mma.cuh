// mma.sync: warp-level matrix multiply-add on tensor cores.
#pragma once

#include "lib/elements.cuh"

// d += a * b: 16 x k times k x 8, where k is 32 bytes of elements (16 of 16 bits, 8 of f32, which
// are used as tf32; to_tf32 rounds them first). With g = lane / 4 and t = lane % 4 a lane holds
//   a[0], a[1]: row g, row g + 8, word t of the first 16 bytes; a[2], a[3]: of the second 16 bytes
//   b[0], b[1]: column g, word t of the first, of the second 16 bytes
//   d[0], d[1]: row g, columns 2 t, 2 t + 1; d[2], d[3]: row g + 8
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800

__device__ inline void multiply_add(bf16, float (&d)[4], const uint32 (&a)[4],
                                    const uint32 (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ inline void multiply_add(f16, float (&d)[4], const uint32 (&a)[4],
                                    const uint32 (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ inline void multiply_add(f32, float (&d)[4], const uint32 (&a)[4],
                                    const uint32 (&b)[2]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
// To nearest, ties away from zero.
__device__ inline uint32 to_tf32(float x) {
  uint32 bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
  return bits;
}

#elif !defined(__CUDA_ARCH__)

__device__ inline void multiply_add(bf16, float (&d)[4], const uint32 (&a)[4],
                                    const uint32 (&b)[2]) {
  emulated_mma(EmulatedMmaType::bf16, EmulatedMmaType::bf16, 16, d, a, b, d);
}
__device__ inline void multiply_add(f16, float (&d)[4], const uint32 (&a)[4],
                                    const uint32 (&b)[2]) {
  emulated_mma(EmulatedMmaType::f16, EmulatedMmaType::f16, 16, d, a, b, d);
}
__device__ inline void multiply_add(f32, float (&d)[4], const uint32 (&a)[4],
                                    const uint32 (&b)[2]) {
  emulated_mma(EmulatedMmaType::tf32, EmulatedMmaType::tf32, 8, d, a, b, d);
}
__device__ inline uint32 to_tf32(float x) {
  const uint32 bits = __float_as_uint(x);
  return (bits & 0x7f800000u) == 0x7f800000u ? bits : (bits + 0x1000u) & 0xffffe000u;
}

#endif

// Matrices of 8 rows of 16 bytes, from shared memory into the registers of a warp the way products
// of matrices want them (sm_75 on).
#pragma once

#include "lib/ptx_shared.cuh"

// Lane l gives the address of row l % 8 of matrix l / 8, a multiple of 16, and gets of each matrix
// word l % 4 of row l / 4. kTransposed, for elements of 16 bits: elements 2 (l % 4) and
// 2 (l % 4) + 1 of column l / 4.
template <bool kTransposed>
__device__ inline void ldmatrix(uint32 (&to)[4], const void* row) {
#if defined(__CUDA_ARCH__)
  const uint32 from = shared_address(row);
  if constexpr (kTransposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from));
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from));
#else
  emulated_ldmatrix(to, row, 4, kTransposed);
#endif
}
// Two of them: the addresses of lanes 16 on do not count.
template <bool kTransposed>
__device__ inline void ldmatrix(uint32 (&to)[2], const void* row) {
#if defined(__CUDA_ARCH__)
  const uint32 from = shared_address(row);
  if constexpr (kTransposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(to[0]), "=r"(to[1])
                 : "r"(from));
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(to[0]), "=r"(to[1])
                 : "r"(from));
#else
  emulated_ldmatrix(to, row, 2, kTransposed);
#endif
}

// ldmatrix: 8 x 16-byte matrices from shared memory into the register fragments of mma.sync (sm_75
// on).
#pragma once

#include "lib/ptx_shared.cuh"

// Lane l passes the 16-byte-aligned address of row l % 8 of matrix l / 8, and gets word l % 4 of
// row l / 4 of each matrix. kTransposed, for 16-bit elements: elements 2 (l % 4) and 2 (l % 4) + 1
// of column l / 4.
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
// Two matrices: the addresses of lanes 16 to 31 are ignored.
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

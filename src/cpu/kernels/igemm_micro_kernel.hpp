// The indirect GEMM (igemm) micro-kernel of convolutions: rows of A addressed by offsets, times a
// panel of B four vectors wide, tile by tile. A 6 x 4-vector tile issues 10 loads per 24 FMAs,
// which leaves load-port capacity for L2 traffic (14 x 2 issues 16 per 28).
#pragma once

#include <cstdint>

#include "cpu/kernels/gemm_micro_kernel.hpp"

namespace ashlar::cpu {

inline constexpr std::int64_t kMaxTileRows = 6;  // MR: rows of a register tile
inline constexpr std::int64_t kMaxTileColumns = 64;

// C[i][j] = sum over segments s and l < k of A(i, s, l) * B(s, l)[j], with GemmPostOps (its
// addend_row is not read):
//   A(i, s, l) = a[a_rows[i] + a_segments[s] + l * a_step]
//   B(s, l)    = b + b_segments[s] + l * b_row
// Segments are the separate runs of K: rows of a filter window, rows of an image. Rows of B are
// loaded in whole vectors, up to IgemmMicroKernel::columns elements.
template <class T>
struct IgemmMicroArgs {
  // Of C: at least 1. Rows are split into even tiles; columns <= IgemmMicroKernel::columns.
  std::int64_t rows = 0, columns = 0;
  const T* a = nullptr;
  const std::int64_t* a_rows = nullptr;  // offsets
  std::int64_t a_step = 1;
  std::int64_t segments = 1, k = 0;
  const std::int64_t* a_segments = nullptr;
  const T* b = nullptr;
  const std::int64_t* b_segments = nullptr;  // null: consecutive
  std::int64_t b_row = 0;
  // Software prefetch to L2 of later operands: tile t < next_tiles prefetches at most next_lines
  // cache lines, next_step elements apart, from next + t * next_tile on. Null: none.
  const T* next = nullptr;
  std::int64_t next_tiles = 1, next_tile = 0;
  std::int64_t next_lines = 0, next_step = 64 / static_cast<std::int64_t>(sizeof(T));
  // Further rows to prefetch to L2, as wide as those of C and one per row of C. Null: none.
  const T* extra_prefetch = nullptr;
  const std::int64_t* extra_prefetch_rows = nullptr;  // offsets
  T* c = nullptr;
  const std::int64_t* c_rows = nullptr;       // offsets
  bool accumulate = false;                    // C += A B
  const GemmPostOps<T>* post_ops = nullptr;   // null: none
  const std::int64_t* addend_rows = nullptr;  // offsets of the post-ops' addend
};

template <class T>
struct IgemmMicroKernel {
  std::int64_t columns;  // NR: four vectors, two with 16 registers
  void (*multiply)(const IgemmMicroArgs<T>& operands);
};

// The best implementation for this CPU.
template <class T>
const IgemmMicroKernel<T>& igemm_micro_kernel();

}  // namespace ashlar::cpu

// The register-blocked product of convolutions: rows of A, each read where it lies, times a panel
// of B four vectors wide, tile by tile. A tile of six rows asks for 10 loads per 24 multiply-adds,
// which leaves the load ports room for what comes from L2 (14 by 2 asks for 16 per 28).
#pragma once

#include <cstdint>

#include "cpu/kernels/gemm_micro_kernel.hpp"

namespace ashlar::cpu {

inline constexpr std::int64_t kMaxProductRows = 6;  // of a tile
inline constexpr std::int64_t kMaxProductColumns = 64;

// C[i][j] = sum over segments s and depths l of A(i, s, l) * B(s, l)[j], finished as GemmPostOps
// says (its addend_row is not read):
//   A(i, s, l) = a[a_rows[i] + a_segments[s] + l * a_step]
//   B(s, l)    = b + b_segments[s] + l * b_row
// Segments are the pieces of the depth that lie apart: the rows of a filter's window, the rows of
// an image. All IgemmMicroKernel::columns elements of B's rows that hold a column may be read by
// whole vectors.
template <class T>
struct IgemmMicroArgs {
  // Of C: at least 1. Rows are cut into even tiles, columns are at most those of IgemmMicroKernel.
  std::int64_t rows = 0, columns = 0;
  const T* a = nullptr;
  const std::int64_t* a_rows = nullptr;  // offsets
  std::int64_t a_step = 1;
  std::int64_t segments = 1, k = 0;
  const std::int64_t* a_segments = nullptr;
  const T* b = nullptr;
  const std::int64_t* b_segments = nullptr;  // null: they follow one another
  std::int64_t b_row = 0;
  // What will be multiplied next, brought to L2 on the way: tile t < next_tiles asks for at most
  // next_lines cache lines, next_step elements apart, from next + t * next_tile on. Null: nothing.
  const T* next = nullptr;
  std::int64_t next_tiles = 1, next_tile = 0;
  std::int64_t next_lines = 0, next_step = 64 / static_cast<std::int64_t>(sizeof(T));
  // Other rows as wide as C's that come to L2 on the way, one for each of C's. Null: none.
  const T* extra_prefetch = nullptr;
  const std::int64_t* extra_prefetch_rows = nullptr;  // offsets
  T* c = nullptr;
  const std::int64_t* c_rows = nullptr;       // offsets
  bool accumulate = false;                    // C is added to the sums
  const GemmPostOps<T>* post_ops = nullptr;   // null: sums are stored as they are
  const std::int64_t* addend_rows = nullptr;  // offsets; for a finish with an addend
};

template <class T>
struct IgemmMicroKernel {
  std::int64_t columns;  // of a panel of B: four vectors, two where there are 16 registers
  void (*multiply)(const IgemmMicroArgs<T>& operands);
};

// The best for this processor.
template <class T>
const IgemmMicroKernel<T>& igemm_micro_kernel();

}  // namespace ashlar::cpu

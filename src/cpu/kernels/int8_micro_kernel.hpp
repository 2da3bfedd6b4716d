// The register-blocked product of 8-bit integers: rows of A, a few at a time, times a panel of B
// that is a few vectors wide, four elements of the depth (a quad) to each 32-bit lane.
#pragma once

#include <cstdint>

namespace ashlar::cpu {

enum class Int8Output : std::uint8_t { i32, i8, u8 };  // the last two saturate

// C[i][j] = row_start[i] + column_start[j] + sum over l of A[i][l] * B[l][j], with A unsigned and B
// signed. Sums wrap: they are right whenever the result fits 32 bits, whatever happens on the way.
//
// A is read where it lies. Its depth is cut into segments that lie apart (the rows of a filter's
// window): element (i, l) of segment s is a[segment_offsets[s] + row_offsets[i] + l]. Each segment
// is 4 * quads long; all of it may be read.
struct Int8MicroArgs {
  std::int64_t rows = 0, columns = 0;  // of C: at least 1; at most the columns of Int8MicroKernel
  const std::uint8_t* a = nullptr;
  const std::int64_t* row_offsets = nullptr;
  std::int64_t segments = 1, quads = 0;
  const std::int64_t* segment_offsets = nullptr;  // null: one segment at 0
  // Through all segments: element 4 * q + r of column j at b[(q * Int8MicroKernel::columns + j) * 4
  // + r].
  const std::int8_t* b = nullptr;
  const std::int32_t* row_start = nullptr;     // null: zeros
  const std::int32_t* column_start = nullptr;  // null: zeros; of all columns of the panel
  Int8Output result = Int8Output::i32;
  void* c = nullptr;
  std::int64_t c_row = 0;  // elements
};

struct Int8MicroKernel {
  std::int64_t rows;     // of A that are worked on together
  std::int64_t columns;  // of a panel of B: a few vectors of 32-bit lanes
  void (*multiply)(const Int8MicroArgs& operands);
};

// The best for this processor.
const Int8MicroKernel& int8_micro_kernel();
// The one that needs no instruction of its own (for tests).
const Int8MicroKernel& portable_int8_micro_kernel();

// Most rows and columns on any processor.
inline constexpr std::int64_t kMaxQuadRows = 8, kMaxQuadColumns = 64;

}  // namespace ashlar::cpu

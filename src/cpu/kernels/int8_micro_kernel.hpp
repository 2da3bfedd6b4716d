// The int8 GEMM micro-kernel (u8 x s8 -> i32): a few rows of A times a panel of B, 4 elements of K
// (a quad) per 32-bit lane, as in VNNI.
#pragma once

#include <cstdint>

namespace ashlar::cpu {

enum class Int8Output : std::uint8_t { i32, i8, u8 };  // i8 and u8 saturate

// C[i][j] = row_start[i] + column_start[j] + sum over l of A[i][l] * B[l][j], A unsigned, B signed.
// Accumulators wrap: the result is exact if it fits 32 bits, whatever intermediate sums do.
//
// A is read in place. K may be split into segments at separate offsets (the rows of a filter
// window): element (i, l) of segment s is a[segment_offsets[s] + row_offsets[i] + l]. Each segment
// has 4 * quads bytes, all readable.
struct Int8MicroArgs {
  std::int64_t rows = 0, columns = 0;  // of C: at least 1; at most Int8MicroKernel::columns columns
  const std::uint8_t* a = nullptr;
  const std::int64_t* row_offsets = nullptr;
  std::int64_t segments = 1, quads = 0;
  const std::int64_t* segment_offsets = nullptr;  // null: one segment at offset 0
  // Over all segments: element k = 4 * q + r of column j at
  //   b[(q * Int8MicroKernel::columns + j) * 4 + r].
  const std::int8_t* b = nullptr;
  const std::int32_t* row_start = nullptr;     // null: zeros
  const std::int32_t* column_start = nullptr;  // null: zeros; one per column of the panel
  Int8Output result = Int8Output::i32;
  void* c = nullptr;
  std::int64_t c_row = 0;  // elements
};

struct Int8MicroKernel {
  std::int64_t rows;     // MR: rows of A of a register tile
  std::int64_t columns;  // NR: a few vectors of 32-bit lanes
  void (*multiply)(const Int8MicroArgs& operands);
};

// The best implementation for this CPU.
const Int8MicroKernel& int8_micro_kernel();
// The one without VNNI (for tests).
const Int8MicroKernel& portable_int8_micro_kernel();

// Maximum MR and NR on any CPU.
inline constexpr std::int64_t kMaxInt8Rows = 8, kMaxInt8Columns = 64;

}  // namespace ashlar::cpu

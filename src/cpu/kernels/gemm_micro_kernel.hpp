// The GEMM micro-kernel: an MR x NR register tile of C from a few rows of A and a panel of B.
#pragma once

#include <cstdint>
#include <limits>

#include "cpu/kernels/pointwise.hpp"

namespace ashlar::cpu {

// Post-ops, applied to the accumulators in registers before they are stored:
//   C[i][j] = activation(clamp(acc[i][j] + bias[j] + addend[i * addend_row + j], low, high))
// The clamp propagates NaN. An activation runs over the rows of C just stored, while they are in
// L1; only GemmMicroKernel supports it.
template <class T>
struct GemmPostOps {
  const T* bias = nullptr;    // null: none
  const T* addend = nullptr;  // null: none
  std::int64_t addend_row = 0;
  T low = -std::numeric_limits<T>::infinity();
  T high = std::numeric_limits<T>::infinity();
  const Pointwise* activation = nullptr;  // null: none
  PointwiseRow<T> activate;
};

// Software prefetch of later panels. With every four steps of K, `repeats` times: one cache line
// from each of kStreams streams `distance` elements apart, which then advance by `advance`
// elements. Several concurrent streams get more memory bandwidth than one.
template <class T>
struct PanelPrefetch {
  static constexpr std::int64_t kStreams = 4;
  static constexpr auto kLine = static_cast<std::int64_t>(64 / sizeof(T));
  const T* at = nullptr;
  std::int64_t distance = 0, advance = 0, repeats = 0;
  std::int64_t left = 0;  // prefetch steps left
};

// Arguments of the micro-kernel. K of A may be split into segments at separate offsets (the rows of
// a filter window): element (i, l) of segment s is a[segment_offsets[s] + i * a_row + l]. Rows of B
// are consecutive over all segments: row s * k + l starts at b + (s * k + l) * b_row, and all
// GemmMicroKernel::columns elements of it may be read.
template <class T>
struct GemmMicroArgs {
  std::int64_t rows = 0, columns = 0;  // of C: at least 1, at most those of GemmMicroKernel
  const T* a = nullptr;
  std::int64_t a_row = 0;
  std::int64_t segments = 1, k = 0;
  const std::int64_t* segment_offsets = nullptr;  // null: one segment at offset 0
  const T* b = nullptr;
  std::int64_t b_row = 0;
  T* c = nullptr;
  std::int64_t c_row = 0;
  bool accumulate = false;                   // C += A B
  const GemmPostOps<T>* post_ops = nullptr;  // null: none
  PanelPrefetch<T> prefetch;
};

template <class T>
struct GemmMicroKernel {
  std::int64_t rows;     // MR: maximum rows of A
  std::int64_t columns;  // NR: four vectors with 32 registers, else two
  void (*strided)(const GemmMicroArgs<T>& operands);
  // Packed A: element (i, l) at a[l * a_row + i], or at a[l * GemmMicroKernel::rows + i] if a_row
  // is 0; one segment.
  void (*packed)(const GemmMicroArgs<T>& operands);
};

// The best implementation for this CPU; T is float or double.
template <class T>
const GemmMicroKernel<T>& gemm_micro_kernel();

// GemmMicroKernel::columns (NR) for vectors of this many bytes.
template <class T>
constexpr std::int64_t panel_columns(std::int64_t vector_bytes) {
#if defined(__aarch64__)
  constexpr bool kManyRegisters = true;
#else
  const bool kManyRegisters = vector_bytes >= 64;
#endif
  return (kManyRegisters ? 4 : 2) * vector_bytes / static_cast<std::int64_t>(sizeof(T));
}

// Multiples of MR and NR on every CPU.
inline constexpr std::int64_t kPanelRowMultiple = 12;
template <class T>
inline constexpr std::int64_t kPanelColumnMultiple = 256 / static_cast<std::int64_t>(sizeof(T));

}  // namespace ashlar::cpu

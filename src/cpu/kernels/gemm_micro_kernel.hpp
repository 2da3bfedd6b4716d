// The register-blocked product all matrix work is made of: a few rows of A times a panel of B that
// is a few vectors wide.
#pragma once

#include <cstdint>
#include <limits>

#include "cpu/kernels/pointwise.hpp"

namespace ashlar::cpu {

// What is done to finished sums in registers, on their way to C:
//   C[i][j] = activation(clamp(sum[i][j] + bias[j] + addend[i * addend_row + j], low, high))
// The clamp takes NaN to NaN. An activation runs over the rows of C that were just stored, which
// are in L1 then; only GemmMicroKernel knows it.
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

// What will be multiplied later and is brought nearer meanwhile. With every four steps of the
// depth, `repeats` times: a cache line from each of kStreams places `distance` elements apart,
// which are then `advance` elements further. Memory gives more to one who reads in several places.
template <class T>
struct PanelPrefetch {
  static constexpr std::int64_t kStreams = 4;
  static constexpr auto kLine = static_cast<std::int64_t>(64 / sizeof(T));
  const T* at = nullptr;
  std::int64_t distance = 0, advance = 0, repeats = 0;
  std::int64_t left = 0;  // how often, in all
};

// A is read where it lies. Its depth is cut into segments that lie apart (the rows of a filter's
// window): element (i, l) of segment s is a[segment_offsets[s] + i * a_row + l]. B's rows follow
// one another through all segments: row s * depth + l starts at b + (s * depth + l) * b_row, and
// all `GemmMicroKernel::columns` elements of it may be read.
template <class T>
struct GemmMicroArgs {
  std::int64_t rows = 0, columns = 0;  // of C: at least 1, at most those of GemmMicroKernel
  const T* a = nullptr;
  std::int64_t a_row = 0;
  std::int64_t segments = 1, k = 0;
  const std::int64_t* segment_offsets = nullptr;  // null: one segment at 0
  const T* b = nullptr;
  std::int64_t b_row = 0;
  T* c = nullptr;
  std::int64_t c_row = 0;
  bool accumulate = false;                   // C is added to the sums
  const GemmPostOps<T>* post_ops = nullptr;  // null: sums are stored as they are
  PanelPrefetch<T> prefetch;
};

template <class T>
struct GemmMicroKernel {
  std::int64_t rows;     // most rows of A at once
  std::int64_t columns;  // of a panel of B: four vectors where there are 32 registers, else two
  void (*strided)(const GemmMicroArgs<T>& operands);
  // A packed: element (i, l) at a[l * a_row + i], or at a[l * GemmMicroKernel::rows + i] where
  // a_row is 0; one segment.
  void (*packed)(const GemmMicroArgs<T>& operands);
};

// The best for this processor; for float and double.
template <class T>
const GemmMicroKernel<T>& gemm_micro_kernel();

// GemmMicroKernel::columns where vectors have this many bytes: four of them with 32 registers.
template <class T>
constexpr std::int64_t panel_columns(std::int64_t vector_bytes) {
#if defined(__aarch64__)
  constexpr bool kManyRegisters = true;
#else
  const bool kManyRegisters = vector_bytes >= 64;
#endif
  return (kManyRegisters ? 4 : 2) * vector_bytes / static_cast<std::int64_t>(sizeof(T));
}

// What every processor's panels divide.
inline constexpr std::int64_t kPanelRowMultiple = 12;
template <class T>
inline constexpr std::int64_t kPanelColumnMultiple = 256 / static_cast<std::int64_t>(sizeof(T));

}  // namespace ashlar::cpu

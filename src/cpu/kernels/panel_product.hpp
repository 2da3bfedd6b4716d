// The register-blocked product all matrix work is made of: a few rows of A times a panel of B that
// is two vectors wide.
#pragma once

#include <cstdint>
#include <limits>

namespace ashlar::cpu {

// What is done to finished sums in registers, on their way to C:
//   C[i][j] = clamp(sum[i][j] + bias[j] + addend[i * addend_row + j], low, high)
// The clamp takes NaN to NaN.
template <class T>
struct PanelFinish {
  const T* bias = nullptr;    // null: none
  const T* addend = nullptr;  // null: none
  std::int64_t addend_row = 0;
  T low = -std::numeric_limits<T>::infinity();
  T high = std::numeric_limits<T>::infinity();
};

// A is read where it lies. Its depth is cut into segments that lie apart (the rows of a filter's
// window): element (i, l) of segment s is a[segment_offsets[s] + i * a_row + l]. B's rows follow
// one another through all segments: row s * depth + l starts at b + (s * depth + l) * b_row, and
// all `PanelProduct::columns` elements of it may be read.
template <class T>
struct PanelOperands {
  std::int64_t rows = 0, columns = 0;  // of C: at least 1, at most those of PanelProduct
  const T* a = nullptr;
  std::int64_t a_row = 0;
  std::int64_t segments = 1, depth = 0;
  const std::int64_t* segment_offsets = nullptr;  // null: one segment at 0
  const T* b = nullptr;
  std::int64_t b_row = 0;
  T* c = nullptr;
  std::int64_t c_row = 0;
  bool accumulate = false;                 // C is added to the sums
  const PanelFinish<T>* finish = nullptr;  // null: sums are stored as they are
};

template <class T>
struct PanelProduct {
  std::int64_t rows;     // most rows of A at once: 14 with 32 vector registers, 6 with 16
  std::int64_t columns;  // of a panel of B: two vectors
  void (*strided)(const PanelOperands<T>& operands);
  // A packed: element (i, l) at a[l * a_row + i], or at a[l * PanelProduct::rows + i] where a_row
  // is 0; one segment.
  void (*packed)(const PanelOperands<T>& operands);
};

// The best for this processor.
template <class T>
const PanelProduct<T>& panel_product();

// What every processor's panels divide.
inline constexpr std::int64_t kPanelRowMultiple = 42;
template <class T>
inline constexpr std::int64_t kPanelColumnMultiple = 128 / static_cast<std::int64_t>(sizeof(T));

}  // namespace ashlar::cpu

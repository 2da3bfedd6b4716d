// Dot products of rows: the micro-kernel of a skinny GEMM.
#pragma once

#include <cstdint>

namespace ashlar::cpu {

inline constexpr std::int64_t kDotRows = 4;  // rows of the long operand at once
inline constexpr std::int64_t kMaxDots = 4;  // rows of the short operand at once

// sums[m * kDotRows + i] += sum over l < length of left[m][l] * right[i][l], for m < count and
// i < kDotRows.
template <class T>
using DotRows = void (*)(const T* const* right, const T* const* left, std::int64_t count,
                         std::int64_t length, T* sums);

// The best implementation for this CPU; T is float or double.
template <class T>
[[gnu::visibility("hidden")]] DotRows<T> dot_rows();

}  // namespace ashlar::cpu

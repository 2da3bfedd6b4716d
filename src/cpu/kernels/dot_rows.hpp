// Sums of products of rows: what is left of a matrix product when one side has few rows.
#pragma once

#include <cstdint>

namespace ashlar::cpu {

inline constexpr std::int64_t kDotRows = 4;  // rows of the long side at once
inline constexpr std::int64_t kMaxDots = 4;  // of the short side

// sums[m * kDotRows + i] += sum over l < length of left[m][l] * right[i][l], for m < count and
// i < kDotRows.
template <class T>
using DotRows = void (*)(const T* const* right, const T* const* left, std::int64_t count,
                         std::int64_t length, T* sums);

// The best for this processor; for float and double.
template <class T>
DotRows<T> dot_rows();

}  // namespace ashlar::cpu

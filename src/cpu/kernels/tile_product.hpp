// A register-blocked product of small tiles that lie in cache: the arithmetic of attention.
#pragma once

#include <cstdint>

namespace ashlar::cpu {

// Rows of B and C are padded to a multiple of this many elements, whatever the vector length.
template <class T>
inline constexpr std::int64_t kTileAlignment = 64 / static_cast<std::int64_t>(sizeof(T));

template <class T>
constexpr std::int64_t padded_to_tile(std::int64_t n) {
  return (n + kTileAlignment<T> - 1) / kTileAlignment<T> * kTileAlignment<T>;
}

template <class T>
struct TileOperands {
  std::int64_t m, n, k;  // n a multiple of kTileAlignment
  const T* a;            // element (i, l) at a[i * a_row + l * a_column]: transposed or not
  std::int64_t a_row, a_column;
  const T* b;
  std::int64_t b_row;
  T* c;
  std::int64_t c_row;
  bool accumulate;  // add to C instead of overwriting it
};

// C = A B, or C += A B.
template <class T>
using TileProduct = void (*)(const TileOperands<T>& operands);

// The function for this processor.
template <class T>
TileProduct<T> tile_product();

}  // namespace ashlar::cpu

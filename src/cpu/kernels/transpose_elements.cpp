// Transposes of 1, 2, 4 and 8-byte elements in register tiles.
#include "cpu/kernels/transpose_elements.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels/transpose_elements.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR
// An n x n register tile, n elements per 16 bytes. Interleaving row i with row i + n/2 moves one
// bit of every element's row index into its column index; log2(n) rounds exchange the two.
template <class T>
HWY_INLINE void TransposeSquare(const T* source, std::int64_t source_stride, T* destination,
                                std::int64_t destination_stride) {
  constexpr std::size_t kGroupsPerTile = 16 / sizeof(T);
  const hn::Full128<T> d;
  hn::Vec<decltype(d)> rows[kGroupsPerTile], next[kGroupsPerTile];
  for (std::size_t i = 0; i < kGroupsPerTile; ++i)
    rows[i] = hn::LoadU(d, source + static_cast<std::int64_t>(i) * source_stride);
  for (std::size_t round = 1; round < kGroupsPerTile; round *= 2) {
    for (std::size_t i = 0; i < kGroupsPerTile / 2; ++i) {
      next[2 * i] = hn::InterleaveLower(d, rows[i], rows[i + kGroupsPerTile / 2]);
      next[2 * i + 1] = hn::InterleaveUpper(d, rows[i], rows[i + kGroupsPerTile / 2]);
    }
    for (std::size_t i = 0; i < kGroupsPerTile; ++i) rows[i] = next[i];
  }
  for (std::size_t i = 0; i < kGroupsPerTile; ++i)
    hn::StoreU(rows[i], d, destination + static_cast<std::int64_t>(i) * destination_stride);
}
#endif

template <class T>
void Transpose(const void* from, std::int64_t source_stride, void* to,
               std::int64_t destination_stride, std::int64_t rows, std::int64_t columns) {
  const auto* source = static_cast<const T*>(from);
  auto* destination = static_cast<T*>(to);
  const auto one_by_one = [&](std::int64_t first_row, std::int64_t first_column) {
    for (std::int64_t r = first_row; r < rows; ++r)
      for (std::int64_t c = first_column; c < columns; ++c)
        destination[c * destination_stride + r] = source[r * source_stride + c];
  };
#if HWY_TARGET == HWY_SCALAR
  one_by_one(0, 0);
#else
  constexpr auto kGroupsPerTile = static_cast<std::int64_t>(16 / sizeof(T));
  const std::int64_t whole_rows = rows - rows % kGroupsPerTile,
                     whole_columns = columns - columns % kGroupsPerTile;
  for (std::int64_t c = 0; c < whole_columns; c += kGroupsPerTile)
    for (std::int64_t r = 0; r < whole_rows; r += kGroupsPerTile)
      TransposeSquare(source + r * source_stride + c, source_stride,
                      destination + c * destination_stride + r, destination_stride);
  one_by_one(whole_rows, 0);
  for (std::int64_t r = 0; r < whole_rows; ++r)
    for (std::int64_t c = whole_columns; c < columns; ++c)
      destination[c * destination_stride + r] = source[r * source_stride + c];
#endif
}

TransposeElements ChooseTranspose(std::int64_t element_bytes) {
  switch (element_bytes) {
    case 1: return Transpose<std::uint8_t>;
    case 2: return Transpose<std::uint16_t>;
    case 4: return Transpose<std::uint32_t>;
    default: return Transpose<std::uint64_t>;
  }
}

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ashlar::cpu {

HWY_EXPORT(ChooseTranspose);

TransposeElements transpose_elements(std::int64_t element_bytes) {
  return HWY_DYNAMIC_DISPATCH(ChooseTranspose)(element_bytes);
}

}  // namespace ashlar::cpu
#endif  // HWY_ONCE

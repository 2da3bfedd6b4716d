// Compiled once per SIMD target; see transpose.cpp.
#if defined(ASHLAR_CPU_KERNELS_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASHLAR_CPU_KERNELS_TRANSPOSE_INL_H_
#undef ASHLAR_CPU_KERNELS_TRANSPOSE_INL_H_
#else
#define ASHLAR_CPU_KERNELS_TRANSPOSE_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline void TransposeScalar(std::int64_t rows, std::int64_t columns, const float* from,
                            std::int64_t from_row, float* to, std::int64_t to_row) {
  for (std::int64_t j = 0; j < columns; ++j)
    for (std::int64_t i = 0; i < rows; ++i) to[j * to_row + i] = from[i * from_row + j];
}

#if HWY_TARGET != HWY_SCALAR
// As many rows as a vector has lanes, 4 columns: 16-byte pieces of 4 rows side by side (those of
// rows i, i + 4, i + 8, ... in one vector), then a 4 x 4 transpose in every piece.
HWY_INLINE void TransposeFourColumns(const float* from, std::int64_t from_row, float* to,
                                     std::int64_t to_row) {
  const hn::ScalableTag<float> d;
  const hn::Repartition<double, decltype(d)> pairs;
  using V = hn::Vec<decltype(d)>;
  constexpr int kBlocks = static_cast<int>(hn::MaxLanes(d)) / 4;
  V row[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    row[i] = hn::LoadDup128(d, from + i * from_row);
#pragma GCC unroll 4
    for (int block = 1; block < kBlocks; ++block) {
      // Lanes from 4 * block on are this piece until a later one takes its place.
      const auto before = hn::FirstN(d, static_cast<std::size_t>(4 * block));
      const V piece = hn::LoadDup128(d, from + (4 * block + i) * from_row);
      row[i] = hn::IfThenElse(before, row[i], piece);
    }
  }
  const V low01 = hn::InterleaveLower(d, row[0], row[1]);
  const V high01 = hn::InterleaveUpper(d, row[0], row[1]);
  const V low23 = hn::InterleaveLower(d, row[2], row[3]);
  const V high23 = hn::InterleaveUpper(d, row[2], row[3]);
  const auto join_lower = [&](V a, V b) HWY_ATTR {
    return hn::BitCast(d, hn::InterleaveLower(pairs, hn::BitCast(pairs, a), hn::BitCast(pairs, b)));
  };
  const auto join_upper = [&](V a, V b) HWY_ATTR {
    return hn::BitCast(d, hn::InterleaveUpper(pairs, hn::BitCast(pairs, a), hn::BitCast(pairs, b)));
  };
  hn::StoreU(join_lower(low01, low23), d, to);
  hn::StoreU(join_upper(low01, low23), d, to + to_row);
  hn::StoreU(join_lower(high01, high23), d, to + 2 * to_row);
  hn::StoreU(join_upper(high01, high23), d, to + 3 * to_row);
}
#endif

inline void TransposeFloats(std::int64_t rows, std::int64_t columns, const float* from,
                            std::int64_t from_row, float* to, std::int64_t to_row) {
#if HWY_TARGET == HWY_SCALAR
  TransposeScalar(rows, columns, from, from_row, to, to_row);
#else
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<float>()));
  const std::int64_t whole_rows = rows / lanes * lanes, whole_columns = columns / 4 * 4;
  for (std::int64_t i = 0; i < whole_rows; i += lanes)
    for (std::int64_t j = 0; j < whole_columns; j += 4)
      TransposeFourColumns(from + i * from_row + j, from_row, to + j * to_row + i, to_row);
  TransposeScalar(whole_rows, columns - whole_columns, from + whole_columns, from_row,
                  to + whole_columns * to_row, to_row);
  TransposeScalar(rows - whole_rows, columns, from + whole_rows * from_row, from_row,
                  to + whole_rows, to_row);
#endif
}

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard

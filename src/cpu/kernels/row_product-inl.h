// Compiled once per SIMD target; see row_product.cpp.
#if defined(ASHLAR_CPU_KERNELS_ROW_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASHLAR_CPU_KERNELS_ROW_PRODUCT_INL_H_
#undef ASHLAR_CPU_KERNELS_ROW_PRODUCT_INL_H_
#else
#define ASHLAR_CPU_KERNELS_ROW_PRODUCT_INL_H_
#endif

#include <hwy/highway.h>

#include "cpu/kernels/row_product.hpp"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Accumulators take 24 of 32 registers, or 12 of 16; B's row 4 or 2, A's element one.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM
inline constexpr int kProductVectors = 4;
#else
inline constexpr int kProductVectors = 2;
#endif

template <int kRows, int kVectors, class V>
struct RowSums {
  V at[kRows][kVectors];
};

// Calls visit(i, v) for every accumulator, unrolled.
#define ASHLAR_FOR_SUMS(i, v)                             \
  _Pragma("GCC unroll 8") for (int i = 0; i < kRows; ++i) \
      _Pragma("GCC unroll 4") for (int v = 0; v < kVectors; ++v)

// What a tile asks for ahead of time, a little in every turn of its loop: cache lines of what is
// multiplied next, the rows that the next tile writes, and those beside them.
template <class T>
struct Ahead {
  const T *next = nullptr, *next_end = nullptr;
  std::int64_t row, rows_end;  // of this tile
  bool is_beside = false;

  Ahead(const RowOperands<T>& o, std::int64_t number, std::int64_t first, std::int64_t rows)
      : row(first), rows_end(first + rows) {
    if (number < o.next_tiles && o.next != nullptr) {
      next = o.next + number * o.next_tile;
      next_end = next + o.next_lines * o.next_step;
    }
  }
};

// The next row of C or, in turn, one beside: a core waits for few lines at a time.
template <int kRows, int kVectors, class T>
HWY_INLINE void BringRow(const RowOperands<T>& o, Ahead<T>& ahead) {
  constexpr auto kLine = static_cast<std::int64_t>(64 / sizeof(T));
  const auto columns = kVectors * static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  if (ahead.is_beside) {
    const T* beside = o.beside + o.beside_rows[ahead.row];
    for (std::int64_t j = 0; j < columns; j += kLine) __builtin_prefetch(beside + j, 0, 2);
  } else if (ahead.row + kRows < o.rows) {
    const T* c = o.c + o.c_rows[ahead.row + kRows];
    for (std::int64_t j = 0; j < columns; j += kLine) __builtin_prefetch(c + j, 1, 3);
  }
  ahead.is_beside = o.beside != nullptr && !ahead.is_beside;
  if (!ahead.is_beside) ++ahead.row;
}

// One step of the depth: row i of A is at row[i][l].
template <int kRows, int kVectors, class T, class V>
HWY_INLINE void AddStep(const T* const (&row)[kRows], std::int64_t l, const T* HWY_RESTRICT b,
                        RowSums<kRows, kVectors, V>& sums) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  V b_v[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) b_v[v] = hn::LoadU(d, b + v * lanes);
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
    const V a_i = hn::Set(d, row[i][l]);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sums.at[i][v] = hn::MulAdd(a_i, b_v[v], sums.at[i][v]);
  }
}

// All segments, kSteps steps of the depth per turn of the loop. kStep, kBRow: o.a_step and o.b_row
// where they are known, else 0.
template <int kRows, int kVectors, int kSteps, int kStep, int kBRow, class T, class V>
HWY_INLINE void AddSegments(const RowOperands<T>& o, const std::int64_t* a_rows, Ahead<T> ahead,
                            RowSums<kRows, kVectors, V>& sums) {
  const T* row[kRows];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) row[i] = o.a + a_rows[i];
  const std::int64_t step = kStep != 0 ? kStep : o.a_step, b_row = kBRow != 0 ? kBRow : o.b_row;
  const T* b_next = o.b;
  for (std::int64_t s = 0; s < o.segments; ++s) {
    const T* b = o.b_segments != nullptr ? o.b + o.b_segments[s] : b_next;
    std::int64_t l = o.a_segments[s];
    const std::int64_t end = l + o.depth * step;
    for (; l + (kSteps - 1) * step < end; l += kSteps * step, b += kSteps * b_row) {
      if (ahead.next < ahead.next_end) {
#pragma GCC unroll 4
        for (int u = 0; u < kSteps; ++u, ahead.next += o.next_step)
          __builtin_prefetch(ahead.next, 0, 2);
      }
      if (ahead.row < ahead.rows_end) BringRow<kRows, kVectors>(o, ahead);
#pragma GCC unroll 4
      for (int u = 0; u < kSteps; ++u)
        AddStep<kRows, kVectors>(row, l + u * step, b + u * b_row, sums);
    }
    // Known rows of B come with a depth of whole turns.
    if constexpr (kSteps > 1 && kBRow == 0)
      for (; l < end; l += step, b += b_row) AddStep<kRows, kVectors>(row, l, b, sums);
    b_next = b;
  }
}

// C's columns are whole vectors.
template <int kRows, int kVectors, class T, class V>
HWY_INLINE void StoreWhole(const RowOperands<T>& o, std::int64_t row,
                           RowSums<kRows, kVectors, V>& sums) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  T* c[kRows];  // read once: the compiler takes any store for one to the offsets
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) c[i] = o.c + o.c_rows[row + i];
  if (o.accumulate) {
    ASHLAR_FOR_SUMS(i, v)
    sums.at[i][v] = hn::Add(sums.at[i][v], hn::LoadU(d, c[i] + v * lanes));
  }
  if (o.finish != nullptr) {
    if (o.finish->bias != nullptr) {
      ASHLAR_FOR_SUMS(i, v)
      sums.at[i][v] = hn::Add(sums.at[i][v], hn::LoadU(d, o.finish->bias + v * lanes));
    }
    if (o.finish->addend != nullptr) {
      ASHLAR_FOR_SUMS(i, v)
      sums.at[i][v] = hn::Add(sums.at[i][v],
                              hn::LoadU(d, o.finish->addend + o.addend_rows[row + i] + v * lanes));
    }
    // A NaN fails both comparisons and stays.
    const V low = hn::Set(d, o.finish->low), high = hn::Set(d, o.finish->high);
    ASHLAR_FOR_SUMS(i, v)
    sums.at[i][v] = hn::IfThenElse(hn::Lt(sums.at[i][v], low), low, sums.at[i][v]);
    ASHLAR_FOR_SUMS(i, v)
    sums.at[i][v] = hn::IfThenElse(hn::Gt(sums.at[i][v], high), high, sums.at[i][v]);
  }
  ASHLAR_FOR_SUMS(i, v)
  hn::StoreU(sums.at[i][v], d, c[i] + v * lanes);
}

// C's last vector is cut: element by element, from a copy of the sums with rows of `width`.
template <class T>
HWY_NOINLINE void StorePart(const RowOperands<T>& o, std::int64_t row, std::int64_t rows,
                            const T* sums, std::int64_t width) {
  for (std::int64_t i = row; i < row + rows; ++i, sums += width) {
    T* c = o.c + o.c_rows[i];
    for (std::int64_t j = 0; j < o.columns; ++j) {
      T sum = sums[j];
      if (o.accumulate) sum += c[j];
      if (o.finish != nullptr) {
        if (o.finish->bias != nullptr) sum += o.finish->bias[j];
        if (o.finish->addend != nullptr) sum += o.finish->addend[o.addend_rows[i] + j];
        if (sum < o.finish->low) sum = o.finish->low;
        if (sum > o.finish->high) sum = o.finish->high;
      }
      c[j] = sum;
    }
  }
}

// `tiles` tiles of kRows rows from row `row` on, the first of them tile `number`.
template <int kRows, int kVectors, int kSteps, int kStep, int kBRow, class T>
HWY_NOINLINE void MultiplyTiles(const RowOperands<T>& operands, std::int64_t number,
                                std::int64_t row, std::int64_t tiles) {
  const RowOperands<T> o = operands;  // no store can change it
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (const std::int64_t end = number + tiles; number < end; ++number, row += kRows) {
    RowSums<kRows, kVectors, hn::Vec<decltype(d)>> sums;
    ASHLAR_FOR_SUMS(i, v) sums.at[i][v] = hn::Zero(d);
    AddSegments<kRows, kVectors, kSteps, kStep, kBRow>(o, o.a_rows + row,
                                                       Ahead<T>(o, number, row, kRows), sums);
    if (o.columns == kVectors * lanes) {
      StoreWhole<kRows, kVectors>(o, row, sums);
      continue;
    }
    alignas(64) T copy[kRows * kVectors * hn::MaxLanes(d)];
    ASHLAR_FOR_SUMS(i, v) hn::StoreU(sums.at[i][v], d, copy + (i * kVectors + v) * lanes);
    StorePart(operands, row, kRows, copy, kVectors * lanes);
  }
}
#undef ASHLAR_FOR_SUMS

// Distances that are known make shorter loops; only for the usual tiles, to keep the code small.
template <int kRows, int kVectors, class T>
void MultiplyWays(const RowOperands<T>& o, std::int64_t number, std::int64_t row,
                  std::int64_t tiles) {
  if constexpr (kRows >= kMostProductRows - 2 && kVectors == kProductVectors) {
    if (o.a_step == 1 && o.b_segments == nullptr) {
      constexpr int kWide = kMostProductColumns;
      constexpr int kOwn = kVectors * static_cast<int>(hn::MaxLanes(hn::ScalableTag<T>()));
      if (o.b_row == kWide && o.depth % 4 == 0)
        return MultiplyTiles<kRows, kVectors, 4, 1, kWide>(o, number, row, tiles);
      if (o.b_row == kWide && o.depth % 3 == 0)
        return MultiplyTiles<kRows, kVectors, 3, 1, kWide>(o, number, row, tiles);
      if constexpr (kOwn != kWide)
        if (o.b_row == kOwn && o.depth % 4 == 0)
          return MultiplyTiles<kRows, kVectors, 4, 1, kOwn>(o, number, row, tiles);
    }
    if (o.a_step == kMostProductRows)
      return MultiplyTiles<kRows, kVectors, 4, kMostProductRows, 0>(o, number, row, tiles);
  }
  MultiplyTiles<kRows, kVectors, 1, 0, 0>(o, number, row, tiles);
}

// Tiles of exactly `rows` rows.
template <int kRows, int kVectors, class T>
void MultiplyRows(const RowOperands<T>& o, std::int64_t rows, std::int64_t number, std::int64_t row,
                  std::int64_t tiles) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return MultiplyRows<kRows - 1, kVectors>(o, rows, number, row, tiles);
  }
  MultiplyWays<kRows, kVectors>(o, number, row, tiles);
}

// And of as few vectors as hold their columns. Tiles differ by one row at most.
template <int kVectors, class T>
void MultiplyColumns(const RowOperands<T>& o) {
  if constexpr (kVectors > 1) {
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>()));
    if (o.columns <= (kVectors - 1) * lanes) return MultiplyColumns<kVectors - 1>(o);
  }
  const std::int64_t tiles = (o.rows + kMostProductRows - 1) / kMostProductRows;
  const std::int64_t rows = o.rows / tiles, larger = o.rows % tiles;
  if (larger > 0) MultiplyRows<kMostProductRows, kVectors>(o, rows + 1, 0, 0, larger);
  MultiplyRows<kMostProductRows, kVectors>(o, rows, larger, larger * (rows + 1), tiles - larger);
}

template <class T>
const RowProduct<T>& MakeRowProduct() {
  static const RowProduct<T> product = {
      kProductVectors * static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>())),
      MultiplyColumns<kProductVectors, T>};
  return product;
}

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard

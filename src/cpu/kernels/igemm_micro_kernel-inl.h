// The indirect-GEMM micro-kernel: register tile, K loop, epilogue. Compiled once per SIMD target.
#if defined(ASHLAR_CPU_KERNELS_IGEMM_MICRO_KERNEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASHLAR_CPU_KERNELS_IGEMM_MICRO_KERNEL_INL_H_
#undef ASHLAR_CPU_KERNELS_IGEMM_MICRO_KERNEL_INL_H_
#else
#define ASHLAR_CPU_KERNELS_IGEMM_MICRO_KERNEL_INL_H_
#endif

#include <hwy/highway.h>

#include "cpu/kernels/igemm_micro_kernel.hpp"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Accumulators use 24 of 32 registers, or 12 of 16; a row of B 4 or 2, the broadcast of A one.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM
inline constexpr int kIgemmVectors = 4;
#else
inline constexpr int kIgemmVectors = 2;
#endif

template <int kRows, int kVectors, class V>
struct IgemmAccumulators {
  V at[kRows][kVectors];
};

// Unrolled loop over all accumulators (i, v).
#define ASHLAR_FOR_ACCUMULATORS(i, v)                     \
  _Pragma("GCC unroll 8") for (int i = 0; i < kRows; ++i) \
      _Pragma("GCC unroll 4") for (int v = 0; v < kVectors; ++v)

// Software prefetch of a tile, a little per loop iteration: cache lines of later operands, the rows
// of C of the next tile, and the extra rows.
template <class T>
struct Prefetch {
  const T *next = nullptr, *next_end = nullptr;
  std::int64_t row, rows_end;  // rows of this tile
  bool is_extra = false;

  Prefetch(const IgemmMicroArgs<T>& o, std::int64_t number, std::int64_t first, std::int64_t rows)
      : row(first), rows_end(first + rows) {
    if (number < o.next_tiles && o.next != nullptr) {
      next = o.next + number * o.next_tile;
      next_end = next + o.next_lines * o.next_step;
    }
  }
};

// Prefetches the next row of C or, alternating, an extra row: a core has few line-fill buffers.
template <int kRows, int kVectors, class T>
HWY_INLINE void PrefetchRow(const IgemmMicroArgs<T>& o, Prefetch<T>& prefetch) {
  constexpr auto kLine = static_cast<std::int64_t>(64 / sizeof(T));
  const auto columns = kVectors * static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  if (prefetch.is_extra) {
    const T* extra_prefetch = o.extra_prefetch + o.extra_prefetch_rows[prefetch.row];
    for (std::int64_t j = 0; j < columns; j += kLine) __builtin_prefetch(extra_prefetch + j, 0, 2);
  } else if (prefetch.row + kRows < o.rows) {
    const T* c = o.c + o.c_rows[prefetch.row + kRows];
    for (std::int64_t j = 0; j < columns; j += kLine) __builtin_prefetch(c + j, 1, 3);
  }
  prefetch.is_extra = o.extra_prefetch != nullptr && !prefetch.is_extra;
  if (!prefetch.is_extra) ++prefetch.row;
}

// One step of K: row i of A is at row[i][l].
template <int kRows, int kVectors, class T, class V>
HWY_INLINE void AddStep(const T* const (&row)[kRows], std::int64_t l, const T* HWY_RESTRICT b,
                        IgemmAccumulators<kRows, kVectors, V>& acc) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  V b_v[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) b_v[v] = hn::LoadU(d, b + v * lanes);
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
    const V a_i = hn::Set(d, row[i][l]);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) acc.at[i][v] = hn::MulAdd(a_i, b_v[v], acc.at[i][v]);
  }
}

// All segments, the K loop unrolled by kSteps. kStep, kBRow: compile-time o.a_step and o.b_row, or
// 0.
template <int kRows, int kVectors, int kSteps, int kStep, int kBRow, class T, class V>
HWY_INLINE void AddSegments(const IgemmMicroArgs<T>& o, const std::int64_t* a_rows,
                            Prefetch<T> prefetch, IgemmAccumulators<kRows, kVectors, V>& acc) {
  const T* row[kRows];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) row[i] = o.a + a_rows[i];
  const std::int64_t step = kStep != 0 ? kStep : o.a_step, b_row = kBRow != 0 ? kBRow : o.b_row;
  const T* b_next = o.b;
  for (std::int64_t s = 0; s < o.segments; ++s) {
    const T* b = o.b_segments != nullptr ? o.b + o.b_segments[s] : b_next;
    std::int64_t l = o.a_segments[s];
    const std::int64_t end = l + o.k * step;
    for (; l + (kSteps - 1) * step < end; l += kSteps * step, b += kSteps * b_row) {
      if (prefetch.next < prefetch.next_end) {
#pragma GCC unroll 4
        for (int u = 0; u < kSteps; ++u, prefetch.next += o.next_step)
          __builtin_prefetch(prefetch.next, 0, 2);
      }
      if (prefetch.row < prefetch.rows_end) PrefetchRow<kRows, kVectors>(o, prefetch);
#pragma GCC unroll 4
      for (int u = 0; u < kSteps; ++u)
        AddStep<kRows, kVectors>(row, l + u * step, b + u * b_row, acc);
    }
    // With a compile-time kBRow, K is a multiple of kSteps.
    if constexpr (kSteps > 1 && kBRow == 0)
      for (; l < end; l += step, b += b_row) AddStep<kRows, kVectors>(row, l, b, acc);
    b_next = b;
  }
}

// Epilogue for whole vectors of C.
template <int kRows, int kVectors, class T, class V>
HWY_INLINE void StoreWhole(const IgemmMicroArgs<T>& o, std::int64_t row,
                           IgemmAccumulators<kRows, kVectors, V>& acc) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  T* c[kRows];  // read once: any store might alias the offsets
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) c[i] = o.c + o.c_rows[row + i];
  if (o.accumulate) {
    ASHLAR_FOR_ACCUMULATORS(i, v)
    acc.at[i][v] = hn::Add(acc.at[i][v], hn::LoadU(d, c[i] + v * lanes));
  }
  if (o.post_ops != nullptr) {
    if (o.post_ops->bias != nullptr) {
      ASHLAR_FOR_ACCUMULATORS(i, v)
      acc.at[i][v] = hn::Add(acc.at[i][v], hn::LoadU(d, o.post_ops->bias + v * lanes));
    }
    if (o.post_ops->addend != nullptr) {
      ASHLAR_FOR_ACCUMULATORS(i, v)
      acc.at[i][v] = hn::Add(acc.at[i][v],
                             hn::LoadU(d, o.post_ops->addend + o.addend_rows[row + i] + v * lanes));
    }
    // NaN fails both comparisons and propagates.
    const V low = hn::Set(d, o.post_ops->low), high = hn::Set(d, o.post_ops->high);
    ASHLAR_FOR_ACCUMULATORS(i, v)
    acc.at[i][v] = hn::IfThenElse(hn::Lt(acc.at[i][v], low), low, acc.at[i][v]);
    ASHLAR_FOR_ACCUMULATORS(i, v)
    acc.at[i][v] = hn::IfThenElse(hn::Gt(acc.at[i][v], high), high, acc.at[i][v]);
  }
  ASHLAR_FOR_ACCUMULATORS(i, v)
  hn::StoreU(acc.at[i][v], d, c[i] + v * lanes);
}

// Epilogue for a partial last vector of C: scalar, from a copy of the accumulators with row stride
// `width`.
template <class T>
HWY_NOINLINE void StorePart(const IgemmMicroArgs<T>& o, std::int64_t row, std::int64_t rows,
                            const T* acc, std::int64_t width) {
  for (std::int64_t i = row; i < row + rows; ++i, acc += width) {
    T* c = o.c + o.c_rows[i];
    for (std::int64_t j = 0; j < o.columns; ++j) {
      T sum = acc[j];
      if (o.accumulate) sum += c[j];
      if (o.post_ops != nullptr) {
        if (o.post_ops->bias != nullptr) sum += o.post_ops->bias[j];
        if (o.post_ops->addend != nullptr) sum += o.post_ops->addend[o.addend_rows[i] + j];
        if (sum < o.post_ops->low) sum = o.post_ops->low;
        if (sum > o.post_ops->high) sum = o.post_ops->high;
      }
      c[j] = sum;
    }
  }
}

// `tiles` tiles of kRows rows from row `row` on; the first is tile `number`.
template <int kRows, int kVectors, int kSteps, int kStep, int kBRow, class T>
HWY_NOINLINE void MultiplyTiles(const IgemmMicroArgs<T>& operands, std::int64_t number,
                                std::int64_t row, std::int64_t tiles) {
  const IgemmMicroArgs<T> o = operands;  // a local copy: stores cannot alias it
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (const std::int64_t end = number + tiles; number < end; ++number, row += kRows) {
    IgemmAccumulators<kRows, kVectors, hn::Vec<decltype(d)>> acc;
    ASHLAR_FOR_ACCUMULATORS(i, v) acc.at[i][v] = hn::Zero(d);
    AddSegments<kRows, kVectors, kSteps, kStep, kBRow>(o, o.a_rows + row,
                                                       Prefetch<T>(o, number, row, kRows), acc);
    if (o.columns == kVectors * lanes) {
      StoreWhole<kRows, kVectors>(o, row, acc);
      continue;
    }
    alignas(64) T copy[kRows * kVectors * hn::MaxLanes(d)];
    ASHLAR_FOR_ACCUMULATORS(i, v) hn::StoreU(acc.at[i][v], d, copy + (i * kVectors + v) * lanes);
    StorePart(operands, row, kRows, copy, kVectors * lanes);
  }
}
#undef ASHLAR_FOR_ACCUMULATORS

// Specialises on compile-time strides, for full and nearly full tiles only, to limit code size.
template <int kRows, int kVectors, class T>
void MultiplySpecialised(const IgemmMicroArgs<T>& o, std::int64_t number, std::int64_t row,
                         std::int64_t tiles) {
  if constexpr (kRows >= kMaxTileRows - 2 && kVectors == kIgemmVectors) {
    if (o.a_step == 1 && o.b_segments == nullptr) {
      constexpr int kWide = kMaxTileColumns;
      constexpr int kOwn = kVectors * static_cast<int>(hn::MaxLanes(hn::ScalableTag<T>()));
      if (o.b_row == kWide && o.k % 4 == 0)
        return MultiplyTiles<kRows, kVectors, 4, 1, kWide>(o, number, row, tiles);
      if (o.b_row == kWide && o.k % 3 == 0)
        return MultiplyTiles<kRows, kVectors, 3, 1, kWide>(o, number, row, tiles);
      if constexpr (kOwn != kWide)
        if (o.b_row == kOwn && o.k % 4 == 0)
          return MultiplyTiles<kRows, kVectors, 4, 1, kOwn>(o, number, row, tiles);
    }
    if (o.a_step == kMaxTileRows)
      return MultiplyTiles<kRows, kVectors, 4, kMaxTileRows, 0>(o, number, row, tiles);
  }
  MultiplyTiles<kRows, kVectors, 1, 0, 0>(o, number, row, tiles);
}

// Dispatches on the rows of a tile.
template <int kRows, int kVectors, class T>
void MultiplyRows(const IgemmMicroArgs<T>& o, std::int64_t rows, std::int64_t number,
                  std::int64_t row, std::int64_t tiles) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return MultiplyRows<kRows - 1, kVectors>(o, rows, number, row, tiles);
  }
  MultiplySpecialised<kRows, kVectors>(o, number, row, tiles);
}

// Dispatches on as few vectors as cover the columns. Tile rows differ by at most one.
template <int kVectors, class T>
void MultiplyColumns(const IgemmMicroArgs<T>& o) {
  if constexpr (kVectors > 1) {
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>()));
    if (o.columns <= (kVectors - 1) * lanes) return MultiplyColumns<kVectors - 1>(o);
  }
  const std::int64_t tiles = (o.rows + kMaxTileRows - 1) / kMaxTileRows;
  const std::int64_t rows = o.rows / tiles, larger = o.rows % tiles;
  if (larger > 0) MultiplyRows<kMaxTileRows, kVectors>(o, rows + 1, 0, 0, larger);
  MultiplyRows<kMaxTileRows, kVectors>(o, rows, larger, larger * (rows + 1), tiles - larger);
}

template <class T>
const IgemmMicroKernel<T>& MakeIgemmMicroKernel() {
  static const IgemmMicroKernel<T> product = {
      kIgemmVectors * static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>())),
      MultiplyColumns<kIgemmVectors, T>};
  return product;
}

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard

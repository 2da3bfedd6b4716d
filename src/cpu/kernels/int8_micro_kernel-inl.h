// The int8 GEMM micro-kernel, with and without VNNI. Compiled once per SIMD target.
#if defined(ASHLAR_CPU_KERNELS_INT8_MICRO_KERNEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASHLAR_CPU_KERNELS_INT8_MICRO_KERNEL_INL_H_
#undef ASHLAR_CPU_KERNELS_INT8_MICRO_KERNEL_INL_H_
#else
#define ASHLAR_CPU_KERNELS_INT8_MICRO_KERNEL_INL_H_
#endif

#include <hwy/highway.h>

#include <cstring>
#include <limits>

#include "cpu/kernels/int8_micro_kernel.hpp"
#include "cpu/kernels/x86_instructions-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Int32Tag = hn::ScalableTag<std::int32_t>;
using Int32Vec = hn::Vec<Int32Tag>;

// Policies for the quad dot product. Columns: one quad of a vector of columns; Row: one quad of a
// row, broadcast; Sum: the accumulators of a vector of columns. kRows x kVectors fit the registers.
#if HWY_TARGET == HWY_SCALAR

struct PortableQuads {
  static constexpr int kRows = 4, kVectors = 2;
  struct Columns {
    std::int8_t quad[4];
  };
  using Row = std::int32_t;
  using Sum = Int32Vec;
  static HWY_INLINE Columns LoadColumns(const std::int8_t* b) { return {{b[0], b[1], b[2], b[3]}}; }
  static HWY_INLINE Row LoadRow(std::int32_t quad) { return quad; }
  static HWY_INLINE Sum Zero() { return hn::Zero(Int32Tag()); }
  static HWY_INLINE void Add(Row a, const Columns& b, Sum& sum) {
    std::uint8_t bytes[4];
    std::memcpy(bytes, &a, sizeof(a));
    for (int r = 0; r < 4; ++r) sum = hn::Add(sum, hn::Set(Int32Tag(), bytes[r] * b.quad[r]));
  }
  static HWY_INLINE Int32Vec Whole(const Sum& sum) { return sum; }
};

#else

// Even and odd elements of each quad as 16-bit integers: pairs of products fit 32 bits, whereas
// vpmaddubsw saturates at 16.
struct PortableQuads {
  using Tag16 = hn::Repartition<std::int16_t, Int32Tag>;
  using Vec16 = hn::Vec<Tag16>;
  // Registers: Columns and Row use 6; Sum uses one, or two where ReorderWidenMulAccumulate needs a
  // second accumulator.
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  static constexpr int kRows = 8;
#elif HWY_ARCH_ARM
  static constexpr int kRows = 6;
#else
  static constexpr int kRows = 4;
#endif
  static constexpr int kVectors = 2;
  struct Columns {
    Vec16 even, odd;
  };
  using Row = Columns;
  struct Sum {
    Int32Vec sum, rest;
  };
  static HWY_INLINE Columns LoadColumns(const std::int8_t* b) {
    const hn::Repartition<std::int8_t, Int32Tag> d8;
    const Vec16 quads = hn::BitCast(Tag16(), hn::LoadU(d8, b));
    return {hn::ShiftRight<8>(hn::ShiftLeft<8>(quads)), hn::ShiftRight<8>(quads)};
  }
  static HWY_INLINE Row LoadRow(std::int32_t quad) {
    constexpr std::int32_t kEven = 0x00FF00FF;
    const Int32Tag d;
    return {hn::BitCast(Tag16(), hn::Set(d, quad & kEven)),
            hn::BitCast(Tag16(), hn::Set(d, (quad >> 8) & kEven))};
  }
  static HWY_INLINE Sum Zero() { return {hn::Zero(Int32Tag()), hn::Zero(Int32Tag())}; }
  static HWY_INLINE void Add(const Row& a, const Columns& b, Sum& sum) {
    const Int32Tag d;
    sum.sum = hn::ReorderWidenMulAccumulate(d, a.even, b.even, sum.sum, sum.rest);
    sum.sum = hn::ReorderWidenMulAccumulate(d, a.odd, b.odd, sum.sum, sum.rest);
  }
  static HWY_INLINE Int32Vec Whole(const Sum& sum) {
    return hn::RearrangeToOddPlusEven(sum.sum, sum.rest);
  }
};

#endif

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
// AVX512-VNNI: one vpdpbusd per quad of every lane. Highway's targets of this version do not
// include the extension, so it is detected at run time and emitted as inline assembly.
struct VnniQuads {
  // 24 accumulators, 4 columns, 1 row: 29 of 32 registers. Fewer loads per FMA than taller tiles of
  // two vectors.
  static constexpr int kRows = 6, kVectors = 4;
  using Columns = Int32Vec;
  using Row = Int32Vec;
  using Sum = Int32Vec;
  static HWY_INLINE Columns LoadColumns(const std::int8_t* b) {
    const hn::Repartition<std::int8_t, Int32Tag> d8;
    return hn::BitCast(Int32Tag(), hn::LoadU(d8, b));
  }
  static HWY_INLINE Row LoadRow(std::int32_t quad) { return hn::Set(Int32Tag(), quad); }
  static HWY_INLINE Sum Zero() { return hn::Zero(Int32Tag()); }
  static HWY_INLINE void Add(Row a, Columns b, Sum& sum) { VnniDotAccumulate(sum, a, b); }
  static HWY_INLINE Int32Vec Whole(Sum sum) { return sum; }
};
#endif

template <class Quads, int kRows, int kVectors>
struct Int8Accumulators {
  typename Quads::Sum at[kRows][kVectors];
};

// One quad of K.
template <class Quads, int kRows, int kVectors>
HWY_INLINE void AddQuad(const std::uint8_t* const (&row)[kRows], std::int64_t at,
                        const std::int8_t* HWY_RESTRICT b,
                        Int8Accumulators<Quads, kRows, kVectors>& acc) {
  const auto bytes = static_cast<std::int64_t>(4 * hn::Lanes(Int32Tag()));
  typename Quads::Columns columns[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) columns[v] = Quads::LoadColumns(b + v * bytes);
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    std::int32_t quad;
    std::memcpy(&quad, row[i] + at, sizeof(quad));
    const auto a_i = Quads::LoadRow(quad);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) Quads::Add(a_i, columns[v], acc.at[i][v]);
  }
}

// Prefetches the rows of C of the next tile, one per loop iteration.
struct RowPrefetch {
  const std::uint8_t* row;
  std::int64_t distance, bytes;
  int left;
  HWY_INLINE void Issue() {
    if (left == 0) return;
    for (std::int64_t j = 0; j < bytes; j += 64) __builtin_prefetch(row + j, 1, 3);
    row += distance;
    --left;
  }
};

// The K loop, unrolled by two quads.
template <class Quads, int kRows, int kVectors>
HWY_INLINE void AddSegment(std::int64_t quads, const std::uint8_t* HWY_RESTRICT a,
                           const std::int64_t* row_offsets, const std::int8_t* HWY_RESTRICT b,
                           RowPrefetch& prefetch, Int8Accumulators<Quads, kRows, kVectors>& acc) {
  const auto b_quad = static_cast<std::int64_t>(4 * Quads::kVectors * hn::Lanes(Int32Tag()));
  const std::uint8_t* row[kRows];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) row[i] = a + row_offsets[i];
  std::int64_t at = 0;
  for (; at + 4 < 4 * quads; at += 8, b += 2 * b_quad) {
    prefetch.Issue();
    AddQuad(row, at, b, acc);
    AddQuad(row, at + 4, b + b_quad, acc);
  }
  if (at < 4 * quads) AddQuad(row, at, b, acc);
}

// Saturates a vector of accumulators to bytes.
template <class Byte>
HWY_INLINE void StoreBytes(Int32Vec acc, Byte* c) {
  const Int32Tag d;
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  (void)d;
  StoreSaturated(acc, c);
#else
  // Clamped here: some targets convert through 16 bits and saturate only there.
  const hn::Rebind<Byte, Int32Tag> d8;
  const Int32Vec low = hn::Set(d, std::numeric_limits<Byte>::min());
  const Int32Vec high = hn::Set(d, std::numeric_limits<Byte>::max());
  hn::StoreU(hn::DemoteTo(d8, hn::Min(hn::Max(acc, low), high)), d8, c);
#endif
}

// Calls store() with every vector of final accumulators, for element j of row i.
template <class Quads, int kRows, int kVectors, class Store>
HWY_INLINE void ForAccumulators(const Int8MicroArgs& o,
                                const Int8Accumulators<Quads, kRows, kVectors>& acc,
                                const Store& store) {
  const Int32Tag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const Int32Vec column =
        o.column_start != nullptr ? hn::LoadU(d, o.column_start + v * lanes) : hn::Zero(d);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const Int32Vec row = hn::Set(d, o.row_start != nullptr ? o.row_start[i] : 0);
      store(hn::Add(Quads::Whole(acc.at[i][v]), hn::Add(row, column)), i, v * lanes);
    }
  }
}

template <class Quads, int kRows, int kVectors>
HWY_INLINE void StoreAccumulators(const Int8MicroArgs& o,
                                  const Int8Accumulators<Quads, kRows, kVectors>& acc) {
  const Int32Tag d;
  constexpr std::int64_t kWidth = kVectors * static_cast<std::int64_t>(hn::MaxLanes(d));
  // A partial last vector goes through a copy.
  alignas(64) std::int32_t copy[kRows][kWidth];
  const bool whole = o.columns == static_cast<std::int64_t>(kVectors * hn::Lanes(d));
  const std::int64_t size = o.result == Int8Output::i32 ? 4 : 1;
  auto* c = static_cast<std::uint8_t*>(whole ? o.c : copy);
  const std::int64_t c_row = (whole ? o.c_row : kWidth) * size;
  if (o.result == Int8Output::i32)
    ForAccumulators(o, acc, [=](Int32Vec sum, int i, std::int64_t j) HWY_ATTR {
      hn::StoreU(sum, Int32Tag(), reinterpret_cast<std::int32_t*>(c + i * c_row) + j);
    });
  else if (o.result == Int8Output::i8)
    ForAccumulators(o, acc, [=](Int32Vec sum, int i, std::int64_t j) HWY_ATTR {
      StoreBytes(sum, reinterpret_cast<std::int8_t*>(c + i * c_row) + j);
    });
  else
    ForAccumulators(o, acc, [=](Int32Vec sum, int i, std::int64_t j) HWY_ATTR {
      StoreBytes(sum, c + i * c_row + j);
    });
  if (whole) return;
  for (int i = 0; i < kRows; ++i)
    std::memcpy(static_cast<std::uint8_t*>(o.c) + i * o.c_row * size, c + i * c_row,
                static_cast<std::size_t>(o.columns * size));
}

// `tiles` tiles of kRows rows, from the first row of `operands` on.
template <class Quads, int kRows, int kVectors>
HWY_NOINLINE void MultiplyTiles(const Int8MicroArgs& operands, std::int64_t tiles) {
  Int8MicroArgs o = operands;
  const std::int64_t element = o.result == Int8Output::i32 ? 4 : 1;
  const auto b_quad = static_cast<std::int64_t>(4 * Quads::kVectors * hn::Lanes(Int32Tag()));
  for (; tiles > 0; --tiles) {
    Int8Accumulators<Quads, kRows, kVectors> acc;
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) acc.at[i][v] = Quads::Zero();
    auto* c = static_cast<std::uint8_t*>(o.c);
    RowPrefetch prefetch{c + kRows * o.c_row * element, o.c_row * element, o.columns * element,
                         tiles > 1 ? kRows : 0};
    const std::int8_t* b = o.b;
    for (std::int64_t s = 0; s < o.segments; ++s, b += o.quads * b_quad)
      AddSegment<Quads, kRows, kVectors>(
          o.quads, o.a + (o.segment_offsets != nullptr ? o.segment_offsets[s] : 0), o.row_offsets,
          b, prefetch, acc);
    StoreAccumulators<Quads, kRows, kVectors>(o, acc);
    o.c = c + kRows * o.c_row * element;
    o.row_offsets += kRows;
    if (o.row_start != nullptr) o.row_start += kRows;
  }
}

// Dispatches on the rows of a tile and on as few vectors as cover o.columns.
template <class Quads, int kRows, int kVectors>
void MultiplyColumns(const Int8MicroArgs& o, std::int64_t tiles) {
  if constexpr (kVectors > 1) {
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(Int32Tag()));
    if (o.columns <= (kVectors - 1) * lanes)
      return MultiplyColumns<Quads, kRows, kVectors - 1>(o, tiles);
  }
  MultiplyTiles<Quads, kRows, kVectors>(o, tiles);
}
template <class Quads, int kRows>
void MultiplyRows(const Int8MicroArgs& o, std::int64_t rows, std::int64_t tiles) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return MultiplyRows<Quads, kRows - 1>(o, rows, tiles);
  }
  MultiplyColumns<Quads, kRows, Quads::kVectors>(o, tiles);
}

// Even tiles: their rows differ by at most one.
template <class Quads>
void MultiplyQuads(const Int8MicroArgs& o) {
  const std::int64_t tiles = (o.rows + Quads::kRows - 1) / Quads::kRows;
  const std::int64_t rows = o.rows / tiles, larger = o.rows % tiles;
  if (larger > 0) MultiplyRows<Quads, Quads::kRows>(o, rows + 1, larger);
  const std::int64_t done = larger * (rows + 1);
  Int8MicroArgs rest = o;
  rest.c = static_cast<std::uint8_t*>(o.c) + done * o.c_row * (o.result == Int8Output::i32 ? 4 : 1);
  rest.row_offsets += done;
  if (rest.row_start != nullptr) rest.row_start += done;
  MultiplyRows<Quads, Quads::kRows>(rest, rows, tiles - larger);
}

template <class Quads>
const Int8MicroKernel& MicroKernelOf() {
  static const Int8MicroKernel product = {
      Quads::kRows, static_cast<std::int64_t>(Quads::kVectors * hn::Lanes(Int32Tag())),
      MultiplyQuads<Quads>};
  return product;
}

const Int8MicroKernel& BestInt8MicroKernel() {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  if (__builtin_cpu_supports("avx512vnni")) return MicroKernelOf<VnniQuads>();
#endif
  return MicroKernelOf<PortableQuads>();
}
const Int8MicroKernel& PortableInt8MicroKernel() { return MicroKernelOf<PortableQuads>(); }

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard

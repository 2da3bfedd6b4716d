// Compiled once per SIMD target; see quad_product.cpp.
#if defined(ASHLAR_CPU_KERNELS_QUAD_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASHLAR_CPU_KERNELS_QUAD_PRODUCT_INL_H_
#undef ASHLAR_CPU_KERNELS_QUAD_PRODUCT_INL_H_
#else
#define ASHLAR_CPU_KERNELS_QUAD_PRODUCT_INL_H_
#endif

#include <hwy/highway.h>

#include <cstring>
#include <limits>

#include "cpu/kernels/quad_product.hpp"
#include "cpu/kernels/x86_instructions-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using QuadTag = hn::ScalableTag<std::int32_t>;
using QuadVec = hn::Vec<QuadTag>;

// How quads are multiplied: Columns is one quad of a vector of columns, Row one of a row in every
// lane, Sum the sums of a vector of columns. kRows rows of kVectors vectors fit the registers.
#if HWY_TARGET == HWY_SCALAR

struct PlainQuads {
  static constexpr int kRows = 4, kVectors = 2;
  struct Columns {
    std::int8_t quad[4];
  };
  using Row = std::int32_t;
  using Sum = QuadVec;
  static HWY_INLINE Columns LoadColumns(const std::int8_t* b) { return {{b[0], b[1], b[2], b[3]}}; }
  static HWY_INLINE Row LoadRow(std::int32_t quad) { return quad; }
  static HWY_INLINE Sum Zero() { return hn::Zero(QuadTag()); }
  static HWY_INLINE void Add(Row a, const Columns& b, Sum& sum) {
    std::uint8_t bytes[4];
    std::memcpy(bytes, &a, sizeof(a));
    for (int r = 0; r < 4; ++r) sum = hn::Add(sum, hn::Set(QuadTag(), bytes[r] * b.quad[r]));
  }
  static HWY_INLINE QuadVec Whole(const Sum& sum) { return sum; }
};

#else

// Elements 0 and 2 of each quad, and 1 and 3, as 16-bit integers: the products of two fit 32 bits
// with room to spare, where instructions that add pairs of bytes would saturate at 16.
struct PlainQuads {
  using Tag16 = hn::Repartition<std::int16_t, QuadTag>;
  using Vec16 = hn::Vec<Tag16>;
  // Registers: Columns and Row take 6, Sum one, or two where the second product of a pair goes
  // elsewhere.
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
    QuadVec sum, rest;
  };
  static HWY_INLINE Columns LoadColumns(const std::int8_t* b) {
    const hn::Repartition<std::int8_t, QuadTag> d8;
    const Vec16 quads = hn::BitCast(Tag16(), hn::LoadU(d8, b));
    return {hn::ShiftRight<8>(hn::ShiftLeft<8>(quads)), hn::ShiftRight<8>(quads)};
  }
  static HWY_INLINE Row LoadRow(std::int32_t quad) {
    constexpr std::int32_t kEven = 0x00FF00FF;
    const QuadTag d;
    return {hn::BitCast(Tag16(), hn::Set(d, quad & kEven)),
            hn::BitCast(Tag16(), hn::Set(d, (quad >> 8) & kEven))};
  }
  static HWY_INLINE Sum Zero() { return {hn::Zero(QuadTag()), hn::Zero(QuadTag())}; }
  static HWY_INLINE void Add(const Row& a, const Columns& b, Sum& sum) {
    const QuadTag d;
    sum.sum = hn::ReorderWidenMulAccumulate(d, a.even, b.even, sum.sum, sum.rest);
    sum.sum = hn::ReorderWidenMulAccumulate(d, a.odd, b.odd, sum.sum, sum.rest);
  }
  static HWY_INLINE QuadVec Whole(const Sum& sum) {
    return hn::RearrangeToOddPlusEven(sum.sum, sum.rest);
  }
};

#endif

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
// AVX512-VNNI: one instruction for a quad of every lane. Highway's targets of this version do not
// name the extension, so it is asked for at run, and written where the compiler need not know it.
struct DotQuads {
  // 24 sums, 4 columns, 1 row: 29 of 32 registers. Fewer loads per product than higher tiles of
  // two vectors.
  static constexpr int kRows = 6, kVectors = 4;
  using Columns = QuadVec;
  using Row = QuadVec;
  using Sum = QuadVec;
  static HWY_INLINE Columns LoadColumns(const std::int8_t* b) {
    const hn::Repartition<std::int8_t, QuadTag> d8;
    return hn::BitCast(QuadTag(), hn::LoadU(d8, b));
  }
  static HWY_INLINE Row LoadRow(std::int32_t quad) { return hn::Set(QuadTag(), quad); }
  static HWY_INLINE Sum Zero() { return hn::Zero(QuadTag()); }
  static HWY_INLINE void Add(Row a, Columns b, Sum& sum) { AddQuads(sum, a, b); }
  static HWY_INLINE QuadVec Whole(Sum sum) { return sum; }
};
#endif

template <class Quads, int kRows, int kVectors>
struct QuadSums {
  typename Quads::Sum at[kRows][kVectors];
};

template <class Quads, int kRows, int kVectors>
HWY_INLINE void AddSegment(std::int64_t quads, const std::uint8_t* HWY_RESTRICT a,
                           const std::int64_t* row_offsets, const std::int8_t* HWY_RESTRICT b,
                           QuadSums<Quads, kRows, kVectors>& sums) {
  const auto bytes = static_cast<std::int64_t>(4 * hn::Lanes(QuadTag()));
  const std::uint8_t* row[kRows];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) row[i] = a + row_offsets[i];
  for (std::int64_t q = 0; q < quads; ++q, b += Quads::kVectors * bytes) {
    typename Quads::Columns columns[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) columns[v] = Quads::LoadColumns(b + v * bytes);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      std::int32_t quad;
      std::memcpy(&quad, row[i] + 4 * q, sizeof(quad));
      const auto a_i = Quads::LoadRow(quad);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) Quads::Add(a_i, columns[v], sums.at[i][v]);
    }
  }
}

// Saturates a vector of sums to bytes.
template <class Byte>
HWY_INLINE void StoreBytes(QuadVec sums, Byte* c) {
  const QuadTag d;
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  (void)d;
  StoreSaturated(sums, c);
#else
  // Clamped here: conversions of some targets go through 16 bits and saturate there only.
  const hn::Rebind<Byte, QuadTag> d8;
  const QuadVec low = hn::Set(d, std::numeric_limits<Byte>::min());
  const QuadVec high = hn::Set(d, std::numeric_limits<Byte>::max());
  hn::StoreU(hn::DemoteTo(d8, hn::Min(hn::Max(sums, low), high)), d8, c);
#endif
}

// Stores every vector of sums, finished, at element j of row i.
template <class Quads, int kRows, int kVectors, class Store>
HWY_INLINE void ForSums(const QuadOperands& o, const QuadSums<Quads, kRows, kVectors>& sums,
                        const Store& store) {
  const QuadTag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const QuadVec column =
        o.column_start != nullptr ? hn::LoadU(d, o.column_start + v * lanes) : hn::Zero(d);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const QuadVec row = hn::Set(d, o.row_start != nullptr ? o.row_start[i] : 0);
      store(hn::Add(Quads::Whole(sums.at[i][v]), hn::Add(row, column)), i, v * lanes);
    }
  }
}

template <class Quads, int kRows, int kVectors>
HWY_INLINE void StoreSums(const QuadOperands& o, const QuadSums<Quads, kRows, kVectors>& sums) {
  const QuadTag d;
  constexpr std::int64_t kWidth = kVectors * static_cast<std::int64_t>(hn::MaxLanes(d));
  // Where the last vector is not whole, by way of a copy.
  alignas(64) std::int32_t copy[kRows][kWidth];
  const bool whole = o.columns == static_cast<std::int64_t>(kVectors * hn::Lanes(d));
  const std::int64_t size = o.result == QuadResult::i32 ? 4 : 1;
  auto* c = static_cast<std::uint8_t*>(whole ? o.c : copy);
  const std::int64_t c_row = (whole ? o.c_row : kWidth) * size;
  if (o.result == QuadResult::i32)
    ForSums(o, sums, [=](QuadVec sum, int i, std::int64_t j) HWY_ATTR {
      hn::StoreU(sum, QuadTag(), reinterpret_cast<std::int32_t*>(c + i * c_row) + j);
    });
  else if (o.result == QuadResult::i8)
    ForSums(o, sums, [=](QuadVec sum, int i, std::int64_t j) HWY_ATTR {
      StoreBytes(sum, reinterpret_cast<std::int8_t*>(c + i * c_row) + j);
    });
  else
    ForSums(o, sums, [=](QuadVec sum, int i, std::int64_t j) HWY_ATTR {
      StoreBytes(sum, c + i * c_row + j);
    });
  if (whole) return;
  for (int i = 0; i < kRows; ++i)
    std::memcpy(static_cast<std::uint8_t*>(o.c) + i * o.c_row * size, c + i * c_row,
                static_cast<std::size_t>(o.columns * size));
}

template <class Quads, int kRows, int kVectors>
HWY_NOINLINE void MultiplyQuads(const QuadOperands& o) {
  QuadSums<Quads, kRows, kVectors> sums;
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sums.at[i][v] = Quads::Zero();
  const std::int8_t* b = o.b;
  const auto b_quad = static_cast<std::int64_t>(4 * Quads::kVectors * hn::Lanes(QuadTag()));
  for (std::int64_t s = 0; s < o.segments; ++s, b += o.quads * b_quad)
    AddSegment<Quads, kRows, kVectors>(
        o.quads, o.a + (o.segment_offsets != nullptr ? o.segment_offsets[s] : 0), o.row_offsets, b,
        sums);
  StoreSums<Quads, kRows, kVectors>(o, sums);
}

// Calls the tile of exactly o.rows rows, with as few vectors as hold o.columns.
template <class Quads, int kRows, int kVectors>
void MultiplyColumns(const QuadOperands& o) {
  if constexpr (kVectors > 1) {
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(QuadTag()));
    if (o.columns <= (kVectors - 1) * lanes) return MultiplyColumns<Quads, kRows, kVectors - 1>(o);
  }
  MultiplyQuads<Quads, kRows, kVectors>(o);
}
template <class Quads, int kRows>
void MultiplyRows(const QuadOperands& o) {
  if constexpr (kRows > 1) {
    if (o.rows < kRows) return MultiplyRows<Quads, kRows - 1>(o);
  }
  MultiplyColumns<Quads, kRows, Quads::kVectors>(o);
}

template <class Quads>
const QuadProduct& ProductOf() {
  static const QuadProduct product = {
      Quads::kRows, static_cast<std::int64_t>(Quads::kVectors * hn::Lanes(QuadTag())),
      MultiplyRows<Quads, Quads::kRows>};
  return product;
}

const QuadProduct& BestQuadProduct() {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  if (__builtin_cpu_supports("avx512vnni")) return ProductOf<DotQuads>();
#endif
  return ProductOf<PlainQuads>();
}
const QuadProduct& PlainQuadProduct() { return ProductOf<PlainQuads>(); }

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard

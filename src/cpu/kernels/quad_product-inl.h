// Compiled once per SIMD target; see quad_product.cpp.
#if defined(ASHLAR_CPU_KERNELS_QUAD_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASHLAR_CPU_KERNELS_QUAD_PRODUCT_INL_H_
#undef ASHLAR_CPU_KERNELS_QUAD_PRODUCT_INL_H_
#else
#define ASHLAR_CPU_KERNELS_QUAD_PRODUCT_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "cpu/kernels/quad_product.hpp"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using QuadTag = hn::ScalableTag<std::int32_t>;
using QuadVec = hn::Vec<QuadTag>;

// How quads are multiplied: Columns is one quad of a vector of columns, Row one of a row in every
// lane, Sum the sums of a vector of columns. kRows rows of two vectors fit the registers.
#if HWY_TARGET == HWY_SCALAR

struct PlainQuads {
  static constexpr int kRows = 4;
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
  static constexpr int kRows = 12;
#elif HWY_ARCH_ARM
  static constexpr int kRows = 6;
#else
  static constexpr int kRows = 4;
#endif
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
  static constexpr int kRows = 14;  // 28 sums, 2 columns, 1 row: 31 of 32 registers
  using Columns = QuadVec;
  using Row = QuadVec;
  using Sum = QuadVec;
  static HWY_INLINE Columns LoadColumns(const std::int8_t* b) {
    const hn::Repartition<std::int8_t, QuadTag> d8;
    return hn::BitCast(QuadTag(), hn::LoadU(d8, b));
  }
  static HWY_INLINE Row LoadRow(std::int32_t quad) { return hn::Set(QuadTag(), quad); }
  static HWY_INLINE Sum Zero() { return hn::Zero(QuadTag()); }
  static HWY_INLINE void Add(Row a, Columns b, Sum& sum) {
    asm("vpdpbusd %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
  }
  static HWY_INLINE QuadVec Whole(Sum sum) { return sum; }
};
#endif

template <class Quads, int kRows>
struct QuadSums {
  typename Quads::Sum left[kRows], right[kRows];
};

// A panel is often larger than the first cache: how far its loads are announced ahead.
inline constexpr std::int64_t kQuadsAhead = 8;

// Four pointers reach 14 rows by what an address can add to them: nothing, one, two or three
// distances.
template <class Quads, int kRows>
HWY_INLINE void AddSegment(std::int64_t quads, const std::uint8_t* HWY_RESTRICT a,
                           std::int64_t a_row, const std::int8_t* HWY_RESTRICT b,
                           QuadSums<Quads, kRows>& sums) {
  const auto bytes = static_cast<std::int64_t>(4 * hn::Lanes(QuadTag()));
  constexpr int kGroups = (kRows + 3) / 4;
  const std::uint8_t* group[kGroups];
#pragma GCC unroll 4
  for (int g = 0; g < kGroups; ++g) group[g] = a + 4 * g * a_row;
  const std::int64_t thrice = 3 * a_row;
  for (std::int64_t q = 0; q < quads; ++q, b += 2 * bytes) {
    const auto b_left = Quads::LoadColumns(b);
    const auto b_right = Quads::LoadColumns(b + bytes);
    hwy::Prefetch(b + kQuadsAhead * 2 * bytes);
    hwy::Prefetch(b + (kQuadsAhead * 2 + 1) * bytes);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const std::uint8_t* row = group[i / 4] + (i % 4 == 3 ? thrice : (i % 4) * a_row);
      std::int32_t quad;
      std::memcpy(&quad, row + 4 * q, sizeof(quad));
      const auto a_i = Quads::LoadRow(quad);
      Quads::Add(a_i, b_left, sums.left[i]);
      Quads::Add(a_i, b_right, sums.right[i]);
    }
  }
}

// Saturates `count` sums to bytes.
template <class Byte>
HWY_INLINE void StoreBytes(const std::int32_t* values, std::int64_t count, Byte* c) {
  const QuadTag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const hn::Rebind<Byte, QuadTag> d8;
  std::int64_t j = 0;
  // Clamped here: conversions of some targets go through 16 bits and saturate there only.
  const QuadVec low = hn::Set(d, std::numeric_limits<Byte>::min());
  const QuadVec high = hn::Set(d, std::numeric_limits<Byte>::max());
  for (; j + lanes <= count; j += lanes) {
    const QuadVec sums = hn::Min(hn::Max(hn::LoadU(d, values + j), low), high);
    hn::StoreU(hn::DemoteTo(d8, sums), d8, c + j);
  }
  for (; j < count; ++j)
    c[j] = static_cast<Byte>(std::clamp<std::int32_t>(values[j], std::numeric_limits<Byte>::min(),
                                                      std::numeric_limits<Byte>::max()));
}

template <class Quads, int kRows>
HWY_INLINE void StoreSums(const QuadOperands& o, const QuadSums<Quads, kRows>& sums) {
  const QuadTag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const bool has_start = o.column_start != nullptr;
  const QuadVec left = has_start ? hn::LoadU(d, o.column_start) : hn::Zero(d);
  const QuadVec right = has_start ? hn::LoadU(d, o.column_start + lanes) : hn::Zero(d);
  alignas(64) std::int32_t values[kRows][2 * hn::MaxLanes(d)];
  const bool direct = o.columns == 2 * lanes && o.result == QuadResult::i32;
  std::int32_t* target = direct ? static_cast<std::int32_t*>(o.c) : values[0];
  const std::int64_t target_row = direct ? o.c_row : 2 * static_cast<std::int64_t>(hn::MaxLanes(d));
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    const QuadVec start = hn::Set(d, o.row_start != nullptr ? o.row_start[i] : 0);
    std::int32_t* row = target + i * target_row;
    hn::StoreU(hn::Add(Quads::Whole(sums.left[i]), hn::Add(start, left)), d, row);
    hn::StoreU(hn::Add(Quads::Whole(sums.right[i]), hn::Add(start, right)), d, row + lanes);
  }
  if (direct) return;
  for (int i = 0; i < kRows; ++i) {
    if (o.result == QuadResult::i8)
      StoreBytes(values[i], o.columns, static_cast<std::int8_t*>(o.c) + i * o.c_row);
    else if (o.result == QuadResult::u8)
      StoreBytes(values[i], o.columns, static_cast<std::uint8_t*>(o.c) + i * o.c_row);
    else
      std::memcpy(static_cast<std::int32_t*>(o.c) + i * o.c_row, values[i],
                  static_cast<std::size_t>(o.columns) * sizeof(std::int32_t));
  }
}

template <class Quads, int kRows>
HWY_NOINLINE void MultiplyQuads(const QuadOperands& o) {
  QuadSums<Quads, kRows> sums;
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) sums.left[i] = sums.right[i] = Quads::Zero();
  const std::int8_t* b = o.b;
  const auto b_quad = static_cast<std::int64_t>(8 * hn::Lanes(QuadTag()));
  for (std::int64_t s = 0; s < o.segments; ++s, b += o.quads * b_quad)
    AddSegment<Quads, kRows>(
        o.quads, o.a + (o.segment_offsets != nullptr ? o.segment_offsets[s] : 0), o.a_row, b, sums);
  StoreSums<Quads, kRows>(o, sums);
}

// Calls the block of exactly o.rows rows.
template <class Quads, int kRows>
void MultiplyQuadRows(const QuadOperands& o) {
  if constexpr (kRows > 1) {
    if (o.rows < kRows) return MultiplyQuadRows<Quads, kRows - 1>(o);
  }
  MultiplyQuads<Quads, kRows>(o);
}

template <class Quads>
const QuadProduct& ProductOf() {
  static const QuadProduct product = {Quads::kRows,
                                      2 * static_cast<std::int64_t>(hn::Lanes(QuadTag())),
                                      MultiplyQuadRows<Quads, Quads::kRows>};
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

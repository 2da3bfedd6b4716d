// Packing of int8 operands into the VNNI layout. Compiled once per SIMD target.
#if defined(ASHLAR_CPU_KERNELS_INT8_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASHLAR_CPU_KERNELS_INT8_PACK_INL_H_
#undef ASHLAR_CPU_KERNELS_INT8_PACK_INL_H_
#else
#define ASHLAR_CPU_KERNELS_INT8_PACK_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "cpu/kernels/int8_pack.hpp"

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Byte = std::uint8_t;

#if HWY_TARGET != HWY_SCALAR

constexpr std::int64_t kBlock = 16;  // bytes per 128-bit vector
using BlockTag = hn::FixedTag<Byte, 16>;
using Block = hn::Vec<BlockTag>;

template <class Wide>
HWY_INLINE Block Lower(Block a, Block b) {
  const hn::Repartition<Wide, BlockTag> d;
  return hn::BitCast(BlockTag(), hn::InterleaveLower(d, hn::BitCast(d, a), hn::BitCast(d, b)));
}
template <class Wide>
HWY_INLINE Block Upper(Block a, Block b) {
  const hn::Repartition<Wide, BlockTag> d;
  return hn::BitCast(BlockTag(), hn::InterleaveUpper(d, hn::BitCast(d, a), hn::BitCast(d, b)));
}

// Transposes 4 columns of 4 quads each.
HWY_INLINE void TransposeQuads(const Byte* source, std::int64_t column_stride, Block flip,
                               std::int64_t width, Byte* target) {
  const BlockTag d;
  const auto column = [&](std::int64_t i) HWY_ATTR {
    return hn::Xor(hn::LoadU(d, source + i * column_stride), flip);
  };
  const Block c0 = column(0), c1 = column(1), c2 = column(2), c3 = column(3);
  const Block low01 = Lower<std::uint32_t>(c0, c1), low23 = Lower<std::uint32_t>(c2, c3);
  const Block high01 = Upper<std::uint32_t>(c0, c1), high23 = Upper<std::uint32_t>(c2, c3);
  const std::int64_t row = 4 * width;
  hn::StoreU(Lower<std::uint64_t>(low01, low23), d, target);
  hn::StoreU(Upper<std::uint64_t>(low01, low23), d, target + row);
  hn::StoreU(Lower<std::uint64_t>(high01, high23), d, target + 2 * row);
  hn::StoreU(Upper<std::uint64_t>(high01, high23), d, target + 3 * row);
}

// Interleaves 4 rows of K of 16 columns.
HWY_INLINE void InterleaveRows(const Byte* source, std::int64_t k_stride, Block flip,
                               Byte* target) {
  const BlockTag d;
  const auto row = [&](std::int64_t r)
                       HWY_ATTR { return hn::Xor(hn::LoadU(d, source + r * k_stride), flip); };
  const Block r0 = row(0), r1 = row(1), r2 = row(2), r3 = row(3);
  const Block low01 = Lower<Byte>(r0, r1), low23 = Lower<Byte>(r2, r3);
  const Block high01 = Upper<Byte>(r0, r1), high23 = Upper<Byte>(r2, r3);
  hn::StoreU(Lower<std::uint16_t>(low01, low23), d, target);
  hn::StoreU(Upper<std::uint16_t>(low01, low23), d, target + kBlock);
  hn::StoreU(Lower<std::uint16_t>(high01, high23), d, target + 2 * kBlock);
  hn::StoreU(Upper<std::uint16_t>(high01, high23), d, target + 3 * kBlock);
}

// Transposes 16 x 16 bytes.
HWY_INLINE void TransposeBlock(const Byte* source, std::int64_t stride, Block flip,
                               Byte* destination, std::int64_t row_stride) {
  const BlockTag d;
  Block x[16], y[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) x[i] = hn::Xor(hn::LoadU(d, source + i * stride), flip);
  // Four rounds of interleaving rows 8 apart leave row i of the transpose in register i.
  const auto round = [](const Block* from, Block* to) HWY_ATTR {
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      to[2 * i] = Lower<Byte>(from[i], from[i + 8]);
      to[2 * i + 1] = Upper<Byte>(from[i], from[i + 8]);
    }
  };
  round(x, y);
  round(y, x);
  round(x, y);
  round(y, x);
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) hn::StoreU(x[i], d, destination + i * row_stride);
}

#endif

// Scalar remainder: columns [first, end) from k = l_first on, zeros from `columns` and `k` on.
template <class At>
HWY_INLINE void PackBytes(std::int64_t first, std::int64_t end, std::int64_t columns,
                          std::int64_t l_first, std::int64_t k, std::int64_t width, Byte* panel,
                          const At& at) {
  const std::int64_t filled = (k + 3) / 4 * 4;
  for (std::int64_t j = first; j < end; ++j)
    for (std::int64_t l = l_first; l < filled; ++l)
      panel[(l / 4 * width + j) * 4 + l % 4] = j < columns && l < k ? at(l, j) : Byte{0};
}

void PackKContiguous(const Byte* source, std::int64_t column_stride, std::int64_t columns,
                     std::int64_t k, Byte flip, std::int64_t width, std::int8_t* destination) {
  Byte* panel = reinterpret_cast<Byte*>(destination);
  std::int64_t whole_columns = 0, whole_k = 0;
#if HWY_TARGET != HWY_SCALAR
  constexpr std::int64_t kLine = 64;  // bytes of a column per cache line
  const Block flips = hn::Set(BlockTag(), flip);
  whole_columns = columns / 4 * 4;
  whole_k = k / kBlock * kBlock;
  for (std::int64_t line = 0; line < whole_k; line += kLine)
    for (std::int64_t j = 0; j < whole_columns; j += 4)
      for (std::int64_t l = line; l < std::min(line + kLine, whole_k); l += kBlock)
        TransposeQuads(source + j * column_stride + l, column_stride, flips, width,
                       panel + l * width + 4 * j);
#endif
  const auto at = [&](std::int64_t l, std::int64_t j) {
    return static_cast<Byte>(source[j * column_stride + l] ^ flip);
  };
  PackBytes(0, whole_columns, columns, whole_k, k, width, panel, at);
  PackBytes(whole_columns, width, columns, 0, k, width, panel, at);
}

void PackNContiguous(const Byte* source, std::int64_t k_stride, std::int64_t columns,
                     std::int64_t k, Byte flip, std::int64_t width, std::int8_t* destination) {
  Byte* panel = reinterpret_cast<Byte*>(destination);
  std::int64_t whole_columns = 0, whole_k = 0;
#if HWY_TARGET != HWY_SCALAR
  const Block flips = hn::Set(BlockTag(), flip);
  whole_columns = columns / kBlock * kBlock;
  whole_k = k / 4 * 4;
  for (std::int64_t l = 0; l < whole_k; l += 4)
    for (std::int64_t j = 0; j < whole_columns; j += kBlock)
      InterleaveRows(source + l * k_stride + j, k_stride, flips, panel + l * width + 4 * j);
#endif
  const auto at = [&](std::int64_t l, std::int64_t j) {
    return static_cast<Byte>(source[l * k_stride + j] ^ flip);
  };
  PackBytes(0, whole_columns, columns, whole_k, k, width, panel, at);
  PackBytes(whole_columns, width, columns, 0, k, width, panel, at);
}

void CopyFlipped(const Byte* HWY_RESTRICT source, std::int64_t count, Byte flip,
                 Byte* HWY_RESTRICT destination) {
  if (flip == 0) {
    std::memcpy(destination, source, static_cast<std::size_t>(count));
    return;
  }
  const hn::ScalableTag<Byte> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto flips = hn::Set(d, flip);
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(hn::Xor(hn::LoadU(d, source + i), flips), d, destination + i);
  for (; i < count; ++i) destination[i] = source[i] ^ flip;
}

void TransposeFlipped(const Byte* source, std::int64_t k_stride, std::int64_t rows, std::int64_t k,
                      Byte flip, Byte* destination, std::int64_t row_stride) {
  std::int64_t whole_rows = 0, whole_k = 0;
#if HWY_TARGET != HWY_SCALAR
  const Block flips = hn::Set(BlockTag(), flip);
  whole_rows = rows / kBlock * kBlock;
  whole_k = k / kBlock * kBlock;
  for (std::int64_t l = 0; l < whole_k; l += kBlock)
    for (std::int64_t i = 0; i < whole_rows; i += kBlock)
      TransposeBlock(source + l * k_stride + i, k_stride, flips, destination + i * row_stride + l,
                     row_stride);
#endif
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t l = i < whole_rows ? whole_k : 0; l < k; ++l)
      destination[i * row_stride + l] = source[l * k_stride + i] ^ flip;
}

const Int8Pack& MakeInt8Pack() {
  static const Int8Pack pack = {PackKContiguous, PackNContiguous, CopyFlipped, TransposeFlipped};
  return pack;
}

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard

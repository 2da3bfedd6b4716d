// Bitwise operations on rows of integers that are held in float (types of up to 8 bits) or double.
#include <ashlar/ops.hpp>
#include <cstdint>
#include <type_traits>

#include "cpu/kernels/loops-inl.h"
#include "cpu/kernels/pointwise.hpp"
#include "hwy/highway.h"

#if defined(ASHLAR_CPU_POINTWISE_BITS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASHLAR_CPU_POINTWISE_BITS_INL_H_
#undef ASHLAR_CPU_POINTWISE_BITS_INL_H_
#else
#define ASHLAR_CPU_POINTWISE_BITS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <PointwiseMode kMode, class D, class V>
HWY_INLINE V BitwiseBinary(D d, V x, V b) {
  const hn::RebindToSigned<D> di;
  const auto left = hn::ConvertTo(di, x), right = hn::ConvertTo(di, b);
  if constexpr (kMode == PointwiseMode::bit_and) return hn::ConvertTo(d, hn::And(left, right));
  if constexpr (kMode == PointwiseMode::bit_or) return hn::ConvertTo(d, hn::Or(left, right));
  if constexpr (kMode == PointwiseMode::bit_xor) return hn::ConvertTo(d, hn::Xor(left, right));
}

// All bits set, as a number: ~x = ones - x.
template <int kWidth, bool kSigned, class T>
constexpr T AllOnes() {
  return kSigned ? T{-1} : static_cast<T>((std::uint64_t{1} << (kWidth % 64)) - 1);
}

// x << b in kWidth bits.
template <int kWidth, bool kSigned, class D, class V>
HWY_INLINE V ShiftedLeft(D d, V x, V b) {
  using T = hn::TFromD<D>;
  const hn::RebindToSigned<D> di;
  constexpr int kUnused = static_cast<int>(8 * sizeof(T)) - kWidth;
  const auto in_range = hn::And(hn::Ge(b, hn::Zero(d)), hn::Lt(b, hn::Set(d, T{kWidth})));
  const auto count = hn::ConvertTo(di, hn::IfThenElseZero(in_range, b));
  auto bits = hn::Shl(hn::ConvertTo(di, x), count);
  if constexpr (kUnused > 0 && kSigned)
    bits = hn::ShiftRight<kUnused>(hn::ShiftLeft<kUnused>(bits));
  if constexpr (kUnused > 0 && !kSigned)
    bits = hn::And(bits, hn::Set(di, static_cast<hn::TFromD<decltype(di)>>(
                                         (std::uint64_t{1} << (kWidth % 64)) - 1)));
  return hn::IfThenElseZero(in_range, hn::ConvertTo(d, bits));
}

// floor(x / 2^b). Counts out of range leave the sign, as the count of all bits does.
template <int kWidth, class D, class V>
HWY_INLINE V ShiftedRight(D d, V x, V b) {
  using T = hn::TFromD<D>;
  const hn::RebindToSigned<D> di;
  constexpr int kMantissa = sizeof(T) == 4 ? 23 : 52, kBias = sizeof(T) == 4 ? 127 : 1023;
  const V width = hn::Set(d, T{kWidth});
  const auto in_range = hn::And(hn::Ge(b, hn::Zero(d)), hn::Lt(b, width));
  const auto count = hn::ConvertTo(di, hn::IfThenElse(in_range, b, width));
  const V power = hn::BitCast(d, hn::ShiftLeft<kMantissa>(hn::Sub(hn::Set(di, kBias), count)));
  return hn::Floor(hn::Mul(x, power));
}

template <PointwiseMode kMode, class T>
void BitwiseRow(const Pointwise&, const T* x, const T* b, const T*, std::int64_t count, T* y,
                const RowHints& hints) {
  const hn::ScalableTag<T> d;
  const auto apply = [&](auto vx, auto vb) HWY_ATTR { return BitwiseBinary<kMode>(d, vx, vb); };
  TransformRowWithHints(d, count, y, hints, apply, x, b);
}

template <int kWidth, bool kSigned, class T>
void BitNotRow(const Pointwise&, const T* x, const T*, const T*, std::int64_t count, T* y,
               const RowHints& hints) {
  const hn::ScalableTag<T> d;
  const auto apply = [&](auto vx) HWY_ATTR {
    return hn::Sub(hn::Set(d, AllOnes<kWidth, kSigned, T>()), vx);
  };
  TransformRowWithHints(d, count, y, hints, apply, x);
}

template <PointwiseMode kMode, int kWidth, bool kSigned, class T>
void ShiftRow(const Pointwise&, const T* x, const T* b, const T*, std::int64_t count, T* y,
              const RowHints& hints) {
  const hn::ScalableTag<T> d;
  const auto apply = [&](auto vx, auto vb) HWY_ATTR {
    if constexpr (kMode == PointwiseMode::shift_left)
      return ShiftedLeft<kWidth, kSigned>(d, vx, vb);
    else
      return ShiftedRight<kWidth>(d, vx, vb);
  };
  TransformRowWithHints(d, count, y, hints, apply, x, b);
}

template <PointwiseMode kMode, int kWidth, bool kSigned, class T>
PointwiseRow<T> RowOfWidth() {
  if constexpr (kMode == PointwiseMode::bit_not) return BitNotRow<kWidth, kSigned, T>;
  if constexpr (kMode != PointwiseMode::bit_not) return ShiftRow<kMode, kWidth, kSigned, T>;
}

// Null for types that float registers do not hold.
template <PointwiseMode kMode, class T>
PointwiseRow<T> RowOfType(DType dtype) {
  switch (dtype) {
    case DType::boolean: return RowOfWidth<kMode, 1, false, T>();
    case DType::i4: return RowOfWidth<kMode, 4, true, T>();
    case DType::u4: return RowOfWidth<kMode, 4, false, T>();
    case DType::i8: return RowOfWidth<kMode, 8, true, T>();
    case DType::u8: return RowOfWidth<kMode, 8, false, T>();
    default: break;
  }
  if constexpr (std::is_same_v<T, double>) {
    if (dtype == DType::i32) return RowOfWidth<kMode, 32, true, T>();
    if (dtype == DType::u32) return RowOfWidth<kMode, 32, false, T>();
    if (dtype == DType::i64) return RowOfWidth<kMode, 64, true, T>();
  }
  return nullptr;
}

// Null for other modes.
template <class T>
PointwiseRow<T> BitsRow(PointwiseMode mode, DType compute) {
  using enum PointwiseMode;
  switch (mode) {
    case bit_and: return BitwiseRow<bit_and, T>;
    case bit_or: return BitwiseRow<bit_or, T>;
    case bit_xor: return BitwiseRow<bit_xor, T>;
    case bit_not: return RowOfType<bit_not, T>(compute);
    case shift_left: return RowOfType<shift_left, T>(compute);
    case shift_right: return RowOfType<shift_right, T>(compute);
    default: return nullptr;
  }
}

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

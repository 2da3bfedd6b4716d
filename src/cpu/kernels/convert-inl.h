// Vectorised conversion between small element types and float, contiguous rows.
#include <cstdint>
#include <limits>

#include "cpu/kernels/loops-inl.h"
#include "hwy/highway.h"

#if defined(ASHLAR_CPU_CONVERT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ASHLAR_CPU_CONVERT_INL_H_
#undef ASHLAR_CPU_CONVERT_INL_H_
#else
#define ASHLAR_CPU_CONVERT_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// kSaturate: fp8 and fp4 saturate finite values. kInfinity: whether the largest exponent encodes
// infinity (e4m3 has a single NaN there, e2m1 none).
template <int kExponent, int kMantissa, bool kSaturates, bool kHasInfinity, bool kHasNan = true>
struct SmallFloat {
  static constexpr bool kSaturate = kSaturates;
  static constexpr bool kInfinity = kHasInfinity;
  static constexpr int kBias = (1 << (kExponent - 1)) - 1;
  static constexpr int kShift = 23 - kMantissa;
  static constexpr int kSignShift = 31 - kExponent - kMantissa;
  static constexpr std::uint32_t kMagnitude = (1u << (kExponent + kMantissa)) - 1;
  static constexpr std::uint32_t kExponentMask = ((1u << kExponent) - 1) << kMantissa;
  static constexpr std::uint32_t kNan =
      kInfinity ? kExponentMask | 1u << (kMantissa - 1) : kMagnitude;
  static constexpr std::uint32_t kLargest = kInfinity ? kExponentMask - 1
                                            : kHasNan ? kMagnitude - 1
                                                      : kMagnitude;
  static constexpr bool kNanKeepsSign = kHasNan;
  static constexpr std::uint32_t kPastLargest = kSaturate ? kLargest : kExponentMask;
};
using FormatF16 = SmallFloat<5, 10, false, true>;
using FormatBf16 = SmallFloat<8, 7, false, true>;
using FormatE4m3 = SmallFloat<4, 3, true, false>;
using FormatE5m2 = SmallFloat<5, 2, true, true>;
using FormatE2m1 = SmallFloat<2, 1, true, false, false>;

// Bits of the format in u32 lanes -> float. Shifting the bits into float's exponent field and
// multiplying by the ratio of the biases is exact, including subnormals.
template <class Format, class DU>
HWY_INLINE hn::Vec<hn::Rebind<float, DU>> Widen(DU du, hn::Vec<DU> bits) {
  const hn::Rebind<float, DU> df;
  if constexpr (Format::kBias == 127) {
    return hn::BitCast(df, hn::ShiftLeft<Format::kShift>(bits));
  } else {
    const auto magnitude = hn::And(bits, hn::Set(du, Format::kMagnitude));
    const auto sign =
        hn::ShiftLeft<Format::kSignShift>(hn::AndNot(hn::Set(du, Format::kMagnitude), bits));
    const auto scale =
        hn::BitCast(df, hn::Set(du, static_cast<std::uint32_t>(127 + 127 - Format::kBias) << 23));
    const auto value = hn::Mul(hn::BitCast(df, hn::ShiftLeft<Format::kShift>(magnitude)), scale);
    const std::uint32_t special = Format::kLargest + 1;  // infinity, or e4m3's NaN
    const auto is_special =
        hn::Gt(hn::BitCast(hn::RebindToSigned<DU>(), magnitude),
               hn::Set(hn::RebindToSigned<DU>(), static_cast<int>(special) - 1));
    const std::uint32_t marker = special == Format::kMagnitude ? 0x7FC00000u : 0x7F800000u;
    const auto marked = hn::Or(hn::BitCast(du, value), hn::Set(du, marker));
    const auto chosen =
        hn::IfThenElse(hn::RebindMask(du, is_special), marked, hn::BitCast(du, value));
    return hn::BitCast(df, hn::Or(chosen, sign));
  }
}

// float -> bits of the format, round to nearest even.
template <class Format, class DF>
HWY_INLINE hn::Vec<hn::Rebind<std::uint32_t, DF>> Narrow(DF df, hn::Vec<DF> value) {
  const hn::RebindToUnsigned<DF> du;
  const hn::RebindToSigned<DF> di;
  const auto bits = hn::BitCast(du, value);
  const auto sign = hn::And(bits, hn::Set(du, 0x80000000u));
  const auto magnitude = hn::Xor(bits, sign);
  const auto signed_magnitude = hn::BitCast(di, magnitude);
  constexpr int kShift = Format::kShift;

  // Normal results: add half a ULP minus one plus the last kept bit, then rebias the exponent.
  const auto last_kept = hn::And(hn::ShiftRight<kShift>(magnitude), hn::Set(du, 1u));
  constexpr std::uint32_t kRebias = static_cast<std::uint32_t>(Format::kBias - 127) << 23;
  const auto rounded =
      hn::Add(hn::Add(magnitude, last_kept), hn::Set(du, kRebias + (1u << (kShift - 1)) - 1u));
  auto result = hn::ShiftRight<kShift>(rounded);

  if constexpr (Format::kBias != 127) {
    // Subnormal results: adding a value whose ULP is the format's smallest step rounds there.
    constexpr std::uint32_t kMagicBits =
        static_cast<std::uint32_t>(127 - Format::kBias + kShift + 1) << 23;
    const auto magic = hn::BitCast(df, hn::Set(du, kMagicBits));
    const auto subnormal = hn::Sub(hn::BitCast(du, hn::Add(hn::BitCast(df, magnitude), magic)),
                                   hn::Set(du, kMagicBits));
    const auto is_subnormal = hn::Lt(signed_magnitude, hn::Set(di, (128 - Format::kBias) << 23));
    result = hn::IfThenElse(hn::RebindMask(du, is_subnormal), subnormal, result);
  }
  if constexpr (Format::kSaturate || Format::kBias != 127) {
    const auto past =
        hn::Gt(hn::BitCast(di, result), hn::Set(di, static_cast<int>(Format::kLargest)));
    result = hn::IfThenElse(hn::RebindMask(du, past), hn::Set(du, Format::kPastLargest), result);
  }
  if constexpr (Format::kSaturate && Format::kInfinity) {
    // e5m2 keeps infinities; only finite values saturate.
    const auto is_infinite = hn::Eq(signed_magnitude, hn::Set(di, 0x7F800000));
    result =
        hn::IfThenElse(hn::RebindMask(du, is_infinite), hn::Set(du, Format::kExponentMask), result);
  }
  const auto is_nan = hn::Gt(signed_magnitude, hn::Set(di, 0x7F800000));
  result = hn::IfThenElse(hn::RebindMask(du, is_nan), hn::Set(du, Format::kNan), result);
  const auto moved_sign = hn::ShiftRight<Format::kSignShift>(sign);
  if constexpr (Format::kNanKeepsSign) return hn::Or(result, moved_sign);
  return hn::Or(result, hn::IfThenZeroElse(hn::RebindMask(du, is_nan), moved_sign));
}

template <class Format, class Bits>
void WidenRow(const Bits* source, std::int64_t count, float* destination) {
  const hn::ScalableTag<float> df;
  const hn::Rebind<Bits, decltype(df)> db;
  const auto convert = [&](auto bits) HWY_ATTR {
    const hn::RebindToUnsigned<decltype(df)> du;
    return Widen<Format>(du, hn::PromoteTo(du, bits));
  };
  TransformRow(db, df, count, destination, convert, source);
}

template <class Format, class Bits>
void NarrowRow(const float* source, std::int64_t count, Bits* destination) {
  const hn::ScalableTag<float> df;
  const hn::Rebind<Bits, decltype(df)> db;
  const auto convert = [&](auto value) HWY_ATTR {
    const hn::RebindToSigned<decltype(df)> di;
    return hn::DemoteTo(db, hn::BitCast(di, Narrow<Format>(df, value)));
  };
  TransformRow(df, db, count, destination, convert, source);
}

// e8m0 is float's exponent field; its smallest value is a float subnormal.
inline void WidenScaleRow(const std::uint8_t* source, std::int64_t count, float* destination) {
  const hn::ScalableTag<float> df;
  const hn::RebindToUnsigned<decltype(df)> du;
  const auto convert = [&](auto bits) HWY_ATTR {
    const auto exponent = hn::PromoteTo(du, bits);
    auto result = hn::ShiftLeft<23>(exponent);
    result = hn::IfThenElse(hn::Eq(exponent, hn::Zero(du)), hn::Set(du, 0x00400000u), result);
    result = hn::IfThenElse(hn::Eq(exponent, hn::Set(du, 255u)), hn::Set(du, 0x7FC00000u), result);
    return hn::BitCast(df, result);
  };
  TransformRow(hn::Rebind<std::uint8_t, decltype(df)>(), df, count, destination, convert, source);
}

// Rounds to the nearest power of two, the larger one on ties.
inline void NarrowScaleRow(const float* source, std::int64_t count, std::uint8_t* destination) {
  const hn::ScalableTag<float> df;
  const hn::RebindToSigned<decltype(df)> di;
  const hn::Rebind<std::uint8_t, decltype(df)> db;
  const auto convert = [&](auto value) HWY_ATTR {
    const auto bits = hn::BitCast(di, value);  // ordered like the values if not negative
    auto exponent = hn::ShiftRight<23>(hn::Add(bits, hn::Set(di, 0x00400000)));
    // Subnormals: the midpoint of 2^-127 and 2^-126 is 1.5 2^-127.
    const auto lowest = hn::IfThenElseZero(hn::Gt(bits, hn::Set(di, 0x005FFFFF)), hn::Set(di, 1));
    exponent = hn::IfThenElse(hn::Lt(bits, hn::Set(di, 0x00800000)), lowest, exponent);
    exponent = hn::Min(exponent, hn::Set(di, 254));
    const auto is_number = hn::RebindMask(di, hn::Ge(value, hn::Zero(df)));
    return hn::DemoteTo(db, hn::IfThenElse(is_number, exponent, hn::Set(di, 255)));
  };
  TransformRow(df, db, count, destination, convert, source);
}

// 4-bit integers, one per byte.
template <bool kSigned>
void WidenNibbleRow(const std::uint8_t* source, std::int64_t count, float* destination) {
  const hn::ScalableTag<float> df;
  const hn::RebindToSigned<decltype(df)> di;
  const auto convert = [&](auto bits) HWY_ATTR {
    auto number = hn::PromoteTo(di, bits);
    if constexpr (kSigned) number = hn::Sub(hn::Xor(number, hn::Set(di, 8)), hn::Set(di, 8));
    return hn::ConvertTo(df, number);
  };
  TransformRow(hn::Rebind<std::uint8_t, decltype(df)>(), df, count, destination, convert, source);
}

template <bool kSigned>
void NarrowNibbleRow(const float* source, std::int64_t count, std::uint8_t* destination) {
  const hn::ScalableTag<float> df;
  const hn::RebindToSigned<decltype(df)> di;
  const hn::Rebind<std::uint8_t, decltype(df)> db;
  const auto lowest = hn::Set(df, kSigned ? -8.0f : 0.0f);
  const auto largest = hn::Set(df, kSigned ? 7.0f : 15.0f);
  const auto convert = [&](auto value) HWY_ATTR {
    const auto number = hn::IfThenElseZero(hn::Eq(value, value), value);
    const auto whole = hn::NearestInt(hn::Min(hn::Max(number, lowest), largest));
    return hn::DemoteTo(db, hn::And(whole, hn::Set(di, 15)));
  };
  TransformRow(df, db, count, destination, convert, source);
}

// Two values per byte, the first in the low nibble <-> one per byte. `count` bytes of pairs.
inline void UnpackPairs(const std::uint8_t* pairs, std::int64_t count, std::uint8_t* nibbles) {
  const hn::ScalableTag<std::uint8_t> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto both = hn::LoadU(d, pairs + i);
    hn::StoreInterleaved2(hn::And(both, hn::Set(d, std::uint8_t{15})), hn::ShiftRight<4>(both), d,
                          nibbles + 2 * i);
  }
  for (; i < count; ++i) {
    nibbles[2 * i] = pairs[i] & 15;
    nibbles[2 * i + 1] = pairs[i] >> 4;
  }
}
inline void PackPairs(const std::uint8_t* nibbles, std::int64_t count, std::uint8_t* pairs) {
  const hn::ScalableTag<std::uint8_t> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    auto low = hn::Zero(d), high = hn::Zero(d);
    hn::LoadInterleaved2(d, nibbles + 2 * i, low, high);
    hn::StoreU(hn::Or(low, hn::ShiftLeft<4>(high)), d, pairs + i);
  }
  for (; i < count; ++i)
    pairs[i] = static_cast<std::uint8_t>(nibbles[2 * i] | nibbles[2 * i + 1] << 4);
}

// Booleans as 0 or 1, from the first bit of a byte on; returns how many, at most 15 fewer than
// `count`.
template <class T>
std::int64_t WidenBits(const std::uint8_t* bytes, std::int64_t count, T* destination) {
  const hn::CappedTag<T, 16> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto one = hn::Set(d, T{1});
  alignas(8) std::uint8_t bits[8] = {};
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    bits[0] = static_cast<std::uint8_t>(bytes[i >> 3] >> (i & 7));
    if (lanes > 8) bits[1] = bytes[(i >> 3) + 1];
    hn::StoreU(hn::IfThenElseZero(hn::LoadMaskBits(d, bits), one), d, destination + i);
  }
  return i;
}

// Doubles to integers of at most 32 bits: to nearest even, saturating, 0 for NaN.
template <class Int>
void NarrowDoubleRow(const double* source, std::int64_t count, Int* destination) {
  const hn::ScalableTag<double> dd;
  const hn::Rebind<std::int32_t, decltype(dd)> di;
  const hn::Rebind<Int, decltype(dd)> db;
  constexpr auto kLowest = static_cast<double>(std::numeric_limits<Int>::min());
  constexpr auto kLargest = static_cast<double>(std::numeric_limits<Int>::max());
  const auto convert = [&](auto value) HWY_ATTR {
    const auto number = hn::IfThenElseZero(hn::Eq(value, value), value);
    const auto clamped = hn::Min(hn::Max(number, hn::Set(dd, kLowest)), hn::Set(dd, kLargest));
    const auto whole = hn::DemoteTo(di, hn::Round(clamped));
    if constexpr (sizeof(Int) == 4)
      return whole;
    else
      return hn::DemoteTo(db, whole);
  };
  TransformRow(dd, db, count, destination, convert, source);
}

// The same to i64; 2^63 - 1 is no double.
inline void NarrowDoubleToI64(const double* source, std::int64_t count, std::int64_t* destination) {
  const hn::ScalableTag<double> dd;
  const hn::RebindToSigned<decltype(dd)> di;
  const auto convert = [&](auto value) HWY_ATTR {
    const auto number = hn::IfThenElseZero(hn::Eq(value, value), value);
    const auto whole = hn::Round(hn::Max(number, hn::Set(dd, -0x1p63)));
    const auto past = hn::RebindMask(di, hn::Ge(whole, hn::Set(dd, 0x1p63)));
    const auto inside = hn::IfThenElseZero(hn::Lt(whole, hn::Set(dd, 0x1p63)), whole);
    const auto most = hn::Set(di, std::numeric_limits<std::int64_t>::max());
    return hn::IfThenElse(past, most, hn::ConvertTo(di, inside));
  };
  TransformRow(dd, di, count, destination, convert, source);
}

// i8 and u8.
template <class Int>
void WidenIntRow(const Int* source, std::int64_t count, float* destination) {
  const hn::ScalableTag<float> df;
  const hn::Rebind<Int, decltype(df)> db;
  const auto convert = [&](auto value) HWY_ATTR {
    return hn::ConvertTo(df, hn::PromoteTo(hn::RebindToSigned<decltype(df)>(), value));
  };
  TransformRow(db, df, count, destination, convert, source);
}

template <class Int>
void NarrowIntRow(const float* source, std::int64_t count, Int* destination) {
  const hn::ScalableTag<float> df;
  const hn::Rebind<Int, decltype(df)> db;
  const float lowest = std::is_signed_v<Int> ? -128.0f : 0.0f;
  const float largest = std::is_signed_v<Int> ? 127.0f : 255.0f;
  const auto convert = [&](auto value) HWY_ATTR {
    const auto number = hn::IfThenElseZero(hn::Eq(value, value), value);
    const auto clamped = hn::Min(hn::Max(number, hn::Set(df, lowest)), hn::Set(df, largest));
    return hn::DemoteTo(db, hn::NearestInt(clamped));
  };
  TransformRow(df, db, count, destination, convert, source);
}

}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

// Row conversions between all dtypes and float or double.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels/convert.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "cpu/kernels/convert-inl.h"

#ifndef ASHLAR_CPU_CONVERT_TABLE_
#define ASHLAR_CPU_CONVERT_TABLE_
namespace ashlar::cpu {
// Vectorised contiguous conversions of the small types; the other paths are plain C++.
struct SmallConversions {
  void (*widen_f16)(const std::uint16_t*, std::int64_t, float*);
  void (*widen_bf16)(const std::uint16_t*, std::int64_t, float*);
  void (*widen_e4m3)(const std::uint8_t*, std::int64_t, float*);
  void (*widen_e5m2)(const std::uint8_t*, std::int64_t, float*);
  void (*widen_i8)(const std::int8_t*, std::int64_t, float*);
  void (*widen_u8)(const std::uint8_t*, std::int64_t, float*);
  void (*widen_e8m0)(const std::uint8_t*, std::int64_t, float*);
  // 4-bit types, one per byte.
  void (*widen_e2m1)(const std::uint8_t*, std::int64_t, float*);
  void (*widen_i4)(const std::uint8_t*, std::int64_t, float*);
  void (*widen_u4)(const std::uint8_t*, std::int64_t, float*);
  void (*unpack_pairs)(const std::uint8_t*, std::int64_t, std::uint8_t*);
  void (*narrow_f16)(const float*, std::int64_t, std::uint16_t*);
  void (*narrow_bf16)(const float*, std::int64_t, std::uint16_t*);
  void (*narrow_e4m3)(const float*, std::int64_t, std::uint8_t*);
  void (*narrow_e5m2)(const float*, std::int64_t, std::uint8_t*);
  void (*narrow_i8)(const float*, std::int64_t, std::int8_t*);
  void (*narrow_u8)(const float*, std::int64_t, std::uint8_t*);
  void (*narrow_e8m0)(const float*, std::int64_t, std::uint8_t*);
  void (*narrow_e2m1)(const float*, std::int64_t, std::uint8_t*);
  void (*narrow_i4)(const float*, std::int64_t, std::uint8_t*);
  void (*narrow_u4)(const float*, std::int64_t, std::uint8_t*);
  void (*pack_pairs)(const std::uint8_t*, std::int64_t, std::uint8_t*);
  void (*narrow_double_i32)(const double*, std::int64_t, std::int32_t*);
  void (*narrow_double_i64)(const double*, std::int64_t, std::int64_t*);
  void (*narrow_double_i8)(const double*, std::int64_t, std::int8_t*);
  void (*narrow_double_u8)(const double*, std::int64_t, std::uint8_t*);
  std::int64_t (*widen_bits)(const std::uint8_t*, std::int64_t, float*);
  std::int64_t (*widen_bits_as_double)(const std::uint8_t*, std::int64_t, double*);
};
}  // namespace ashlar::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace ashlar::cpu::HWY_NAMESPACE {
SmallConversions MakeSmallConversions() {
  return {WidenRow<FormatF16, std::uint16_t>,
          WidenRow<FormatBf16, std::uint16_t>,
          WidenRow<FormatE4m3, std::uint8_t>,
          WidenRow<FormatE5m2, std::uint8_t>,
          WidenIntRow<std::int8_t>,
          WidenIntRow<std::uint8_t>,
          WidenScaleRow,
          WidenRow<FormatE2m1, std::uint8_t>,
          WidenNibbleRow<true>,
          WidenNibbleRow<false>,
          UnpackPairs,
          NarrowRow<FormatF16, std::uint16_t>,
          NarrowRow<FormatBf16, std::uint16_t>,
          NarrowRow<FormatE4m3, std::uint8_t>,
          NarrowRow<FormatE5m2, std::uint8_t>,
          NarrowIntRow<std::int8_t>,
          NarrowIntRow<std::uint8_t>,
          NarrowScaleRow,
          NarrowRow<FormatE2m1, std::uint8_t>,
          NarrowNibbleRow<true>,
          NarrowNibbleRow<false>,
          PackPairs,
          NarrowDoubleRow<std::int32_t>,
          NarrowDoubleToI64,
          NarrowDoubleRow<std::int8_t>,
          NarrowDoubleRow<std::uint8_t>,
          WidenBits<float>,
          WidenBits<double>};
}
}  // namespace ashlar::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "cpu/kernels/convert.hpp"

namespace ashlar::cpu {
HWY_EXPORT(MakeSmallConversions);

namespace {

const SmallConversions& small() {
  static const SmallConversions table = HWY_DYNAMIC_DISPATCH(MakeSmallConversions)();
  return table;
}

constexpr std::int64_t kChunk = 256;  // elements per stack buffer

template <class Bits>
const Bits* element(const void* data, std::int64_t index) {
  return static_cast<const Bits*>(data) + index;
}
template <class Bits>
Bits* element(void* data, std::int64_t index) {
  return static_cast<Bits*>(data) + index;
}

// Round to odd: rounding the result again to a type at least two bits shorter equals rounding the
// double once.
float to_odd_float(double value) {
  const auto nearest = static_cast<float>(value);
  const auto back = static_cast<double>(nearest);
  if (back == value || std::isnan(value) || std::isinf(value)) return nearest;
  auto bits = std::bit_cast<std::uint32_t>(nearest);
  if (std::fabs(back) > std::fabs(value)) --bits;
  return std::bit_cast<float>(bits | 1u);
}

template <class Int>
Int saturate(double value) {
  constexpr double kLowest = static_cast<double>(std::numeric_limits<Int>::min());
  constexpr double kPast =
      2.0 * static_cast<double>(Int{1} << (std::numeric_limits<Int>::digits - 1));
  const double rounded = std::nearbyint(value);
  if (rounded >= kPast) return std::numeric_limits<Int>::max();
  if (rounded >= kLowest) return static_cast<Int>(rounded);
  return std::isnan(value) ? Int{0} : std::numeric_limits<Int>::min();
}

// --- types whose conversion is a cast: f64 f32 i64 i32 u32, and i8 u8 for double

template <class Stored, class T>
void load_cast(const void* data, std::int64_t index, std::int64_t stride, std::int64_t count,
               T* destination) {
  const Stored* source = element<Stored>(data, index);
  if (stride == 0) {
    std::fill_n(destination, count, static_cast<T>(*source));
  } else if (stride == 1) {
    if constexpr (std::is_same_v<Stored, T>) {
      std::memcpy(destination, source, static_cast<std::size_t>(count) * sizeof(T));
    } else {
      for (std::int64_t i = 0; i < count; ++i) destination[i] = static_cast<T>(source[i]);
    }
  } else {
    for (std::int64_t i = 0; i < count; ++i) destination[i] = static_cast<T>(source[i * stride]);
  }
}

template <class Stored, class T>
void store_cast(const T* source, std::int64_t count, void* data, std::int64_t index,
                std::int64_t stride) {
  Stored* destination = element<Stored>(data, index);
  const auto convert = [](T value) {
    if constexpr (std::is_floating_point_v<Stored>)
      return static_cast<Stored>(value);
    else
      return saturate<Stored>(static_cast<double>(value));
  };
  if (stride == 1) {
    if constexpr (std::is_same_v<Stored, T>) {
      std::memcpy(destination, source, static_cast<std::size_t>(count) * sizeof(T));
      return;
    }
    for (std::int64_t i = 0; i < count; ++i) destination[i] = convert(source[i]);
  } else {
    for (std::int64_t i = 0; i < count; ++i) destination[i * stride] = convert(source[i]);
  }
}

// The same from double, in vectors where the row is contiguous.
template <auto kNarrow, class Stored>
void store_integers(const double* source, std::int64_t count, void* data, std::int64_t index,
                    std::int64_t stride) {
  if (stride != 1) return store_cast<Stored>(source, count, data, index, stride);
  (small().*kNarrow)(source, count, element<Stored>(data, index));
}

// --- small types: float vectors; strided rows and double through a buffer

template <auto kWiden, class Bits>
void load_small(const void* data, std::int64_t index, std::int64_t stride, std::int64_t count,
                float* destination) {
  const Bits* source = element<Bits>(data, index);
  const auto widen = small().*kWiden;
  if (stride == 1) return widen(source, count, destination);
  if (stride == 0) {
    float value;
    widen(source, 1, &value);
    std::fill_n(destination, count, value);
    return;
  }
  Bits gathered[kChunk];
  for (std::int64_t first = 0; first < count; first += kChunk) {
    const std::int64_t length = std::min(kChunk, count - first);
    for (std::int64_t i = 0; i < length; ++i) gathered[i] = source[(first + i) * stride];
    widen(gathered, length, destination + first);
  }
}

template <auto kWiden, class Bits>
void load_small_as_double(const void* data, std::int64_t index, std::int64_t stride,
                          std::int64_t count, double* destination) {
  float values[kChunk];
  for (std::int64_t first = 0; first < count; first += kChunk) {
    const std::int64_t length = std::min(kChunk, count - first);
    load_small<kWiden, Bits>(data, index + first * stride, stride, length, values);
    for (std::int64_t i = 0; i < length; ++i)
      destination[first + i] = static_cast<double>(values[i]);
  }
}

template <auto kNarrow, class Bits>
void store_small(const float* source, std::int64_t count, void* data, std::int64_t index,
                 std::int64_t stride) {
  Bits* destination = element<Bits>(data, index);
  const auto narrow = small().*kNarrow;
  if (stride == 1) return narrow(source, count, destination);
  Bits converted[kChunk];
  for (std::int64_t first = 0; first < count; first += kChunk) {
    const std::int64_t length = std::min(kChunk, count - first);
    narrow(source + first, length, converted);
    for (std::int64_t i = 0; i < length; ++i) destination[(first + i) * stride] = converted[i];
  }
}

template <auto kNarrow, class Bits>
void store_small_from_double(const double* source, std::int64_t count, void* data,
                             std::int64_t index, std::int64_t stride) {
  float values[kChunk];
  for (std::int64_t first = 0; first < count; first += kChunk) {
    const std::int64_t length = std::min(kChunk, count - first);
    for (std::int64_t i = 0; i < length; ++i) values[i] = to_odd_float(source[first + i]);
    store_small<kNarrow, Bits>(values, length, data, index + first * stride, stride);
  }
}

// --- booleans

template <class T>
void load_bits(const void* data, std::int64_t index, std::int64_t stride, std::int64_t count,
               T* destination) {
  const auto* bytes = static_cast<const std::uint8_t*>(data);
  std::int64_t i = 0;
  const auto load_to = [&](std::int64_t end) {
    for (; i < end; ++i) {
      const std::int64_t bit = index + i * stride;
      destination[i] = static_cast<T>((bytes[bit >> 3] >> (bit & 7)) & 1);
    }
  };
  if (stride == 1) {
    load_to(std::min(count, -index & 7));
    const std::uint8_t* whole = bytes + ((index + i) >> 3);
    if constexpr (std::is_same_v<T, float>)
      i += small().widen_bits(whole, count - i, destination + i);
    else
      i += small().widen_bits_as_double(whole, count - i, destination + i);
  }
  load_to(count);
}

// Replaces the bits of *byte under `mask`; other threads may write the others.
void merge_bits(std::uint8_t* byte, std::uint8_t mask, std::uint8_t bits) {
  std::atomic_ref<std::uint8_t> shared(*byte);
  shared.fetch_and(static_cast<std::uint8_t>(bits | ~mask), std::memory_order_relaxed);
  shared.fetch_or(static_cast<std::uint8_t>(bits & mask), std::memory_order_relaxed);
}

template <class T>
void store_bits(const T* source, std::int64_t count, void* data, std::int64_t index,
                std::int64_t stride) {
  auto* bytes = static_cast<std::uint8_t*>(data);
  if (stride != 1) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t bit = index + i * stride;
      const auto mask = static_cast<std::uint8_t>(1u << (bit & 7));
      merge_bits(bytes + (bit >> 3), mask, source[i] != T{0} ? mask : std::uint8_t{0});
    }
    return;
  }
  for (std::int64_t i = 0; i < count;) {
    const std::int64_t bit = index + i;
    const auto low = static_cast<int>(bit & 7);
    const auto length = static_cast<int>(std::min<std::int64_t>(8 - low, count - i));
    unsigned bits = 0;
    for (int j = 0; j < length; ++j) bits |= (source[i + j] != T{0} ? 1u : 0u) << (low + j);
    if (length == 8) {
      bytes[bit >> 3] = static_cast<std::uint8_t>(bits);
    } else {
      const auto mask = static_cast<std::uint8_t>(((1u << length) - 1) << low);
      merge_bits(bytes + (bit >> 3), mask, static_cast<std::uint8_t>(bits));
    }
    i += length;
  }
}

// --- 4-bit types: two per byte, the first in the low nibble; vectors of one per byte

template <auto kWiden>
void load_nibbles(const void* data, std::int64_t index, std::int64_t stride, std::int64_t count,
                  float* destination) {
  const auto* bytes = static_cast<const std::uint8_t*>(data);
  const auto widen = small().*kWiden;
  const auto nibble = [&](std::int64_t at) {
    return static_cast<std::uint8_t>((bytes[at >> 1] >> ((at & 1) * 4)) & 15);
  };
  std::uint8_t nibbles[kChunk];
  for (std::int64_t first = 0; first < count; first += kChunk) {
    const std::int64_t length = std::min(kChunk, count - first);
    const std::int64_t start = index + first * stride;
    if (stride == 1) {
      const std::int64_t lead = start & 1;
      if (lead != 0) nibbles[0] = nibble(start);
      const std::int64_t pairs = (length - lead) / 2;
      small().unpack_pairs(bytes + ((start + lead) >> 1), pairs, nibbles + lead);
      if (lead + 2 * pairs < length) nibbles[length - 1] = nibble(start + length - 1);
    } else {
      for (std::int64_t i = 0; i < length; ++i) nibbles[i] = nibble(start + i * stride);
    }
    widen(nibbles, length, destination + first);
  }
}

template <auto kWiden>
void load_nibbles_as_double(const void* data, std::int64_t index, std::int64_t stride,
                            std::int64_t count, double* destination) {
  float values[kChunk];
  for (std::int64_t first = 0; first < count; first += kChunk) {
    const std::int64_t length = std::min(kChunk, count - first);
    load_nibbles<kWiden>(data, index + first * stride, stride, length, values);
    for (std::int64_t i = 0; i < length; ++i)
      destination[first + i] = static_cast<double>(values[i]);
  }
}

template <auto kNarrow>
void store_nibbles(const float* source, std::int64_t count, void* data, std::int64_t index,
                   std::int64_t stride) {
  auto* bytes = static_cast<std::uint8_t*>(data);
  const auto narrow = small().*kNarrow;
  std::uint8_t nibbles[kChunk];
  // Another thread may write the other nibble.
  const auto store_one = [&](std::int64_t at, std::uint8_t bits) {
    const int shift = static_cast<int>(at & 1) * 4;
    merge_bits(bytes + (at >> 1), static_cast<std::uint8_t>(15 << shift),
               static_cast<std::uint8_t>(bits << shift));
  };
  for (std::int64_t first = 0; first < count; first += kChunk) {
    const std::int64_t length = std::min(kChunk, count - first);
    const std::int64_t start = index + first * stride;
    narrow(source + first, length, nibbles);
    if (stride == 1) {
      const std::int64_t lead = start & 1;
      if (lead != 0) store_one(start, nibbles[0]);
      const std::int64_t pairs = (length - lead) / 2;
      small().pack_pairs(nibbles + lead, pairs, bytes + ((start + lead) >> 1));
      if (lead + 2 * pairs < length) store_one(start + length - 1, nibbles[length - 1]);
    } else {
      for (std::int64_t i = 0; i < length; ++i) store_one(start + i * stride, nibbles[i]);
    }
  }
}

template <auto kNarrow>
void store_nibbles_from_double(const double* source, std::int64_t count, void* data,
                               std::int64_t index, std::int64_t stride) {
  float values[kChunk];
  for (std::int64_t first = 0; first < count; first += kChunk) {
    const std::int64_t length = std::min(kChunk, count - first);
    for (std::int64_t i = 0; i < length; ++i) values[i] = to_odd_float(source[first + i]);
    store_nibbles<kNarrow>(values, length, data, index + first * stride, stride);
  }
}

}  // namespace

template <>
LoadRow<float> load_row<float>(DType dtype) {
  using S = SmallConversions;
  switch (dtype) {
    case DType::f64: return load_cast<double, float>;
    case DType::f32: return load_cast<float, float>;
    case DType::f16: return load_small<&S::widen_f16, std::uint16_t>;
    case DType::bf16: return load_small<&S::widen_bf16, std::uint16_t>;
    case DType::e4m3: return load_small<&S::widen_e4m3, std::uint8_t>;
    case DType::e5m2: return load_small<&S::widen_e5m2, std::uint8_t>;
    case DType::i64: return load_cast<std::int64_t, float>;
    case DType::i32: return load_cast<std::int32_t, float>;
    case DType::i8: return load_small<&S::widen_i8, std::int8_t>;
    case DType::u8: return load_small<&S::widen_u8, std::uint8_t>;
    case DType::e8m0: return load_small<&S::widen_e8m0, std::uint8_t>;
    case DType::e2m1: return load_nibbles<&S::widen_e2m1>;
    case DType::u32: return load_cast<std::uint32_t, float>;
    case DType::i4: return load_nibbles<&S::widen_i4>;
    case DType::u4: return load_nibbles<&S::widen_u4>;
    case DType::boolean:
    case DType::complex_f32:
    case DType::complex_f64: break;
  }
  return load_bits<float>;
}

template <>
LoadRow<double> load_row<double>(DType dtype) {
  using S = SmallConversions;
  switch (dtype) {
    case DType::f64: return load_cast<double, double>;
    case DType::f32: return load_cast<float, double>;
    case DType::f16: return load_small_as_double<&S::widen_f16, std::uint16_t>;
    case DType::bf16: return load_small_as_double<&S::widen_bf16, std::uint16_t>;
    case DType::e4m3: return load_small_as_double<&S::widen_e4m3, std::uint8_t>;
    case DType::e5m2: return load_small_as_double<&S::widen_e5m2, std::uint8_t>;
    case DType::i64: return load_cast<std::int64_t, double>;
    case DType::i32: return load_cast<std::int32_t, double>;
    case DType::i8: return load_cast<std::int8_t, double>;
    case DType::u8: return load_cast<std::uint8_t, double>;
    case DType::e8m0: return load_small_as_double<&S::widen_e8m0, std::uint8_t>;
    case DType::e2m1: return load_nibbles_as_double<&S::widen_e2m1>;
    case DType::u32: return load_cast<std::uint32_t, double>;
    case DType::i4: return load_nibbles_as_double<&S::widen_i4>;
    case DType::u4: return load_nibbles_as_double<&S::widen_u4>;
    case DType::boolean:
    case DType::complex_f32:
    case DType::complex_f64: break;
  }
  return load_bits<double>;
}

template <>
StoreRow<float> store_row<float>(DType dtype) {
  using S = SmallConversions;
  switch (dtype) {
    case DType::f64: return store_cast<double, float>;
    case DType::f32: return store_cast<float, float>;
    case DType::f16: return store_small<&S::narrow_f16, std::uint16_t>;
    case DType::bf16: return store_small<&S::narrow_bf16, std::uint16_t>;
    case DType::e4m3: return store_small<&S::narrow_e4m3, std::uint8_t>;
    case DType::e5m2: return store_small<&S::narrow_e5m2, std::uint8_t>;
    case DType::i64: return store_cast<std::int64_t, float>;
    case DType::i32: return store_cast<std::int32_t, float>;
    case DType::i8: return store_small<&S::narrow_i8, std::int8_t>;
    case DType::u8: return store_small<&S::narrow_u8, std::uint8_t>;
    case DType::e8m0: return store_small<&S::narrow_e8m0, std::uint8_t>;
    case DType::e2m1: return store_nibbles<&S::narrow_e2m1>;
    case DType::u32: return store_cast<std::uint32_t, float>;
    case DType::i4: return store_nibbles<&S::narrow_i4>;
    case DType::u4: return store_nibbles<&S::narrow_u4>;
    case DType::boolean:
    case DType::complex_f32:
    case DType::complex_f64: break;
  }
  return store_bits<float>;
}

template <>
StoreRow<double> store_row<double>(DType dtype) {
  using S = SmallConversions;
  switch (dtype) {
    case DType::f64: return store_cast<double, double>;
    case DType::f32: return store_cast<float, double>;
    case DType::f16: return store_small_from_double<&S::narrow_f16, std::uint16_t>;
    case DType::bf16: return store_small_from_double<&S::narrow_bf16, std::uint16_t>;
    case DType::e4m3: return store_small_from_double<&S::narrow_e4m3, std::uint8_t>;
    case DType::e5m2: return store_small_from_double<&S::narrow_e5m2, std::uint8_t>;
    case DType::i64: return store_integers<&S::narrow_double_i64, std::int64_t>;
    case DType::i32: return store_integers<&S::narrow_double_i32, std::int32_t>;
    case DType::i8: return store_integers<&S::narrow_double_i8, std::int8_t>;
    case DType::u8: return store_integers<&S::narrow_double_u8, std::uint8_t>;
    case DType::e8m0: return store_small_from_double<&S::narrow_e8m0, std::uint8_t>;
    case DType::e2m1: return store_nibbles_from_double<&S::narrow_e2m1>;
    case DType::u32: return store_cast<std::uint32_t, double>;
    case DType::i4: return store_nibbles_from_double<&S::narrow_i4>;
    case DType::u4: return store_nibbles_from_double<&S::narrow_u4>;
    case DType::boolean:
    case DType::complex_f32:
    case DType::complex_f64: break;
  }
  return store_bits<double>;
}

}  // namespace ashlar::cpu
#endif  // HWY_ONCE

// Conversion of single tensor elements from and to double.
#include "base/element.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/float_formats.hpp"

namespace ashlar {

namespace {

template <class T>
T read(const void* data, std::int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + index * static_cast<std::int64_t>(sizeof(T)),
              sizeof(T));
  return value;
}

template <class T>
void write(void* data, std::int64_t index, T value) {
  std::memcpy(static_cast<char*>(data) + index * static_cast<std::int64_t>(sizeof(T)), &value,
              sizeof(T));
}

template <class T>
T saturate(double value) {
  if (std::isnan(value)) return 0;
  const double rounded = std::nearbyint(value);
  // 2^63 - 1 is not representable in double: it compares as 2^63.
  if (rounded >= static_cast<double>(std::numeric_limits<T>::max()))
    return std::numeric_limits<T>::max();
  if (rounded <= static_cast<double>(std::numeric_limits<T>::min()))
    return std::numeric_limits<T>::min();
  return static_cast<T>(rounded);
}

const FloatFormat& format_of(DType dtype) {
  switch (dtype) {
    case DType::f16: return kFormatF16;
    case DType::bf16: return kFormatBf16;
    case DType::e4m3: return kFormatE4m3;
    case DType::e2m1: return kFormatE2m1;
    default: return kFormatE5m2;
  }
}

void store_bit(void* data, std::int64_t index, bool value) {
  std::atomic_ref<std::uint8_t> byte(static_cast<std::uint8_t*>(data)[index >> 3]);
  const auto mask = static_cast<std::uint8_t>(1u << (index & 7));
  if (value)
    byte.fetch_or(mask, std::memory_order_relaxed);
  else
    byte.fetch_and(static_cast<std::uint8_t>(~mask), std::memory_order_relaxed);
}

// Two elements share a byte and may be written by two threads, hence the atomic update.
void store_nibble(void* data, std::int64_t index, std::uint32_t bits) {
  std::atomic_ref<std::uint8_t> byte(static_cast<std::uint8_t*>(data)[index >> 1]);
  const int shift = static_cast<int>(index & 1) * 4;
  const auto keep = static_cast<std::uint8_t>(0xF0u >> shift);
  std::uint8_t old = byte.load(std::memory_order_relaxed);
  while (!byte.compare_exchange_weak(
      old, static_cast<std::uint8_t>((old & keep) | (bits & 0xFu) << shift),
      std::memory_order_relaxed)) {
  }
}

std::uint32_t load_nibble(const void* data, std::int64_t index) {
  return (static_cast<const std::uint8_t*>(data)[index >> 1] >> ((index & 1) * 4)) & 0xFu;
}

double saturate_to(double value, double low, double high) {
  return std::isnan(value) ? 0.0 : std::clamp(std::nearbyint(value), low, high);
}

}  // namespace

double load_element(DType dtype, const void* data, std::int64_t index) {
  switch (dtype) {
    case DType::f64: return read<double>(data, index);
    case DType::f32: return read<float>(data, index);
    case DType::f16:
    case DType::bf16: return widen(format_of(dtype), read<std::uint16_t>(data, index));
    case DType::e4m3:
    case DType::e5m2: return widen(format_of(dtype), read<std::uint8_t>(data, index));
    case DType::e8m0: return widen_e8m0(read<std::uint8_t>(data, index));
    case DType::e2m1: return widen(kFormatE2m1, load_nibble(data, index));
    case DType::i64: return static_cast<double>(read<std::int64_t>(data, index));
    case DType::i32: return read<std::int32_t>(data, index);
    case DType::i8: return read<std::int8_t>(data, index);
    case DType::u8: return read<std::uint8_t>(data, index);
    case DType::u32: return read<std::uint32_t>(data, index);
    case DType::i4: return static_cast<double>(load_nibble(data, index) ^ 8u) - 8.0;
    case DType::u4: return load_nibble(data, index);
    case DType::boolean:
      return (static_cast<const std::uint8_t*>(data)[index >> 3] >> (index & 7)) & 1;
    case DType::complex_f32:
    case DType::complex_f64: break;  // accessed as two f32 or f64 elements
  }
  return 0.0;
}

void store_element(DType dtype, void* data, std::int64_t index, double value) {
  switch (dtype) {
    case DType::f64: return write(data, index, value);
    case DType::f32: return write(data, index, static_cast<float>(value));
    case DType::f16:
    case DType::bf16:
      return write(data, index, static_cast<std::uint16_t>(narrow(format_of(dtype), value)));
    case DType::e4m3:
    case DType::e5m2:
      return write(data, index, static_cast<std::uint8_t>(narrow(format_of(dtype), value)));
    case DType::e8m0: return write(data, index, static_cast<std::uint8_t>(narrow_e8m0(value)));
    case DType::e2m1: return store_nibble(data, index, narrow(kFormatE2m1, value));
    case DType::i64: return write(data, index, saturate<std::int64_t>(value));
    case DType::i32: return write(data, index, saturate<std::int32_t>(value));
    case DType::i8: return write(data, index, saturate<std::int8_t>(value));
    case DType::u8: return write(data, index, saturate<std::uint8_t>(value));
    case DType::u32: return write(data, index, saturate<std::uint32_t>(value));
    case DType::i4:
      return store_nibble(data, index,
                          static_cast<std::uint32_t>(static_cast<int>(saturate_to(value, -8, 7))));
    case DType::u4:
      return store_nibble(data, index, static_cast<std::uint32_t>(saturate_to(value, 0, 15)));
    case DType::boolean: return store_bit(data, index, value != 0.0);
    case DType::complex_f32:
    case DType::complex_f64: break;
  }
}

double round_to(DType dtype, double value) {
  switch (dtype) {
    case DType::f64:
    case DType::complex_f64: return value;
    case DType::f32:
    case DType::complex_f32: return static_cast<float>(value);
    case DType::boolean: return value != 0.0 ? 1.0 : 0.0;
    default: break;
  }
  std::uint64_t storage = 0;
  store_element(dtype, &storage, 0, value);
  return load_element(dtype, &storage, 0);
}

double unit_roundoff(DType dtype) {
  switch (dtype) {
    case DType::f64: return std::ldexp(1.0, -53);
    case DType::f32: return std::ldexp(1.0, -24);
    case DType::f16:
    case DType::bf16:
    case DType::e4m3:
    case DType::e5m2:
    case DType::e2m1: return std::ldexp(1.0, -format_of(dtype).mantissa_bits - 1);
    case DType::e8m0: return 0.5;
    default: return 0.0;
  }
}

double smallest_step(DType dtype) {
  switch (dtype) {
    case DType::f64: return std::numeric_limits<double>::denorm_min();
    case DType::f32: return std::numeric_limits<float>::denorm_min();
    case DType::f16:
    case DType::bf16:
    case DType::e4m3:
    case DType::e5m2:
    case DType::e2m1: {
      const FloatFormat& format = format_of(dtype);
      return std::ldexp(1.0, format.smallest_normal_exponent() - format.mantissa_bits);
    }
    case DType::e8m0: return std::ldexp(1.0, -127);
    default: return 0.0;
  }
}

double largest_value(DType dtype) {
  switch (dtype) {
    case DType::f64: return std::numeric_limits<double>::max();
    case DType::f32: return std::numeric_limits<float>::max();
    case DType::f16:
    case DType::bf16:
    case DType::e4m3:
    case DType::e5m2:
    case DType::e2m1: return format_of(dtype).largest;
    case DType::e8m0: return std::ldexp(1.0, 127);
    case DType::i64: return 9223372036854775807.0;
    case DType::i32: return 2147483647.0;
    case DType::i8: return 127.0;
    case DType::u8: return 255.0;
    case DType::u32: return 4294967295.0;
    case DType::i4: return 7.0;
    case DType::u4: return 15.0;
    case DType::boolean: return 1.0;
    case DType::complex_f32: return std::numeric_limits<float>::max();
    case DType::complex_f64: return std::numeric_limits<double>::max();
  }
  return 0.0;
}

double lowest_value(DType dtype) {
  switch (dtype) {
    case DType::i64: return -9223372036854775808.0;
    case DType::i32: return -2147483648.0;
    case DType::i8: return -128.0;
    case DType::i4: return -8.0;
    case DType::e8m0:
    case DType::u8:
    case DType::u32:
    case DType::u4:
    case DType::boolean: return 0.0;
    default: return -largest_value(dtype);
  }
}

}  // namespace ashlar

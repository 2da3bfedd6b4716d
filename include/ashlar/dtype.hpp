// Element types.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace ashlar {

enum class DType : std::uint8_t {
  f64,
  f32,
  f16,
  bf16,
  e4m3,  // fp8, 4 exponent bits, no infinity, largest finite 448
  e5m2,  // fp8, 5 exponent bits, largest finite 57344
  e8m0,  // a power of two from 2^-127 to 2^127, or NaN: block scales
  e2m1,  // fp4: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives; two per byte, low nibble first
  i64,
  i32,
  i8,
  u8,
  u32,
  i4,  // two per byte, low nibble first
  u4,
  boolean,      // stored as bits, 8 per byte, least significant bit first
  complex_f32,  // real part, then imaginary part
  complex_f64,
};

inline constexpr DType f64 = DType::f64;
inline constexpr DType f32 = DType::f32;
inline constexpr DType f16 = DType::f16;
inline constexpr DType bf16 = DType::bf16;
inline constexpr DType e4m3 = DType::e4m3;
inline constexpr DType e5m2 = DType::e5m2;
inline constexpr DType e8m0 = DType::e8m0;
inline constexpr DType e2m1 = DType::e2m1;
inline constexpr DType i64 = DType::i64;
inline constexpr DType i32 = DType::i32;
inline constexpr DType i8 = DType::i8;
inline constexpr DType u8 = DType::u8;
inline constexpr DType u32 = DType::u32;
inline constexpr DType i4 = DType::i4;
inline constexpr DType u4 = DType::u4;
inline constexpr DType boolean = DType::boolean;
inline constexpr DType complex_f32 = DType::complex_f32;
inline constexpr DType complex_f64 = DType::complex_f64;

inline constexpr std::array kAllDTypes = {f64,  f32,  f16, bf16,    e4m3,        e5m2,
                                          e8m0, e2m1, i64, i32,     i8,          u8,
                                          u32,  i4,   u4,  boolean, complex_f32, complex_f64};

// The name used in text and JSON: "f32", "e4m3", "bool", ...
#pragma GCC visibility push(default)
std::string_view to_string(DType dtype);
#pragma GCC visibility pop

constexpr int bit_width(DType dtype) {
  switch (dtype) {
    case DType::complex_f64: return 128;
    case DType::f64:
    case DType::i64:
    case DType::complex_f32: return 64;
    case DType::f32:
    case DType::i32:
    case DType::u32: return 32;
    case DType::f16:
    case DType::bf16: return 16;
    case DType::e4m3:
    case DType::e5m2:
    case DType::e8m0:
    case DType::i8:
    case DType::u8: return 8;
    case DType::e2m1:
    case DType::i4:
    case DType::u4: return 4;
    case DType::boolean: return 1;
  }
  return 0;
}

constexpr bool is_floating(DType dtype) { return dtype <= DType::e2m1; }
constexpr bool is_integer(DType dtype) { return dtype >= DType::i64 && dtype <= DType::u4; }
constexpr bool is_complex(DType dtype) { return dtype >= DType::complex_f32; }

}  // namespace ashlar

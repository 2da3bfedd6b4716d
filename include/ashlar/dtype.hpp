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
  i64,
  i32,
  i8,
  u8,
  boolean,  // stored as bits, 8 to a byte, least significant bit first
};

inline constexpr DType f64 = DType::f64;
inline constexpr DType f32 = DType::f32;
inline constexpr DType f16 = DType::f16;
inline constexpr DType bf16 = DType::bf16;
inline constexpr DType e4m3 = DType::e4m3;
inline constexpr DType e5m2 = DType::e5m2;
inline constexpr DType i64 = DType::i64;
inline constexpr DType i32 = DType::i32;
inline constexpr DType i8 = DType::i8;
inline constexpr DType u8 = DType::u8;
inline constexpr DType boolean = DType::boolean;

inline constexpr std::array kAllDTypes = {f64, f32, f16, bf16, e4m3,   e5m2,
                                          i64, i32, i8,  u8,   boolean};

// The name used in text and JSON: "f32", "e4m3", "bool", ...
std::string_view to_string(DType dtype);

constexpr int bit_width(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::i64: return 64;
    case DType::f32:
    case DType::i32: return 32;
    case DType::f16:
    case DType::bf16: return 16;
    case DType::e4m3:
    case DType::e5m2:
    case DType::i8:
    case DType::u8: return 8;
    case DType::boolean: return 1;
  }
  return 0;
}

constexpr bool is_floating(DType dtype) { return dtype <= DType::e5m2; }
constexpr bool is_integer(DType dtype) { return dtype >= DType::i64 && dtype <= DType::u8; }

}  // namespace ashlar

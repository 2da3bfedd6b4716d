#include "legacy/host_scalar.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace ashlar::cudnn {

namespace {

template <class T>
T read(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

double from_f16(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  double size = 0.0;
  if (exponent == 31)
    size = fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : std::numeric_limits<double>::infinity();
  else if (exponent == 0)
    size = std::ldexp(fraction, -24);
  else
    size = std::ldexp(1024 + fraction, exponent - 25);
  return (bits & 0x8000) != 0 ? -size : size;
}

double from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

}  // namespace

double read_host_scalar(const void* from, DType dtype) {
  switch (dtype) {
    case DType::f64: return read<double>(from);
    case DType::f16: return from_f16(read<std::uint16_t>(from));
    case DType::bf16: return from_bf16(read<std::uint16_t>(from));
    default: return static_cast<double>(read<float>(from));
  }
}

}  // namespace ashlar::cudnn

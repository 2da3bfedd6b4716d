#include "mma_types.hpp"

#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>

namespace emulated {

namespace {

// A float of a sign, kExponent and kFraction bits. The largest exponent encodes infinity and NaN;
// e4m3 has no infinity, and NaN only where all bits are ones.
template <int kExponent, int kFraction>
float small_float(unsigned bits) {
  constexpr int kBias = (1 << (kExponent - 1)) - 1, kLargest = (1 << kExponent) - 1;
  const auto fraction = static_cast<int>(bits & ((1u << kFraction) - 1));
  const auto exponent = static_cast<int>(bits >> kFraction & kLargest);
  const float sign = bits >> (kExponent + kFraction) & 1 ? -1.f : 1.f;
  constexpr bool kHasInfinity = kExponent != 4;
  if (exponent == kLargest && (kHasInfinity || fraction == (1 << kFraction) - 1))
    return kHasInfinity && fraction == 0 ? sign * std::numeric_limits<float>::infinity()
                                         : std::numeric_limits<float>::quiet_NaN();
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), 1 - kBias - kFraction);
  return sign *
         std::ldexp(static_cast<float>(fraction + (1 << kFraction)), exponent - kBias - kFraction);
}

template <int kExponent, int kFraction>
struct Table {
  static constexpr std::size_t kCount = std::size_t{1} << (1 + kExponent + kFraction);
  std::array<float, kCount> values;
  Table() {
    for (std::size_t i = 0; i < kCount; ++i)
      values[i] = small_float<kExponent, kFraction>(static_cast<unsigned>(i));
  }
};
template <int kExponent, int kFraction>
const float* table() {
  static const auto made = std::make_unique<Table<kExponent, kFraction>>();
  return made->values.data();
}

float from_bits(std::uint32_t bits) {
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

template <class Word, class T, class Convert>
void decode_each(const void* from, unsigned count, T* to, const Convert& convert) {
  std::array<Word, 16> words;
  std::memcpy(words.data(), from, count * sizeof(Word));
  for (unsigned i = 0; i < count; ++i) to[i] = static_cast<T>(convert(words[i]));
}

}  // namespace

unsigned bytes_of(MmaType number) {
  switch (number) {
    case MmaType::f16:
    case MmaType::bf16: return 2;
    case MmaType::tf32: return 4;
    case MmaType::f64: return 8;
    default: return 1;
  }
}

void decode(MmaType number, const void* from, unsigned count, float* to) {
  switch (number) {
    case MmaType::bf16:
      decode_each<std::uint16_t>(from, count, to,
                                 [](std::uint32_t x) { return from_bits(x << 16); });
      break;
    case MmaType::f16:
      decode_each<std::uint16_t>(from, count, to,
                                 [t = table<5, 10>()](std::size_t x) { return t[x]; });
      break;
    case MmaType::tf32:
      decode_each<std::uint32_t>(from, count, to,
                                 [](std::uint32_t x) { return from_bits(x & ~0x1fffu); });
      break;
    case MmaType::e4m3:
      decode_each<std::uint8_t>(from, count, to,
                                [t = table<4, 3>()](std::size_t x) { return t[x]; });
      break;
    case MmaType::e5m2:
      decode_each<std::uint8_t>(from, count, to,
                                [t = table<5, 2>()](std::size_t x) { return t[x]; });
      break;
    default: std::abort();
  }
}

void decode(MmaType, const void* from, unsigned count, double* to) {
  decode_each<double>(from, count, to, [](double x) { return x; });
}

void decode(MmaType number, const void* from, unsigned count, unsigned* to) {
  if (number == MmaType::s8)
    decode_each<std::int8_t>(from, count, to, [](int x) { return static_cast<unsigned>(x); });
  else
    decode_each<std::uint8_t>(from, count, to, [](unsigned x) { return x; });
}

}  // namespace emulated

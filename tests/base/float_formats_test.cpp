// Narrow floating-point formats: every bit pattern, rounding, overflow.
#include "base/float_formats.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

namespace ashlar {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

struct Case {
  const char* name;
  const FloatFormat* format;
  int bits;
};

void PrintTo(const Case& c, std::ostream* stream) { *stream << c.name; }

class Format : public testing::TestWithParam<Case> {
 protected:
  const FloatFormat& format() const { return *GetParam().format; }
  std::uint32_t pattern_count() const { return 1u << GetParam().bits; }
};

INSTANTIATE_TEST_SUITE_P(All, Format,
                         testing::Values(Case{"f16", &kFormatF16, 16},
                                         Case{"bf16", &kFormatBf16, 16},
                                         Case{"e4m3", &kFormatE4m3, 8},
                                         Case{"e5m2", &kFormatE5m2, 8}),
                         [](const auto& row) { return std::string(row.param.name); });

TEST_P(Format, EveryPatternSurvives) {
  int nans = 0;
  for (std::uint32_t bits = 0; bits < pattern_count(); ++bits) {
    const double value = widen(format(), bits);
    if (std::isnan(value)) {
      ++nans;
      EXPECT_TRUE(std::isnan(widen(format(), narrow(format(), value)))) << bits;
    } else {
      ASSERT_EQ(narrow(format(), value), bits) << value;
    }
  }
  const int mantissas = 1 << format().mantissa_bits;
  EXPECT_EQ(nans, format().has_infinity ? 2 * (mantissas - 1) : 2);
}

TEST_P(Format, LargestIsTheLargestFinitePattern) {
  double largest = 0;
  for (std::uint32_t bits = 0; bits < pattern_count(); ++bits)
    if (std::isfinite(widen(format(), bits))) largest = std::max(largest, widen(format(), bits));
  EXPECT_EQ(largest, format().largest);
}

// All finite non-negative values by bit pattern: patterns of positive values are ordered like the
// values.
std::vector<double> positive_values(const FloatFormat& format, std::uint32_t patterns) {
  std::vector<double> values;
  for (std::uint32_t bits = 0; bits < patterns / 2; ++bits)
    if (std::isfinite(widen(format, bits))) values.push_back(widen(format, bits));
  return values;
}

// Nearest by searching the table; ties go to the even pattern.
std::uint32_t nearest(const std::vector<double>& values, double value) {
  const auto above = std::lower_bound(values.begin(), values.end(), value);
  const auto high = static_cast<std::uint32_t>(above - values.begin());
  if (above == values.end()) return high - 1;
  if (*above == value || high == 0) return high;
  const long double up = static_cast<long double>(*above) - value;
  const long double down = static_cast<long double>(value) - values[high - 1];
  if (up != down) return up < down ? high : high - 1;
  return high % 2 == 0 ? high : high - 1;
}

TEST_P(Format, RoundsToNearestEven) {
  const auto values = positive_values(format(), pattern_count());
  ASSERT_TRUE(std::is_sorted(values.begin(), values.end()));
  const std::uint32_t sign = pattern_count() / 2;
  for (std::size_t i = 0; i + 1 < values.size(); ++i) {
    const double tie = values[i] + (values[i + 1] - values[i]) / 2;
    for (double value : {std::nextafter(tie, 0.0), tie, std::nextafter(tie, kInf)}) {
      ASSERT_EQ(narrow(format(), value), nearest(values, value)) << value;
      ASSERT_EQ(narrow(format(), -value), nearest(values, value) | sign) << -value;
    }
  }
  std::mt19937_64 random(7);
  for (int i = 0; i < 20000; ++i) {
    const double exponent = std::uniform_real_distribution(-150.0, 130.0)(random);
    const double value = std::exp2(exponent);
    if (value <= format().largest) {
      ASSERT_EQ(narrow(format(), value), nearest(values, value)) << value;
    }
  }
}

TEST_P(Format, HandlesOutOfRangeValues) {
  const std::uint32_t largest = narrow(format(), format().largest);
  const std::uint32_t infinity = largest + 1;
  const double next = 2 * format().largest - widen(format(), largest - 1);
  const bool saturates = GetParam().bits == 8;
  // Half a step above the largest value still rounds down in e4m3: the next pattern would be odd.
  EXPECT_EQ(narrow(format(), std::nextafter((format().largest + next) / 2, 0.0)), largest);
  EXPECT_EQ(narrow(format(), next), saturates ? largest : infinity);
  EXPECT_EQ(narrow(format(), 1e300), saturates ? largest : infinity);
  EXPECT_EQ(narrow(format(), -1e300), (saturates ? largest : infinity) | pattern_count() / 2);
  EXPECT_EQ(narrow(format(), kInf), format().has_infinity ? infinity : largest);
  EXPECT_TRUE(std::isnan(widen(format(), narrow(format(), std::nan("")))));
}

TEST_P(Format, KeepsTheSignOfZero) {
  EXPECT_EQ(narrow(format(), 0.0), 0u);
  EXPECT_EQ(narrow(format(), -0.0), pattern_count() / 2);
  EXPECT_EQ(narrow(format(), -5e-324), pattern_count() / 2);
  EXPECT_TRUE(std::signbit(widen(format(), pattern_count() / 2)));
}

TEST(F16, AgreesWithTheCompiler) {
  const auto bits_of = [](_Float16 half) {
    std::uint16_t bits;
    std::memcpy(&bits, &half, sizeof bits);
    return bits;
  };
  std::mt19937_64 random(11);
  for (int i = 0; i < 200000; ++i) {
    std::uint64_t pattern = random();
    // Exponents around the range of f16, all mantissas.
    const std::uint64_t exponent = 1023 - 30 + random() % 50;
    pattern = (pattern & 0x800FFFFFFFFFFFFFu) | exponent << 52;
    const double value = std::bit_cast<double>(pattern);
    ASSERT_EQ(narrow(kFormatF16, value), bits_of(static_cast<_Float16>(value))) << value;
  }
  for (std::uint32_t bits = 0; bits < 0x7C00; ++bits) {
    const auto half = std::bit_cast<_Float16>(static_cast<std::uint16_t>(bits));
    ASSERT_EQ(widen(kFormatF16, bits), static_cast<double>(half));
  }
}

TEST(F16, RoundsOnceFromDouble) {
  // 1 + 2^-11 + 2^-40: double rounding through f32 would yield the tie 1 + 2^-11 and then 1.
  EXPECT_EQ(narrow(kFormatF16, 1.0 + 0x1p-11 + 0x1p-40), 0x3C01u);
  EXPECT_EQ(narrow(kFormatF16, 1.0 + 0x1p-11), 0x3C00u);
  EXPECT_EQ(narrow(kFormatF16, 65519.99), 0x7BFFu);
  EXPECT_EQ(narrow(kFormatF16, 65520.0), 0x7C00u);
}

TEST(Bf16, AgreesWithRoundingTheBitsOfFloat) {
  std::mt19937 random(5);
  for (int i = 0; i < 200000; ++i) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (!std::isfinite(value)) continue;
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t expected = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
    ASSERT_EQ(narrow(kFormatBf16, value), expected) << value;
  }
}

TEST(Fp8, KnownPatterns) {
  EXPECT_EQ(widen(kFormatE4m3, 0x7E), 448.0);
  EXPECT_EQ(widen(kFormatE4m3, 0x38), 1.0);
  EXPECT_EQ(widen(kFormatE4m3, 0x01), 0x1p-9);
  EXPECT_EQ(widen(kFormatE5m2, 0x7B), 57344.0);
  EXPECT_EQ(widen(kFormatE5m2, 0x3C), 1.0);
  EXPECT_EQ(widen(kFormatE5m2, 0x01), 0x1p-16);
  EXPECT_EQ(widen(kFormatE5m2, 0x7C), kInf);
  EXPECT_TRUE(std::isnan(widen(kFormatE4m3, 0x7F)));
}

}  // namespace
}  // namespace ashlar

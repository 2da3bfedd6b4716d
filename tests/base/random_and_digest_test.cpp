// Philox, Bernoulli decisions, digests and settings.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <set>

#include "base/digest.hpp"
#include "base/dropout.hpp"
#include "base/philox.hpp"
#include "base/settings.hpp"

namespace ashlar {
namespace {

TEST(Philox, KnownAnswer) {
  // The known-answer vector of Random123 for counter 0, key 0.
  constexpr std::array<std::uint32_t, 4> kZeros = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  static_assert(philox4x32(0, 0) == kZeros);
  EXPECT_EQ(philox4x32(0, 0), kZeros);
}

// A second implementation with a full 128-bit counter, to check the other published vectors.
std::array<std::uint32_t, 4> philox_full(std::array<std::uint32_t, 4> counter,
                                         std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const auto high = [](std::uint64_t a, std::uint64_t b) {
      return static_cast<std::uint32_t>(a * b >> 32);
    };
    const std::array<std::uint32_t, 4> next = {
        high(0xCD9E8D57, counter[2]) ^ counter[1] ^ key[0], 0xCD9E8D57 * counter[2],
        high(0xD2511F53, counter[0]) ^ counter[3] ^ key[1], 0xD2511F53 * counter[0]};
    counter = next;
    key = {key[0] + 0x9E3779B9, key[1] + 0xBB67AE85};
  }
  return counter;
}

TEST(Philox, AgreesWithTheFullGenerator) {
  constexpr std::uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox_full({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (std::array<std::uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox_full({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (std::array<std::uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
  for (std::uint64_t counter : {0x0ull, 0x1ull, 0x123456789abcdefull, ~0ull})
    for (std::uint64_t key : {0x0ull, 0x7ull, 0xfedcba9876543210ull})
      EXPECT_EQ(
          philox4x32(counter, key),
          philox_full({static_cast<std::uint32_t>(counter),
                       static_cast<std::uint32_t>(counter >> 32), 0, 0},
                      {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)}));
}

TEST(Philox, ElementsUseLanesThenCounters) {
  const auto first = philox4x32(40, 9), second = philox4x32(41, 9);
  for (std::uint64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(philox_element(9, 40, i), first[i]);
    EXPECT_EQ(philox_element(9, 40, i + 4), second[i]);
  }
}

TEST(Philox, UniformIsOpenAtBothEnds) {
  EXPECT_GT(uniform_open(0), 0.0f);
  EXPECT_LT(uniform_open(0xffffffff), 1.0f);
  EXPECT_EQ(uniform_open(0x80000000), 0.5f + 0x1p-24f);
}

TEST(Bernoulli, FollowsItsProbability) {
  int ones = 0, kept = 0;
  for (std::uint64_t i = 0; i < 20000; ++i) {
    EXPECT_FALSE(bernoulli(1, 0, i, 0.0));
    EXPECT_TRUE(bernoulli(1, 0, i, 1.0));
    ones += bernoulli(1, 0, i, 0.3);
    kept += dropout_keeps(1, 0, i, 0.3);
    EXPECT_EQ(dropout_keeps(1, 0, i, 0.3), bernoulli(1, 0, i, 1.0 - 0.3));
  }
  // Five standard deviations of a binomial with n = 20000, p = 0.3.
  EXPECT_NEAR(ones, 6000, 5 * 65);
  EXPECT_NEAR(kept, 14000, 5 * 65);
}

TEST(Digest, DependsOnEveryWordAndTheirOrder) {
  const auto of = [](std::initializer_list<std::uint64_t> words) {
    Digest digest;
    for (std::uint64_t word : words) digest.add(word);
    return digest.value();
  };
  const std::set<std::uint64_t> values = {of({}),     of({0}),    of({0, 0}), of({1}),
                                          of({1, 2}), of({2, 1}), of({1, 3}), of({~0ull})};
  EXPECT_EQ(values.size(), 8u);
  EXPECT_EQ(of({1, 2}), of({1, 2}));
}

TEST(Digest, OneBitChangesAboutHalf) {
  for (int bit = 0; bit < 64; ++bit) {
    Digest a, b;
    a.add(0x0123456789abcdefull);
    b.add(0x0123456789abcdefull ^ (1ull << bit));
    EXPECT_GT(std::popcount(a.value() ^ b.value()), 10) << bit;
  }
}

TEST(Digest, TextsAreDelimited) {
  Digest a, b;
  a.add("ab");
  a.add("c");
  b.add("a");
  b.add("bc");
  EXPECT_NE(a.value(), b.value());
}

TEST(Digest, IsStableAcrossVersions) {
  // Tuning records and caches are keyed by this value: it must not change by accident.
  Digest digest;
  digest.add("ashlar");
  digest.add(42u);
  EXPECT_EQ(digest.value(), 0x48408fe6b0cb8570u);
}

TEST(Settings, LevelsByName) {
  LogLevel level = LogLevel::info;
  EXPECT_TRUE(parse_log_level("explain", level));
  EXPECT_EQ(level, LogLevel::explain);
  EXPECT_TRUE(parse_log_level("off", level));
  EXPECT_EQ(level, LogLevel::off);
  EXPECT_FALSE(parse_log_level("verbose", level));
  EXPECT_FALSE(parse_log_level("", level));
  EXPECT_EQ(level, LogLevel::off);
}

}  // namespace
}  // namespace ashlar

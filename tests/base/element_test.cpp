// Element conversion for every dtype.
#include "base/element.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>
#include <vector>

namespace ashlar {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

template <class T>
T stored(DType dtype, double value) {
  T raw{};
  store_element(dtype, &raw, 0, value);
  return raw;
}

TEST(Element, EveryTypeKeepsSmallIntegers) {
  for (DType dtype : kAllDTypes) {
    if (is_complex(dtype)) continue;
    const double other = dtype == e8m0 ? 2.0 : 0.0;
    std::vector<std::uint64_t> memory(8);
    for (std::int64_t i = 0; i < 8; ++i)
      store_element(dtype, memory.data(), i, i % 2 ? 1.0 : other);
    for (std::int64_t i = 0; i < 8; ++i)
      EXPECT_EQ(load_element(dtype, memory.data(), i), i % 2 ? 1.0 : other) << to_string(dtype);
  }
}

TEST(Element, IndexCountsElements) {
  for (DType dtype : {f64, f32, f16, bf16, e4m3, e5m2, e8m0, i64, i32, i8, u8, u32}) {
    std::vector<unsigned char> memory(64, 0xAA);
    store_element(dtype, memory.data(), 2, 4.0);
    const int bytes = bit_width(dtype) / 8;
    for (int i = 0; i < 64; ++i)
      if (i < 2 * bytes || i >= 3 * bytes) {
        EXPECT_EQ(memory[static_cast<std::size_t>(i)], 0xAA) << to_string(dtype) << " byte " << i;
      }
    EXPECT_EQ(load_element(dtype, memory.data(), 2), 4.0);
  }
}

TEST(Element, FourBitTypesShareAByteLowHalfFirst) {
  std::vector<std::uint8_t> memory(2, 0x00);
  store_element(i4, memory.data(), 0, -1.0);
  store_element(i4, memory.data(), 3, 5.0);
  EXPECT_EQ(memory, (std::vector<std::uint8_t>{0x0F, 0x50}));
  store_element(u4, memory.data(), 1, 9.0);
  EXPECT_EQ(memory, (std::vector<std::uint8_t>{0x9F, 0x50}));
  EXPECT_EQ(load_element(i4, memory.data(), 1), -7.0);
  EXPECT_EQ(load_element(u4, memory.data(), 0), 15.0);
  EXPECT_EQ(load_element(e2m1, memory.data(), 3), 3.0);
}

TEST(Element, FourBitIntegersRoundToEvenAndSaturate) {
  EXPECT_EQ(round_to(i4, 2.5), 2.0);
  EXPECT_EQ(round_to(i4, 3.5), 4.0);
  EXPECT_EQ(round_to(i4, 7.6), 7.0);
  EXPECT_EQ(round_to(i4, -8.6), -8.0);
  EXPECT_EQ(round_to(i4, -kInfinite), -8.0);
  EXPECT_EQ(round_to(u4, 15.5), 15.0);
  EXPECT_EQ(round_to(u4, -3.0), 0.0);
  EXPECT_EQ(round_to(u32, 4294967295.0), 4294967295.0);
  EXPECT_EQ(round_to(u32, 1e10), 4294967295.0);
  EXPECT_EQ(round_to(u32, -1.0), 0.0);
  for (DType dtype : {i4, u4, u32}) EXPECT_EQ(round_to(dtype, std::nan("")), 0.0);
}

// Every bit pattern widens to the value defined by the format, and that value narrows back to it.
TEST(Element, EveryPatternOfTheNarrowTypes) {
  constexpr double kE2m1[] = {0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0};
  for (int pattern = 0; pattern < 16; ++pattern) {
    const auto byte = static_cast<std::uint8_t>(pattern);
    const double magnitude = kE2m1[pattern % 8];
    EXPECT_EQ(load_element(e2m1, &byte, 0), pattern < 8 ? magnitude : -magnitude) << pattern;
    EXPECT_EQ(std::signbit(load_element(e2m1, &byte, 0)), pattern >= 8) << pattern;
    EXPECT_EQ(load_element(i4, &byte, 0), pattern < 8 ? pattern : pattern - 16) << pattern;
    EXPECT_EQ(load_element(u4, &byte, 0), pattern) << pattern;
    for (DType dtype : {e2m1, i4, u4})
      EXPECT_EQ(stored<std::uint8_t>(dtype, load_element(dtype, &byte, 0)), byte)
          << to_string(dtype) << pattern;
  }
  for (int pattern = 0; pattern < 255; ++pattern) {
    const auto byte = static_cast<std::uint8_t>(pattern);
    EXPECT_EQ(load_element(e8m0, &byte, 0), std::ldexp(1.0, pattern - 127)) << pattern;
    EXPECT_EQ(stored<std::uint8_t>(e8m0, load_element(e8m0, &byte, 0)), byte) << pattern;
  }
  const std::uint8_t not_a_number = 255;
  EXPECT_TRUE(std::isnan(load_element(e8m0, &not_a_number, 0)));
  EXPECT_EQ(stored<std::uint8_t>(e8m0, std::nan("")), 255);
}

TEST(Element, E2m1RoundsToEvenAndSaturates) {
  EXPECT_EQ(round_to(e2m1, 0.25), 0.0);  // halfway: to the even pattern
  EXPECT_EQ(round_to(e2m1, 0.75), 1.0);
  EXPECT_EQ(round_to(e2m1, 1.25), 1.0);
  EXPECT_EQ(round_to(e2m1, 1.75), 2.0);
  EXPECT_EQ(round_to(e2m1, 2.5), 2.0);
  EXPECT_EQ(round_to(e2m1, 3.5), 4.0);
  EXPECT_EQ(round_to(e2m1, 5.0), 4.0);
  EXPECT_EQ(round_to(e2m1, 5.1), 6.0);
  EXPECT_EQ(round_to(e2m1, 1e9), 6.0);
  EXPECT_EQ(round_to(e2m1, -kInfinite), -6.0);
  EXPECT_EQ(round_to(e2m1, std::nan("")), 6.0);
}

TEST(Element, E8m0RoundsToNearestPowerOfTwo) {
  EXPECT_EQ(round_to(e8m0, 1.49), 1.0);
  EXPECT_EQ(round_to(e8m0, 1.5), 2.0);  // tie: the larger one
  EXPECT_EQ(round_to(e8m0, 3.1), 4.0);
  EXPECT_EQ(round_to(e8m0, 0.0), 0x1p-127);
  EXPECT_EQ(round_to(e8m0, 1e-300), 0x1p-127);
  EXPECT_EQ(round_to(e8m0, std::numeric_limits<double>::max()), 0x1p127);
  EXPECT_EQ(round_to(e8m0, kInfinite), 0x1p127);
  EXPECT_TRUE(std::isnan(round_to(e8m0, -1.0)));
}

TEST(Element, IntegersRoundToEvenAndSaturate) {
  EXPECT_EQ(stored<std::int8_t>(i8, 2.5), 2);
  EXPECT_EQ(stored<std::int8_t>(i8, 3.5), 4);
  EXPECT_EQ(stored<std::int8_t>(i8, -2.5), -2);
  EXPECT_EQ(stored<std::int8_t>(i8, 127.5), 127);
  EXPECT_EQ(stored<std::int8_t>(i8, -128.6), -128);
  EXPECT_EQ(stored<std::int8_t>(i8, kInfinite), 127);
  EXPECT_EQ(stored<std::uint8_t>(u8, 300.0), 255);
  EXPECT_EQ(stored<std::uint8_t>(u8, -1.0), 0);
  EXPECT_EQ(stored<std::int32_t>(i32, 2147483647.0), 2147483647);
  EXPECT_EQ(stored<std::int32_t>(i32, 1e18), 2147483647);
  EXPECT_EQ(stored<std::int32_t>(i32, -1e18), std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(stored<std::int64_t>(i64, 0x1p63), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(stored<std::int64_t>(i64, std::nextafter(0x1p63, 0.0)), 9223372036854774784);
  EXPECT_EQ(stored<std::int64_t>(i64, -0x1p63), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(stored<std::int64_t>(i64, -kInfinite), std::numeric_limits<std::int64_t>::min());
  for (DType dtype : {i64, i32, i8, u8}) EXPECT_EQ(round_to(dtype, std::nan("")), 0.0);
}

TEST(Element, BooleansAreBitsFromTheLeastSignificant) {
  std::vector<std::uint8_t> memory(2, 0);
  store_element(boolean, memory.data(), 0, 1.0);
  store_element(boolean, memory.data(), 9, -0.5);
  EXPECT_EQ(memory, (std::vector<std::uint8_t>{0x01, 0x02}));
  store_element(boolean, memory.data(), 0, 0.0);
  EXPECT_EQ(memory, (std::vector<std::uint8_t>{0x00, 0x02}));
  EXPECT_EQ(load_element(boolean, memory.data(), 9), 1.0);
  EXPECT_EQ(load_element(boolean, memory.data(), 8), 0.0);
  EXPECT_EQ(round_to(boolean, std::nan("")), 1.0);
}

TEST(Element, ThreadsMayStoreBitsOfOneByte) {
  constexpr std::int64_t kBits = 4096;
  constexpr int kThreads = 4;
  std::vector<std::uint8_t> memory(kBits / 8, 0xFF);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&memory, t] {
      for (int repeat = 0; repeat < 20; ++repeat)
        for (std::int64_t i = t; i < kBits; i += kThreads)
          store_element(boolean, memory.data(), i, i % 3 == 0 ? 1.0 : 0.0);
    });
  for (std::thread& thread : threads) thread.join();
  for (std::int64_t i = 0; i < kBits; ++i)
    ASSERT_EQ(load_element(boolean, memory.data(), i), i % 3 == 0 ? 1.0 : 0.0) << i;
}

TEST(Element, ThreadsMayStoreHalvesOfOneByte) {
  constexpr std::int64_t kCount = 1024;
  constexpr int kThreads = 4;
  std::vector<std::uint8_t> memory(kCount / 2, 0xFF);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&memory, t] {
      for (int repeat = 0; repeat < 20; ++repeat)
        for (std::int64_t i = t; i < kCount; i += kThreads)
          store_element(u4, memory.data(), i, static_cast<double>(i % 11));
    });
  for (std::thread& thread : threads) thread.join();
  for (std::int64_t i = 0; i < kCount; ++i)
    ASSERT_EQ(load_element(u4, memory.data(), i), static_cast<double>(i % 11)) << i;
}

TEST(Element, RoundToIsStoreThenLoad) {
  for (DType dtype : kAllDTypes)
    for (double value : {0.1, -1.0 / 3.0, 1e-7, 123.456, -7e4, 1e30}) {
      if (is_complex(dtype)) continue;  // its elements are two numbers
      std::uint64_t raw = 0;
      store_element(dtype, &raw, 0, value);
      const double rounded = round_to(dtype, value), loaded = load_element(dtype, &raw, 0);
      EXPECT_TRUE(rounded == loaded || (std::isnan(rounded) && std::isnan(loaded)))
          << to_string(dtype) << value;
    }
  EXPECT_EQ(round_to(f32, 0.1), static_cast<double>(0.1f));
  EXPECT_EQ(round_to(f64, 0.1), 0.1);
}

TEST(Element, LimitsDescribeTheType) {
  for (DType dtype : {f32, f16, bf16, e4m3, e5m2, e2m1}) {
    const double unit = unit_roundoff(dtype), step = smallest_step(dtype);
    EXPECT_EQ(round_to(dtype, 1.0 + 2 * unit), 1.0 + 2 * unit) << to_string(dtype);
    EXPECT_EQ(round_to(dtype, 1.0 + unit), 1.0) << to_string(dtype);
    EXPECT_EQ(round_to(dtype, step), step) << to_string(dtype);
    EXPECT_EQ(round_to(dtype, step / 2), 0.0) << to_string(dtype);
    EXPECT_EQ(round_to(dtype, largest_value(dtype)), largest_value(dtype)) << to_string(dtype);
    EXPECT_EQ(lowest_value(dtype), -largest_value(dtype));
  }
  EXPECT_EQ(unit_roundoff(f64), 0x1p-53);
  EXPECT_EQ(largest_value(u8), 255.0);
  EXPECT_EQ(lowest_value(i8), -128.0);
  EXPECT_EQ(lowest_value(boolean), 0.0);
  EXPECT_EQ(largest_value(e8m0), 0x1p127);
  EXPECT_EQ(lowest_value(i4), -8.0);
  EXPECT_EQ(largest_value(u4), 15.0);
  EXPECT_EQ(largest_value(u32), 4294967295.0);
  EXPECT_EQ(unit_roundoff(i32), 0.0);
  EXPECT_EQ(smallest_step(i32), 0.0);
}

}  // namespace
}  // namespace ashlar

#include "base/element.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>
#include <vector>

namespace ashlar {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

template <class T>
T stored(DType dtype, double value) {
  T raw{};
  store_element(dtype, &raw, 0, value);
  return raw;
}

TEST(Element, EveryTypeKeepsSmallIntegers) {
  for (DType dtype : kAllDTypes) {
    std::vector<std::uint64_t> memory(8);
    for (std::int64_t i = 0; i < 8; ++i) store_element(dtype, memory.data(), i, i % 2 ? 1.0 : 0.0);
    for (std::int64_t i = 0; i < 8; ++i)
      EXPECT_EQ(load_element(dtype, memory.data(), i), i % 2 ? 1.0 : 0.0) << to_string(dtype);
  }
}

TEST(Element, IndexCountsElements) {
  for (DType dtype : {f64, f32, f16, bf16, e4m3, e5m2, i64, i32, i8, u8}) {
    std::vector<unsigned char> memory(64, 0xAA);
    store_element(dtype, memory.data(), 2, 3.0);
    const int bytes = bit_width(dtype) / 8;
    for (int i = 0; i < 64; ++i)
      if (i < 2 * bytes || i >= 3 * bytes) {
        EXPECT_EQ(memory[static_cast<std::size_t>(i)], 0xAA) << to_string(dtype) << " byte " << i;
      }
    EXPECT_EQ(load_element(dtype, memory.data(), 2), 3.0);
  }
}

TEST(Element, IntegersRoundToEvenAndSaturate) {
  EXPECT_EQ(stored<std::int8_t>(i8, 2.5), 2);
  EXPECT_EQ(stored<std::int8_t>(i8, 3.5), 4);
  EXPECT_EQ(stored<std::int8_t>(i8, -2.5), -2);
  EXPECT_EQ(stored<std::int8_t>(i8, 127.5), 127);
  EXPECT_EQ(stored<std::int8_t>(i8, -128.6), -128);
  EXPECT_EQ(stored<std::int8_t>(i8, kInf), 127);
  EXPECT_EQ(stored<std::uint8_t>(u8, 300.0), 255);
  EXPECT_EQ(stored<std::uint8_t>(u8, -1.0), 0);
  EXPECT_EQ(stored<std::int32_t>(i32, 2147483647.0), 2147483647);
  EXPECT_EQ(stored<std::int32_t>(i32, 1e18), 2147483647);
  EXPECT_EQ(stored<std::int32_t>(i32, -1e18), std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(stored<std::int64_t>(i64, 0x1p63), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(stored<std::int64_t>(i64, std::nextafter(0x1p63, 0.0)), 9223372036854774784);
  EXPECT_EQ(stored<std::int64_t>(i64, -0x1p63), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(stored<std::int64_t>(i64, -kInf), std::numeric_limits<std::int64_t>::min());
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

TEST(Element, RoundToIsStoreThenLoad) {
  for (DType dtype : kAllDTypes)
    for (double value : {0.1, -1.0 / 3.0, 1e-7, 123.456, -7e4, 1e30}) {
      std::uint64_t raw = 0;
      store_element(dtype, &raw, 0, value);
      EXPECT_EQ(round_to(dtype, value), load_element(dtype, &raw, 0)) << to_string(dtype) << value;
    }
  EXPECT_EQ(round_to(f32, 0.1), static_cast<double>(0.1f));
  EXPECT_EQ(round_to(f64, 0.1), 0.1);
}

TEST(Element, LimitsDescribeTheType) {
  for (DType dtype : {f32, f16, bf16, e4m3, e5m2}) {
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
  EXPECT_EQ(unit_roundoff(i32), 0.0);
  EXPECT_EQ(smallest_step(i32), 0.0);
}

}  // namespace
}  // namespace ashlar

// Row conversions against the exact conversions of base/element.hpp, bitwise.
#include "cpu/kernels/convert.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include "base/element.hpp"

namespace ashlar::cpu {
namespace {

constexpr std::int64_t kStrides[] = {1, 0, 3, -2};
constexpr std::int64_t kCounts[] = {0, 1, 7, 16, 33, 300};

bool same(double a, double b) {
  return a == b ? std::signbit(a) == std::signbit(b) : std::isnan(a) && std::isnan(b);
}

template <class T>
void check_loads(DType dtype) {
  std::vector<std::uint8_t> bytes(16384);
  std::uint32_t state = 12345;
  for (auto& byte : bytes)
    byte = static_cast<std::uint8_t>((state = state * 1664525 + 1013904223) >> 24);
  for (const std::int64_t stride : kStrides)
    for (const std::int64_t count : kCounts) {
      const std::int64_t start = stride < 0 ? 700 : 5;
      std::vector<T> row(static_cast<std::size_t>(count) + 1, T{42});
      load_row<T>(dtype)(bytes.data(), start, stride, count, row.data());
      for (std::int64_t i = 0; i < count; ++i) {
        const auto expected = static_cast<T>(load_element(dtype, bytes.data(), start + i * stride));
        ASSERT_TRUE(same(row[static_cast<std::size_t>(i)], expected))
            << to_string(dtype) << " stride " << stride << " element " << i << ": "
            << row[static_cast<std::size_t>(i)] << ", expected " << expected;
      }
      EXPECT_EQ(row.back(), T{42}) << "wrote past the row";
    }
}

TEST(Convert, LoadsEveryTypeWithEveryStride) {
  for (DType dtype : kAllDTypes) {
    if (is_complex(dtype)) continue;
    check_loads<float>(dtype);
    check_loads<double>(dtype);
  }
}

TEST(Convert, LoadsEveryPatternOfSmallTypes) {
  for (DType dtype : {f16, bf16, e4m3, e5m2, e8m0, e2m1, i8, u8, i4, u4}) {
    const std::int64_t patterns = std::int64_t{1} << bit_width(dtype);
    std::vector<std::uint16_t> storage(65536);
    for (std::int64_t i = 0; i < patterns; ++i) {
      if (bit_width(dtype) == 16)
        storage[static_cast<std::size_t>(i)] = static_cast<std::uint16_t>(i);
      else if (bit_width(dtype) == 4)
        reinterpret_cast<std::uint8_t*>(storage.data())[i / 2] |=
            static_cast<std::uint8_t>(i << i % 2 * 4);
      else
        reinterpret_cast<std::uint8_t*>(storage.data())[i] = static_cast<std::uint8_t>(i);
    }
    std::vector<float> row(static_cast<std::size_t>(patterns));
    load_row<float>(dtype)(storage.data(), 0, 1, patterns, row.data());
    for (std::int64_t i = 0; i < patterns; ++i)
      ASSERT_TRUE(same(row[static_cast<std::size_t>(i)], load_element(dtype, storage.data(), i)))
          << to_string(dtype) << " pattern " << i;
  }
}

// The boundary values of a conversion and their neighbours.
template <class T>
std::vector<T> hard_values(DType dtype) {
  std::vector<double> centres = {0.0,    0.5,   1.0,   1.5,  2.5,          126.5,        127.5,
                                 128.5,  254.5, 255.5, 1e9,  2147483647.0, 2147483648.0, 4e9,
                                 9.3e18, 1e30,  3e38,  1e-3, 1e-30};
  for (double base : {largest_value(dtype), smallest_step(dtype)})
    for (double factor : {0.25, 0.5, 0.75, 1.0, 1.0625, 1.5, 2.0, 2.5, 3.5, 7.5, 9.0})
      centres.push_back(base * factor);
  for (int exponent = -30; exponent < 20; ++exponent)
    for (double fraction : {1.0, 1.0625, 1.125, 1.1875, 1.0 + 0x1p-11, 1.0 + 3 * 0x1p-11,
                            1.0 + 0x1p-8, 1.0 + 3 * 0x1p-8})
      centres.push_back(std::ldexp(fraction, exponent));
  std::vector<T> values;
  const T infinity = std::numeric_limits<T>::infinity();
  for (double centre : centres) {
    const auto value = static_cast<T>(centre);
    for (T near : {std::nextafter(value, -infinity), value, std::nextafter(value, infinity)}) {
      values.push_back(near);
      values.push_back(-near);
    }
  }
  values.insert(values.end(), {infinity, -infinity, std::numeric_limits<T>::quiet_NaN()});
  return values;
}

template <class T>
void check_stores(DType dtype) {
  const std::vector<T> values = hard_values<T>(dtype);
  const auto count = static_cast<std::int64_t>(values.size());
  for (const std::int64_t stride : {1, 3}) {
    const auto bytes = static_cast<std::size_t>(8 * (count * stride + 16));
    std::vector<std::uint8_t> stored(bytes, 0xA5), expected(bytes, 0xA5);
    store_row<T>(dtype)(values.data(), count, stored.data(), 5, stride);
    for (std::int64_t i = 0; i < count; ++i)
      store_element(dtype, expected.data(), 5 + i * stride,
                    static_cast<double>(values[static_cast<std::size_t>(i)]));
    for (std::int64_t i = 0; i < count; ++i) {
      const double a = load_element(dtype, stored.data(), 5 + i * stride);
      const double b = load_element(dtype, expected.data(), 5 + i * stride);
      ASSERT_TRUE(same(a, b)) << to_string(dtype) << " of " << values[static_cast<std::size_t>(i)]
                              << ": " << a << ", expected " << b;
    }
    // Also the bytes between and around the elements; NaN payloads may differ.
    if (!is_floating(dtype)) {
      EXPECT_EQ(stored, expected) << to_string(dtype) << " stride " << stride;
    }
  }
}

TEST(Convert, StoresRoundSaturateAndKeepNeighbours) {
  for (DType dtype : kAllDTypes) {
    if (is_complex(dtype)) continue;
    check_stores<float>(dtype);
    check_stores<double>(dtype);
  }
}

template <class T>
void check_bit_loads() {
  // The last bit that is read is in the last byte of the memory.
  for (std::int64_t offset = 0; offset < 18; ++offset)
    for (std::int64_t count = 0; count < 70; ++count) {
      std::vector<std::uint8_t> bytes(static_cast<std::size_t>((offset + count + 7) / 8));
      for (std::size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = static_cast<std::uint8_t>(0xB7 * (i + 1) + 0x1D);
      std::vector<T> loaded(static_cast<std::size_t>(count) + 1, T{-1});
      load_row<T>(boolean)(bytes.data(), offset, 1, count, loaded.data());
      for (std::int64_t i = 0; i < count; ++i)
        ASSERT_EQ(loaded[static_cast<std::size_t>(i)],
                  load_element(boolean, bytes.data(), offset + i))
            << offset << " + " << i << " of " << count;
      ASSERT_EQ(loaded.back(), T{-1});
    }
}

TEST(Convert, LoadsBitsFromEveryPosition) {
  check_bit_loads<float>();
  check_bit_loads<double>();
}

TEST(Convert, BitsOfOneByteFromTwoThreads) {
  std::vector<std::uint8_t> bytes(65, 0xFF);
  const std::vector<float> zeros(256, 0.0f), ones(256, 1.0f);
  for (int round = 0; round < 200; ++round) {
    std::thread left([&] { store_row<float>(boolean)(zeros.data(), 253, bytes.data(), 0, 1); });
    std::thread right([&] { store_row<float>(boolean)(ones.data(), 256, bytes.data(), 253, 1); });
    left.join();
    right.join();
    for (std::int64_t i = 0; i < 509; ++i)
      ASSERT_EQ(load_element(boolean, bytes.data(), i), i < 253 ? 0.0 : 1.0) << i;
  }
}

TEST(Convert, HalvesOfOneByteFromTwoThreads) {
  std::vector<std::uint8_t> bytes(256, 0x55);
  const std::vector<float> threes(256, 3.0f), fives(256, 5.0f);
  for (DType dtype : {u4, i4})
    for (int round = 0; round < 200; ++round) {
      std::thread left([&] { store_row<float>(dtype)(threes.data(), 253, bytes.data(), 0, 1); });
      std::thread right([&] { store_row<float>(dtype)(fives.data(), 256, bytes.data(), 253, 1); });
      left.join();
      right.join();
      for (std::int64_t i = 0; i < 509; ++i)
        ASSERT_EQ(load_element(dtype, bytes.data(), i), i < 253 ? 3.0 : 5.0) << i;
    }
}

}  // namespace
}  // namespace ashlar::cpu

// The non-GEMM steps of attention (kernels/attention_tile.hpp) against the C library.
#include "cpu/kernels/attention_tile.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "cpu/target.hpp"

namespace ashlar::cpu {
namespace {

// Row lengths around whole vectors.
constexpr std::int64_t kColumnCounts[] = {1, 7, 15, 16, 17, 31, 33, 128};

TEST(AttentionTile, WeightsAreExponentials) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const bool has_fused = target().vector_bytes >= 32;  // AVX2 and better
  for (std::int64_t count : kColumnCounts) {
    const auto n = static_cast<std::size_t>(count);
    std::vector<float> products(n + 1, 77.0f), output(64, 1.0f);
    for (std::size_t i = 0; i < n; ++i)  // scores from 0 down to -43.5
      products[i] = -87.0f * static_cast<float>(i) / static_cast<float>(n);
    const std::vector<float> before = products;
    float largest = -kInfinity, sum = 0.0f;
    ASSERT_TRUE(attention_tile_ops<float>().softmax_step(
        {1, products.data(), count, count, 0.5f, &largest, &sum, output.data(), 64}));
    EXPECT_EQ(largest, 0.0f);
    double total = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double argument = 0.5 * before[i], expected = std::exp(argument);
      // Without FMA the error of the argument reduction grows with the argument, 2^-24 each.
      const double tolerance = has_fused ? 4e-7 : 4e-7 - 0x1p-24 * argument;
      EXPECT_NEAR(products[i], expected, tolerance * expected) << count << " " << i;
      total += expected;
    }
    EXPECT_NEAR(sum, total, 1e-6 * total);
    EXPECT_EQ(products[n], 77.0f) << "past the end";
    EXPECT_EQ(output[0], 1.0f) << "nothing was there to be rescaled";
  }
}

TEST(AttentionTile, ANewMaximumRescalesTheAccumulators) {
  std::vector<float> products = {3.0f, 1.0f}, output(64, 2.0f);
  float largest = 1.0f, sum = 4.0f;
  ASSERT_TRUE(attention_tile_ops<float>().softmax_step(
      {1, products.data(), 2, 2, 1.0f, &largest, &sum, output.data(), 64}));
  EXPECT_EQ(largest, 3.0f);
  EXPECT_NEAR(sum, 4.0 * std::exp(-2.0) + 1.0 + std::exp(-2.0), 1e-6);
  for (float value : output) EXPECT_NEAR(value, 2.0 * std::exp(-2.0), 1e-6);
}

TEST(AttentionTile, NonFiniteProductsAreLeftAlone) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (float bad : {kInfinity, -kInfinity, std::nanf("")})
    for (std::int64_t count : kColumnCounts)
      for (std::int64_t at : {std::int64_t{0}, count / 2, count - 1}) {
        std::vector<float> products(static_cast<std::size_t>(count), 0.5f), output(64, 1.0f);
        products[static_cast<std::size_t>(at)] = bad;
        float largest = 0.0f, sum = 0.0f;
        EXPECT_FALSE(attention_tile_ops<float>().softmax_step(
            {1, products.data(), count, count, 1.0f, &largest, &sum, output.data(), 64}));
        EXPECT_EQ(sum, 0.0f);
        if (count > 1) {
          EXPECT_EQ(products[at == 0 ? 1 : 0], 0.5f);
        }
      }
}

TEST(AttentionTile, GradientsOfAPanel) {
  constexpr std::int64_t kColumns = 64, kRows = 5;
  std::vector<float> p(kColumns * kRows), ds(kColumns * kRows), stats(kColumns), delta(kColumns),
      first(kColumns), end(kColumns);
  const auto product = [](std::int64_t i) { return 0.01f * static_cast<float>(i % 97) - 0.4f; };
  for (std::int64_t i = 0; i < kColumns; ++i) {
    const auto at = static_cast<std::size_t>(i);
    stats[at] = 0.3f + 0.01f * static_cast<float>(i), delta[at] = 0.02f * static_cast<float>(i);
    first[at] = static_cast<float>(i % 3), end[at] = static_cast<float>(9 + i % 4);
  }
  for (bool masked : {false, true}) {
    for (std::int64_t i = 0; i < kColumns * kRows; ++i)
      p[static_cast<std::size_t>(i)] = product(i), ds[static_cast<std::size_t>(i)] = product(3 * i);
    attention_tile_ops<float>().gradient({p.data(), ds.data(), kRows, kColumns, 2.0f, stats.data(),
                                          delta.data(), masked ? first.data() : nullptr, end.data(),
                                          7.0f});
    for (std::int64_t r = 0; r < kRows; ++r)
      for (std::int64_t i = 0; i < kColumns; ++i) {
        const auto column = static_cast<std::size_t>(i);
        const auto at = static_cast<std::size_t>(r * kColumns + i);
        const float key = 7.0f + static_cast<float>(r);
        const bool seen = !masked || (key >= first[column] && key < end[column]);
        const double weight =
            seen ? std::exp(2.0 * product(r * kColumns + i) - double{stats[column]}) : 0.0;
        EXPECT_NEAR(p[at], weight, 4e-7 * weight);
        EXPECT_NEAR(ds[at], weight * (double{product(3 * (r * kColumns + i))} - delta[column]),
                    1e-6);
      }
  }
}

TEST(AttentionTile, DotsOfRows) {
  for (std::int64_t rows : {1, 2, 3, 8})
    for (std::int64_t keys : {1, 4, 5, 11})
      for (std::int64_t width : {1, 15, 16, 40, 128}) {
        std::vector<float> q(static_cast<std::size_t>(rows * width)),
            k(static_cast<std::size_t>(keys * width)),
            result(static_cast<std::size_t>(rows * keys));
        for (std::size_t i = 0; i < q.size(); ++i) q[i] = static_cast<float>(i % 7) - 3.0f;
        for (std::size_t i = 0; i < k.size(); ++i) k[i] = static_cast<float>(i % 5) - 2.0f;
        attention_tile_ops<float>().dots(
            {q.data(), rows, width, k.data(), keys, width, width, result.data(), keys});
        for (std::int64_t r = 0; r < rows; ++r)
          for (std::int64_t j = 0; j < keys; ++j) {
            float expected = 0;  // integers: exact in any order
            for (std::int64_t l = 0; l < width; ++l)
              expected += q[static_cast<std::size_t>(r * width + l)] *
                          k[static_cast<std::size_t>(j * width + l)];
            EXPECT_EQ(result[static_cast<std::size_t>(r * keys + j)], expected);
          }
      }
}

}  // namespace
}  // namespace ashlar::cpu

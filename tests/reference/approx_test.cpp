// The error analysis: bounds hold for f32 arithmetic and are not excessively wide.
#include "reference/approx.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <vector>

#include "reference/accumulator.hpp"
#include "reference/dense_operands.hpp"

namespace ashlar::reference {
namespace {

using Single = Approx<Arithmetic::f32>;
using Double = Approx<Arithmetic::f64>;
constexpr double kInf = std::numeric_limits<double>::infinity();

std::vector<float> random_floats(std::size_t n, unsigned seed, float low = -1.0f,
                                 float high = 1.0f) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(low, high);
  std::vector<float> values(n);
  for (float& value : values) value = uniform(generator);
  return values;
}

float pairwise_sum(const float* terms, std::size_t n) {
  if (n == 1) return terms[0];
  return pairwise_sum(terms, n / 2) + pairwise_sum(terms + n / 2, n - n / 2);
}

float strided_sum(const std::vector<float>& terms, std::size_t lanes) {
  std::vector<float> partial(lanes, 0.0f);
  for (std::size_t i = 0; i < terms.size(); ++i) partial[i % lanes] += terms[i];
  return pairwise_sum(partial.data(), lanes);
}

TEST(Approx, DotProductBoundHoldsForEveryOrder) {
  for (std::size_t n : {1u, 2u, 7u, 64u, 1000u, 20000u}) {
    double worst_ratio = 0.0;
    for (unsigned seed = 0; seed < 20; ++seed) {
      const std::vector<float> a = random_floats(n, 2 * seed + 1),
                               b = random_floats(n, 2 * seed + 2);
      Accumulator<Single> exact;
      std::vector<float> products(n);
      for (std::size_t i = 0; i < n; ++i) {
        exact.add(Single(a[i]) * Single(b[i]));
        products[i] = a[i] * b[i];
      }
      const Single bound = exact.total();
      std::vector<float> reversed(products.rbegin(), products.rend()), sorted = products;
      std::sort(sorted.begin(), sorted.end());
      for (float result : {strided_sum(products, 1), strided_sum(reversed, 1),
                           strided_sum(sorted, 1), strided_sum(products, 8),
                           strided_sum(products, 64), pairwise_sum(products.data(), n)}) {
        const double error = std::fabs(static_cast<double>(result) - bound.value);
        EXPECT_LE(error, bound.error) << "n = " << n;
        worst_ratio = std::max(worst_ratio, error / bound.error);
      }
    }
    // Adding in sorted order is nearly the worst case; the bound is within this factor of it.
    EXPECT_GT(worst_ratio, 1.0 / 50.0) << "n = " << n << ": the bound is needlessly wide";
  }
}

TEST(Approx, SumBoundHoldsForPositiveTerms) {
  const std::vector<float> terms = random_floats(50000, 9, 0.0f, 1.0f);
  Accumulator<Single> exact;
  for (float term : terms) exact.add(Single(term));
  const Single bound = exact.total();
  const double error = std::fabs(static_cast<double>(strided_sum(terms, 1)) - bound.value);
  EXPECT_LE(error, bound.error);
  EXPECT_LT(bound.error / bound.value, 1e-4);  // 1342 units of 2^-24
}

TEST(Approx, IntegerSumsAreExact) {
  Accumulator<Single> sum;
  for (int i = -1000; i < 3000; ++i) sum.add(Single(2.0) * Single(i));
  EXPECT_EQ(sum.total().value, 2.0 * (4000.0 * 999.5));
  EXPECT_EQ(sum.total().error, 0.0);
  sum.add(Single(0x1p24));
  EXPECT_GT(sum.total().error, 0.0);
}

struct FunctionCase {
  const char* name;
  float low, high;
  std::function<float(float)> in_float;
  std::function<Single(Single)> bounded;
  double widest_factor;  // bound / worst observed error may not exceed this
};

class Functions : public testing::TestWithParam<FunctionCase> {};

TEST_P(Functions, BoundF32Results) {
  const FunctionCase& test = GetParam();
  double worst_ratio = 0.0;
  for (float x : random_floats(20000, 5, test.low, test.high)) {
    const Single bound = test.bounded(Single(x));
    const double error = std::fabs(static_cast<double>(test.in_float(x)) - bound.value);
    ASSERT_LE(error, bound.error) << test.name << "(" << x << ")";
    worst_ratio = std::max(worst_ratio, error / bound.error);
  }
  EXPECT_GT(worst_ratio, 1.0 / test.widest_factor) << test.name << ": the bound is needlessly wide";
}

INSTANTIATE_TEST_SUITE_P(
    All, Functions,
    testing::Values(
        FunctionCase{"exp", -20, 20, [](float x) { return std::exp(x); },
                     [](Single x) { return exp(x); }, 20},
        FunctionCase{"exp2 form", -20, 20, [](float x) { return std::exp2(x * 1.44269504f); },
                     [](Single x) { return exp(x); }, 20},
        FunctionCase{"expm1", -3, 3, [](float x) { return std::exp(x) - 1.0f; },
                     [](Single x) { return expm1(x); }, 20},
        FunctionCase{"log", 0.01f, 10, [](float x) { return std::log(x); },
                     [](Single x) { return log(x); }, 20},
        FunctionCase{"sqrt", 0, 10, [](float x) { return std::sqrt(x); },
                     [](Single x) { return sqrt(x); }, 20},
        FunctionCase{"rsqrt", 0.01f, 10, [](float x) { return 1.0f / std::sqrt(x); },
                     [](Single x) { return rsqrt(x); }, 20},
        FunctionCase{"tanh", -5, 5, [](float x) { return std::tanh(x); },
                     [](Single x) { return tanh(x); }, 20},
        FunctionCase{"erf", -4, 4, [](float x) { return std::erf(x); },
                     [](Single x) { return erf(x); }, 20},
        FunctionCase{"sigmoid", -80, 80, [](float x) { return 1.0f / (1.0f + std::exp(-x)); },
                     [](Single x) { return sigmoid(x); }, 40},
        FunctionCase{"softplus", -20, 20, [](float x) { return std::log1p(std::exp(x)); },
                     [](Single x) { return softplus(x); }, 40},
        FunctionCase{"sin", -30, 30, [](float x) { return std::sin(x); },
                     [](Single x) { return sin(x); }, 100},
        FunctionCase{"cos", -30, 30, [](float x) { return std::cos(x); },
                     [](Single x) { return cos(x); }, 100},
        FunctionCase{"tan", -1.5f, 1.5f, [](float x) { return std::tan(x); },
                     [](Single x) { return tan(x); }, 100},
        FunctionCase{"pow", 0.1f, 4, [](float x) { return std::exp(2.5f * std::log(x)); },
                     [](Single x) { return pow(x, Single(2.5)); }, 40},
        FunctionCase{"atan2", -4, 4, [](float x) { return std::atan2(x, 0.5f); },
                     [](Single x) { return atan2(x, Single(0.5)); }, 20},
        FunctionCase{"divide", 0.1f, 4, [](float x) { return 1.0f / x; },
                     [](Single x) { return Single(1.0) / x; }, 20},
        FunctionCase{
            "chain", -2, 2,
            [](float x) { return (std::exp(x) - 1.0f) / (std::sqrt(x * x + 1.0f) + 0.3f); },
            [](Single x) { return (exp(x) - 1.0) / (sqrt(x * x + 1.0) + 0.3); }, 20}),
    [](const auto& param_info) {
      std::string name = param_info.param.name;
      std::replace(name.begin(), name.end(), ' ', '_');
      return name;
    });

TEST(Approx, ErrorsOfInputsPropagate) {
  const Single a = Single::with_error(2.0, 0.1), b = Single::with_error(-3.0, 0.2);
  EXPECT_NEAR((a + b).error, 0.3, 1e-6);
  EXPECT_NEAR((a - b).error, 0.3, 1e-6);
  EXPECT_NEAR((a * b).error, 2.0 * 0.2 + 3.0 * 0.1 + 0.02, 1e-5);
  EXPECT_GE((a / b).error, std::fabs(2.1 / -2.8 - 2.0 / -3.0));
  EXPECT_LE((a / b).error, 0.1);
  EXPECT_NEAR(exp(a).error, std::exp(2.1) - std::exp(2.0), 1e-4);
  EXPECT_EQ(absolute(b).error, 0.2);
  EXPECT_EQ((Single(1.0) / Single::with_error(0.1, 0.2)).error, kInf);
}

// 0.5 + 0.46 is rounded, not 0.04.
TEST(Approx, RoundingIsRelativeToTheLargestPossibleResult) {
  const Single difference = Single::with_error(-0.5, 0.5) + Single::with_error(0.46, 0.0);
  EXPECT_GE(difference.error, 0.5 + 0x1p-24 * 0.54);
  EXPECT_LE(difference.error, 0.5 + 0x1p-24 * 0.55);
}

TEST(Approx, ExactArithmeticStaysExact) {
  EXPECT_EQ((Single(3.0) * Single(0.25) + Single(7.0)).error, 0.0);
  EXPECT_GT((Single(1.0) + Single(0x1p-30)).error, 0.0);
  EXPECT_GT(Single(0.1).error, 0.0);  // 0.1 is not representable in f32
  EXPECT_EQ(Double(0.1).error, 0.0);
}

TEST(Approx, ResultsNearDiscontinuitiesAreUnknown) {
  const Single near_two = Single::with_error(1.9999, 0.001);
  EXPECT_EQ(floor(near_two).error, 1.0);
  EXPECT_EQ(floor(Single::with_error(1.5, 0.001)).error, 0.0);
  EXPECT_EQ(floor(Single(2.0)).error, 0.0);
  EXPECT_EQ(less(near_two, Single(2.0)).error, 1.0);
  EXPECT_EQ(less(near_two, Single(3.0)).error, 0.0);
  EXPECT_EQ(equal(Single(2.0), Single(2.0)).error, 0.0);
  EXPECT_EQ(select(less(near_two, Single(2.0)), Single(10.0), Single(4.0)).error, 6.0);
  EXPECT_EQ(select(less(near_two, Single(3.0)), Single(10.0), Single(4.0)).error, 0.0);
  EXPECT_EQ(fmod(Single(6.0), Single(3.0)).error, 0.0);
  EXPECT_GE(fmod(Single::with_error(6.0, 0.01), Single(3.0)).error, 3.0);
  EXPECT_EQ(maximum(Single::with_error(1.0, 0.1), Single::with_error(0.95, 0.2)).error, 0.2);
  EXPECT_EQ(maximum(Single::with_error(1.0, 0.1), Single::with_error(0.5, 0.2)).error, 0.1);
}

TEST(Approx, SignsOfZerosAreNotPromised) {
  EXPECT_EQ(rsqrt(Single(-0.0)).error, kInf);
  EXPECT_EQ(rsqrt(Single(0.0)).error, kInf);
  EXPECT_EQ(pow(Single(-0.0), Single(-1.0)).error, kInf);
  EXPECT_EQ(pow(Single(-0.0), Single(-2.0)).error, 0.0);
}

TEST(Approx, PowersThatMayBeNumbers) {
  const double nan = std::nan("");
  EXPECT_EQ(pow(Single::with_error(0.95, 0.1), Single(nan)).error, kInf);  // 1 ^ NaN = 1
  EXPECT_EQ(pow(Single::with_error(0.8, 0.1), Single(nan)).error, 0.0);
  EXPECT_EQ(pow(Single(nan), Single::with_error(0.1, 0.2)).error, kInf);  // NaN ^ 0 = 1
  EXPECT_EQ(pow(Single(nan), Single::with_error(0.3, 0.2)).error, 0.0);
  EXPECT_EQ(pow(Single(-2.0), Single::with_error(0.9, 0.2)).error, kInf);  // (-2) ^ 1 = -2
  EXPECT_EQ(pow(Single(-2.0), Single::with_error(0.5, 0.2)).error, 0.0);
  EXPECT_EQ(pow(Single(-2.0), Single(0.5)).error, 0.0);
}

TEST(Approx, IntegerQuotientsCarryErrors) {
  using Integer = Approx<Arithmetic::integer>;
  EXPECT_EQ(truncated_quotient(Integer(151.0), Integer(2.0)).value, 75.0);
  EXPECT_EQ(truncated_quotient(Integer(151.0), Integer(2.0)).error, 0.0);
  EXPECT_EQ(truncated_quotient(Integer::with_error(151.0, 1.0), Integer(2.0)).error, 1.0);
  EXPECT_EQ(truncated_quotient(Integer::with_error(16.0, 1.0), Integer(5.0)).error, 0.0);
  EXPECT_EQ(truncated_quotient(Integer(12.0), Integer::with_error(3.0, 1.0)).error, 2.0);
  EXPECT_EQ(truncated_quotient(Integer(12.0), Integer::with_error(1.0, 1.0)).error, kInf);
  EXPECT_EQ(truncated_quotient(Integer(12.0), Integer(0.0)).value, 0.0);
}

TEST(Approx, InfinitiesAndNaNsAreCertainUntilSomethingOverflows) {
  const Single infinity(kInf);
  EXPECT_EQ((infinity + Single(1.0)).value, kInf);
  EXPECT_EQ((infinity + Single(1.0)).error, 0.0);
  EXPECT_TRUE(std::isnan((infinity - infinity).value));
  EXPECT_EQ((infinity - infinity).error, 0.0);
  // The zero may have either sign, and so has the infinity; 0 / 0 has none.
  EXPECT_EQ((Single(1.0) / Single(0.0)).error, kInf);
  EXPECT_TRUE(std::isnan((Single(0.0) / Single(0.0)).value));
  EXPECT_EQ((Single(0.0) / Single(0.0)).error, 0.0);
  // A product with NaN is NaN.
  EXPECT_TRUE(std::isnan((Single::with_error(0.5, 0.1) * Single(std::nan(""))).value));
  EXPECT_EQ((Single::with_error(0.5, 0.1) * Single(std::nan(""))).error, 0.0);
  EXPECT_EQ((Single(1.0) / infinity).value, 0.0);
  EXPECT_LT((Single(1.0) / infinity).error, 1e-37);
  EXPECT_EQ((Single(1e30) * Single(1e30)).error, kInf);
  EXPECT_EQ(exp(Single(-kInf)).value, 0.0);
  EXPECT_TRUE(std::isnan(maximum(Single(kInf), Single(std::nan(""))).value));
}

TEST(Rounding, SpreadCoversEveryNumberInTheInterval) {
  std::mt19937_64 generator(3);
  std::uniform_real_distribution<double> uniform(-1.0, 1.0);
  for (DType dtype : {f32, f16, bf16, e4m3, e5m2, i32, i8, u8}) {
    for (int i = 0; i < 5000; ++i) {
      const double scale = std::exp2(8.0 * uniform(generator));
      const double value = scale * uniform(generator),
                   error = std::fabs(0.01 * scale * uniform(generator));
      const double spread = rounding_spread(dtype, value, error);
      for (double t : {-1.0, -0.3, 0.0, 0.6, 1.0})
        EXPECT_LE(std::fabs(round_to(dtype, value + t * error) - round_to(dtype, value)), spread)
            << to_string(dtype);
    }
  }
  EXPECT_EQ(rounding_spread(f16, 65519.0, 10.0), kInf);  // may or may not overflow
  EXPECT_EQ(rounding_spread(f16, 70000.0, 10.0), 0.0);   // certainly infinite
  EXPECT_EQ(rounding_spread(e4m3, 500.0, 10.0), 0.0);    // certainly saturated
  EXPECT_EQ(rounding_spread(i8, 2.5, 1e-3), 1.0);
  EXPECT_EQ(rounding_spread(i8, 2.4, 1e-3), 0.0);
  EXPECT_EQ(rounding_spread(boolean, 1e-9, 1e-8), 1.0);
  EXPECT_EQ(rounding_spread(boolean, 1.0, 0.5), 0.0);
}

}  // namespace
}  // namespace ashlar::reference

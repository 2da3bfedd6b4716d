// Error bounds of tensor-core accumulation: they hold for a model of the hardware and still detect
// faults.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "base/element.hpp"
#include "reference/harness.hpp"

namespace ashlar::reference {
namespace {

constexpr std::int64_t kRows = 12, kColumns = 12;

// x with its bits below 2^place truncated.
double truncated_at(double x, int place) {
  return std::ldexp(std::trunc(std::ldexp(x, -place)), place);
}
int exponent_of(double x) { return x == 0 ? -1000 : std::ilogb(x); }

// Model of a tensor core: `step` products and the accumulator are aligned to the largest exponent
// among them, keep `fraction` fraction bits, and are added; the sum is truncated to f32.
struct Unit {
  std::int64_t step;
  int fraction;
  std::int64_t promoted = 0;  // terms between promotions to an f32 accumulator; 0: never

  double sum(const std::vector<double>& terms) const {
    float total = 0;
    double accumulator = 0;
    const auto count = static_cast<std::int64_t>(terms.size());
    for (std::int64_t first = 0; first < count; first += step) {
      const std::int64_t last = std::min(first + step, count);
      int largest = exponent_of(accumulator);
      for (std::int64_t i = first; i < last; ++i)
        largest = std::max(largest, exponent_of(terms[static_cast<std::size_t>(i)]));
      double next = truncated_at(accumulator, largest - fraction);
      for (std::int64_t i = first; i < last; ++i)
        next += truncated_at(terms[static_cast<std::size_t>(i)], largest - fraction);
      accumulator = next == 0 ? 0 : truncated_at(next, exponent_of(next) - 23);
      if (promoted == 0 || last % promoted != 0) continue;
      total += static_cast<float>(accumulator);
      accumulator = 0;
    }
    return total + static_cast<float>(accumulator);
  }
};
constexpr Unit kAmpere{8, 24}, kAmpereTf32{4, 24}, kHopper{16, 25}, kHopperFp8{32, 13, 128},
    kHopperFp8Alone{32, 13};

double shortened(double x) {  // to tf32, by truncation
  return x == 0 ? 0 : truncated_at(x, exponent_of(x) - 10);
}

struct MatmulCase {
  std::int64_t k_size;
  DType dtype;
  double low, high;
  Graph g;

  explicit MatmulCase(std::int64_t k, DType type, double least, double most)
      : k_size(k), dtype(type), low(least), high(most) {
    OutputSpec wide;
    wide.dtype = f32;
    g.output("c", g.matmul(g.input("a", {kRows, k_size}, dtype),
                           g.input("b", {k_size, kColumns}, dtype), wide));
  }

  using Factor = std::function<double(double)>;
  // The largest error / bound of the unit's result with operands factor(a) and factor(b), over all
  // of K except `left_out` elements from `first_skipped` on.
  Comparison compared(
      const Unit& unit, const PlanNotes& notes, const Factor& factor = [](double x) { return x; },
      std::int64_t first_skipped = 0, std::int64_t left_out = 0) const {
    Evaluation e(g);
    e.fill_inputs(7, low, high);
    const std::vector<double> a = e.get("a"), b = e.get("b");
    std::vector<double> c;
    for (std::int64_t m = 0; m < kRows; ++m)
      for (std::int64_t n = 0; n < kColumns; ++n) {
        std::vector<double> terms;
        for (std::int64_t k = 0; k < k_size; ++k)
          if (k < first_skipped || k >= first_skipped + left_out)
            terms.push_back(factor(a[static_cast<std::size_t>(m * k_size + k)]) *
                            factor(b[static_cast<std::size_t>(k * kColumns + n)]));
        c.push_back(unit.sum(terms));
      }
    const Expected expected = e.oracle("c", notes);
    e.set("c", c);
    return expected.compare(e.tensor("c"), e.data("c"));
  }
};

double share(const Comparison& comparison) {
  EXPECT_TRUE(comparison.ok) << comparison.summary;
  return comparison.worst_error / comparison.worst_bound;
}

TEST(MmaRounding, TruncatedAccumulationNeedsItsWiderBound) {
  for (const DType dtype : {bf16, f16})
    for (const Unit& unit : {kAmpere, kHopper})
      for (const std::int64_t k_size : {1, 7, 64, 1000, 8192}) {
        const PlanNotes notes{.truncating_accumulation = true};
        EXPECT_LE(share(MatmulCase(k_size, dtype, -1, 1).compared(unit, notes)), 1);
        const MatmulCase positive(k_size, dtype, 0.01, 1);
        const double used = share(positive.compared(unit, notes));
        if (k_size >= 1000 && dtype == f16) {
          EXPECT_GT(used, 1.0 / 30.0) << k_size;
        }
        // Terms of one sign: errors grow with K, beyond those of rounding.
        if (k_size >= 8192 && dtype == f16) {
          EXPECT_FALSE(positive.compared(unit, {}).ok);
        }
      }
}

TEST(MmaRounding, Tf32Operands) {
  const PlanNotes notes{.tf32 = true, .truncating_accumulation = true};
  for (const std::int64_t k_size : {1, 64, 1000}) {
    for (const double low : {-1.0, 0.5})
      EXPECT_LE(share(MatmulCase(k_size, f32, low, 1).compared(kAmpereTf32, notes, shortened)), 1);
    const MatmulCase positive(k_size, f32, 0.5, 1);
    EXPECT_GT(share(positive.compared(kAmpereTf32, notes, shortened)), 1.0 / 8.0);
    // Without the note they are a fault, whatever the signs.
    for (const double low : {-1.0, 0.5})
      EXPECT_FALSE(MatmulCase(k_size, f32, low, 1).compared(kAmpereTf32, {}, shortened).ok);
  }
  // Operands of at most 11 significant bits are exact: the note does not widen their bound.
  const MatmulCase narrow(64, bf16, -1, 1);
  EXPECT_EQ(narrow.compared(kHopper, notes).worst_bound,
            narrow.compared(kHopper, {.truncating_accumulation = true}).worst_bound);
}

TEST(MmaRounding, Fp8Accumulation) {
  const PlanNotes notes{.reduced_precision_accumulation = true, .truncating_accumulation = true};
  for (const DType dtype : {e4m3, e5m2})
    for (const std::int64_t k_size : {128, 1000, 4096}) {
      EXPECT_LE(share(MatmulCase(k_size, dtype, -2, 2).compared(kHopperFp8, notes)), 1);
      const MatmulCase positive(k_size, dtype, 0.01, 2);
      EXPECT_GT(share(positive.compared(kHopperFp8, notes)), 1.0 / 100.0);
      // 14-bit accumulation without the note is a fault, and so is accumulation without promotion
      // to f32.
      if (k_size >= 4096) {
        EXPECT_FALSE(positive.compared(kHopperFp8, {}).ok);
        EXPECT_FALSE(positive.compared(kHopperFp8Alone, notes).ok);
      }
    }
  // The note applies to fp8 only.
  const MatmulCase wide(512, bf16, -1, 1);
  EXPECT_EQ(wide.compared(kHopper, notes).worst_bound,
            wide.compared(kHopper, {.truncating_accumulation = true}).worst_bound);
}

TEST(MmaRounding, SkippedKBlockIsDetected) {
  const auto same = [](double x) { return x; };
  const PlanNotes notes{
      .tf32 = true, .reduced_precision_accumulation = true, .truncating_accumulation = true};
  for (const double low : {-1.0, 0.5}) {
    EXPECT_FALSE(MatmulCase(4096, bf16, low, 1).compared(kHopper, notes, same, 1024, 64).ok);
    EXPECT_FALSE(MatmulCase(1024, f32, low, 1).compared(kHopper, notes, shortened, 512, 32).ok);
    EXPECT_FALSE(MatmulCase(512, e4m3, low, 1).compared(kHopperFp8, notes, same, 128, 128).ok);
  }
}

TEST(MmaRounding, SmallIntegersStayExact) {
  const auto whole = [](double x) { return std::round(4 * x); };
  const auto exact = [&](DType dtype, const PlanNotes& notes, std::int64_t k) {
    MatmulCase product(k, dtype, -1, 1);
    Evaluation e(product.g);
    e.fill_inputs(9);
    for (const char* name : {"a", "b"}) {
      std::vector<double> values = e.get(name);
      std::transform(values.begin(), values.end(), values.begin(), whole);
      e.set(name, values);
    }
    const std::vector<double> bounds = e.oracle("c", notes).bounds;
    return std::all_of(bounds.begin(), bounds.end(), [](double bound) { return bound == 0; });
  };
  const PlanNotes wide{.tf32 = true, .truncating_accumulation = true};
  EXPECT_TRUE(exact(bf16, wide, 2048));
  EXPECT_TRUE(exact(f32, wide, 2048));
  const PlanNotes narrow{.reduced_precision_accumulation = true, .truncating_accumulation = true};
  EXPECT_TRUE(exact(e4m3, narrow, 512));
  EXPECT_FALSE(exact(e4m3, narrow, 8192)) << "magnitudes past 2^13";
}

}  // namespace
}  // namespace ashlar::reference

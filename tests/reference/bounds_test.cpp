// Bounds of whole operations hold for correct f32 evaluations and are not needlessly wide.
#include <algorithm>
#include <cmath>

#include "base/element.hpp"
#include "reference/harness.hpp"

namespace ashlar::reference {
namespace {

// Writes a correct f32 result, expects it to pass, and returns the largest error / bound.
double honest_ratio(Evaluation& e, const std::string& output, const std::vector<double>& honest) {
  const Expected expected = e.oracle(output);
  e.set(output, honest);
  const Comparison comparison = expected.compare(e.tensor(output), e.data(output));
  EXPECT_TRUE(comparison.ok) << comparison.summary;
  EXPECT_EQ(comparison.compared, element_count(e.tensor(output).dims));
  return comparison.worst_error / comparison.worst_bound;
}

std::vector<float> narrowed(const std::vector<double>& values) {
  std::vector<float> result;
  for (double value : values) result.push_back(static_cast<float>(value));
  return result;
}

TEST(Bounds, Softmax) {
  Graph g;
  g.output("y", g.softmax(g.input("x", {20, 100}, f32)));
  Evaluation e(g);
  e.fill_inputs(1, -10.0, 10.0);
  const std::vector<float> x = narrowed(e.get("x"));
  std::vector<double> y;
  for (std::size_t row = 0; row < 20; ++row) {
    float largest = x[row * 100], sum = 0.0f;
    for (std::size_t i = 0; i < 100; ++i) largest = std::max(largest, x[row * 100 + i]);
    for (std::size_t i = 0; i < 100; ++i) sum += std::exp(x[row * 100 + i] - largest);
    for (std::size_t i = 0; i < 100; ++i) y.push_back(std::exp(x[row * 100 + i] - largest) / sum);
  }
  EXPECT_GT(honest_ratio(e, "y", y), 1.0 / 200.0);
}

TEST(Bounds, LayerNorm) {
  Graph g;
  g.output("y", g.norm(g.input("x", {20, 300}, f32)).y);
  Evaluation e(g);
  e.fill_inputs(2, 1.0, 3.0);
  const std::vector<float> x = narrowed(e.get("x"));
  std::vector<double> y;
  for (std::size_t row = 0; row < 20; ++row) {
    float sum = 0.0f, squares = 0.0f;
    for (std::size_t i = 0; i < 300; ++i) sum += x[row * 300 + i];
    const float mean = sum / 300.0f;
    for (std::size_t i = 0; i < 300; ++i)
      squares += (x[row * 300 + i] - mean) * (x[row * 300 + i] - mean);
    const float inv = 1.0f / std::sqrt(squares / 300.0f + 1e-5f);
    for (std::size_t i = 0; i < 300; ++i) y.push_back((x[row * 300 + i] - mean) * inv);
  }
  EXPECT_GT(honest_ratio(e, "y", y), 1.0 / 500.0);
}

TEST(Bounds, GeluInBothForms) {
  Graph g;
  const Value x = g.input("x", {2000}, f32);
  g.output("exact", gelu(x));
  g.output("tanh", gelu_tanh(x));
  Evaluation e(g);
  e.fill_inputs(3, -8.0, 8.0);
  std::vector<double> exact, approximate;
  for (float v : narrowed(e.get("x"))) {
    exact.push_back(v * (0.5f * (1.0f + std::erf(v * 0.70710678f))));
    approximate.push_back(0.5f * v * (1.0f + std::tanh(0.79788456f * (v + 0.044715f * v * v * v))));
  }
  EXPECT_GT(honest_ratio(e, "exact", exact), 1.0 / 50.0);
  EXPECT_GT(honest_ratio(e, "tanh", approximate), 1.0 / 50.0);
}

// Phi by its complement: its error does not vanish with x, as that of erf does.
TEST(Bounds, GeluByErfc) {
  Graph g;
  g.output("y", gelu(g.input("x", {2000}, f32)));
  Evaluation e(g);
  e.fill_inputs(4, -0.02, 0.02);
  std::vector<double> y;
  for (float v : narrowed(e.get("x"))) {
    const float phi = 0.5f * std::erfc(v * -0.70710678f);
    y.push_back(v * (phi * (1.0f + 0x1p-22f)));  // 4 units: erfc of a vector library
  }
  EXPECT_GT(honest_ratio(e, "y", y), 0.25);
}

// Batch norm's dx from dscale: 1e30^2 overflows where (1e30 * scale)^2 does not.
TEST(Bounds, NormGradientWithTheScaleBehindTheSums) {
  for (const double scale : {0.0, 1.0}) {
    Graph g;
    const Value x = g.input("x", {1, 1, 2, 2}, f32), one = g.input("one", {1, 1, 1, 1}, f32);
    NormBackward op;
    op.mode = NormMode::batch;
    g.output("dx", g.norm_backward(x, x, op,
                                   {.scale = one,
                                    .mean = g.input("mean", {1, 1, 1, 1}, f32),
                                    .inv_variance = g.input("inv", {1, 1, 1, 1}, f32)})
                       .dx);
    Evaluation e(g);
    e.set("one", {scale});
    e.set("mean", {0.0});
    e.set("inv", {1.0});
    e.set("x", {1.0, 2.0, 3.0, 1e30});
    for (double bound : e.oracle("dx").bounds) EXPECT_EQ(bound, kInf);
    e.set("x", {1.0, 2.0, 3.0, 4.0});
    for (double bound : e.oracle("dx").bounds) EXPECT_LT(bound, 1e-3);
  }
}

// Raised attention yields 0 for a row of scores that are all -inf, and does not read v.
TEST(Bounds, SoftmaxRowsOfMinusInfinity) {
  Graph g;
  const Value weights = g.softmax(g.input("x", {2, 2}, f32));
  g.output("y", g.matmul(weights, g.input("v", {2, 2}, f32)));
  Evaluation e(g);
  e.set("x", {-kInf, -kInf, -kInf, 0.0});
  e.set("v", {1.0, std::nan(""), 1.0, 2.0});
  const Expected y = e.oracle("y");
  EXPECT_EQ(y.bounds[0], kInf);
  EXPECT_EQ(y.bounds[1], kInf);
  EXPECT_LT(y.bounds[2], 1e-5);
  EXPECT_TRUE(std::isnan(y.values[3]));
  EXPECT_EQ(y.bounds[3], 0.0);
}

// FlashAttention in scalar code: f16 operands, an online softmax over blocks of 16 columns, f32
// accumulators, and weights rounded to f16 before the multiplication with v.
TEST(Bounds, AttentionWithARunningMaximumAndRoundedWeights) {
  constexpr std::size_t kRows = 24, kColumns = 64, kWidth = 32;
  Graph g;
  const Value q = g.input("q", {1, 1, kRows, kWidth}, f16),
              k = g.input("k", {1, 1, kColumns, kWidth}, f16);
  const Value v = g.input("v", {1, 1, kColumns, kWidth}, f16);
  OutputSpec wide;
  wide.dtype = f32;
  g.output("o", g.attention(q, k, v, {}, {}, false, wide).first);
  Evaluation e(g);
  e.fill_inputs(4, -2.0, 2.0);
  const std::vector<float> qs = narrowed(e.get("q")), ks = narrowed(e.get("k")),
                           vs = narrowed(e.get("v"));
  std::vector<double> o;
  for (std::size_t i = 0; i < kRows; ++i) {
    float largest = -std::numeric_limits<float>::infinity(), sum = 0.0f;
    std::vector<float> total(kWidth, 0.0f);
    for (std::size_t block = 0; block < kColumns; block += 16) {
      std::vector<float> scores(16, 0.0f);
      float next = largest;
      for (std::size_t j = 0; j < 16; ++j) {
        for (std::size_t d = 0; d < kWidth; ++d)
          scores[j] += qs[i * kWidth + d] * ks[(block + j) * kWidth + d];
        scores[j] *= 1.0f / std::sqrt(32.0f) * 1.44269504f;
        next = std::max(next, scores[j]);
      }
      const float correction = std::exp2(largest - next);
      sum *= correction;
      for (float& t : total) t *= correction;
      for (std::size_t j = 0; j < 16; ++j) {
        const float weight = std::exp2(scores[j] - next);
        sum += weight;
        const auto rounded = static_cast<float>(round_to(f16, weight));
        for (std::size_t d = 0; d < kWidth; ++d) total[d] += rounded * vs[(block + j) * kWidth + d];
      }
      largest = next;
    }
    for (float t : total) o.push_back(t / sum);
  }
  EXPECT_GT(honest_ratio(e, "o", o), 1.0 / 50.0);
}

// A chain through narrow intermediates, with and without rounding them.
TEST(Bounds, ChainsThroughNarrowIntermediates) {
  for (DType dtype : {f16, bf16}) {
    Graph g;
    const Value x = g.input("x", {500}, dtype), b = g.input("b", {500}, dtype);
    g.output("y", sigmoid(x * b + b) * x);
    Evaluation e(g);
    e.fill_inputs(5, -4.0, 4.0);
    const std::vector<float> xs = narrowed(e.get("x")), bs = narrowed(e.get("b"));
    for (bool rounds : {false, true}) {
      const auto kept = [&](float value) {
        return rounds ? static_cast<float>(round_to(dtype, value)) : value;
      };
      std::vector<double> y;
      for (std::size_t i = 0; i < xs.size(); ++i) {
        const float z = kept(kept(xs[i] * bs[i]) + bs[i]);
        y.push_back(kept(1.0f / (1.0f + std::exp(-z))) * xs[i]);
      }
      // Rounding like the oracle reproduces its values; not rounding uses up the bound.
      const double ratio = honest_ratio(e, "y", y);
      EXPECT_TRUE(rounds || ratio > 1.0 / 10.0) << ratio;
    }
  }
}

}  // namespace
}  // namespace ashlar::reference

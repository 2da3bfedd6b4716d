// compare(): planted faults are detected, correct implementations in lower precision pass.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "base/element.hpp"
#include "reference/harness.hpp"

namespace ashlar::reference {
namespace {

// y = relu(conv(x, w) + b) on realistic data, x and y in `dtype`.
struct Network {
  explicit Network(DType dtype) {
    const Value x = graph.input("x", {2, 16, 9, 9}, dtype, channels_last);
    const Value w = graph.input("w", {24, 16, 3, 3}, dtype, channels_last);
    const Value b = graph.input("b", {1, 24, 1, 1}, f32);
    graph.output("y", relu(graph.conv(x, w, {.padding = {1, 1}}) + b));
  }
  Graph graph;
};

// The same by a correct implementation: f32 throughout, with intermediates rounded if `rounds`.
void evaluate_in_f32(Evaluation& e, bool rounds) {
  const std::vector<double> x = e.get("x"), w = e.get("w"), b = e.get("b");
  const DType dtype = e.tensor("y").dtype;
  std::vector<double> y;
  for (int n = 0; n < 2; ++n)
    for (int k = 0; k < 24; ++k)
      for (int oh = 0; oh < 9; ++oh)
        for (int ow = 0; ow < 9; ++ow) {
          float sum = 0.0f;
          for (int r = 2; r >= 0; --r)
            for (int s = 0; s < 3; ++s)
              for (int c = 0; c < 16; ++c) {
                const int ih = oh + r - 1, iw = ow + s - 1;
                if (ih < 0 || ih >= 9 || iw < 0 || iw >= 9) continue;
                sum +=
                    static_cast<float>(
                        x[static_cast<std::size_t>(((n * 16 + c) * 9 + ih) * 9 + iw)]) *
                    static_cast<float>(w[static_cast<std::size_t>(((k * 16 + c) * 3 + r) * 3 + s)]);
              }
          if (rounds) sum = static_cast<float>(round_to(dtype, sum));
          sum += static_cast<float>(b[static_cast<std::size_t>(k)]);
          if (rounds) sum = static_cast<float>(round_to(dtype, sum));
          y.push_back(std::max(sum, 0.0f));
        }
  e.set("y", y);
}

class Faults : public testing::TestWithParam<DType> {
 protected:
  Faults() : network_(GetParam()), evaluation_(network_.graph) {
    evaluation_.fill_inputs(21);
    expected_ = evaluation_.oracle("y");
    evaluate_in_f32(evaluation_, false);
    honest_ = evaluation_.get("y");
  }
  Comparison compared(const std::vector<double>& values) {
    evaluation_.set("y", values);
    return expected_.compare(evaluation_.tensor("y"), evaluation_.data("y"));
  }
  Comparison after(const std::function<void(std::vector<double>&)>& fault) {
    std::vector<double> values = honest_;
    fault(values);
    return compared(values);
  }
  // Where the result is neither zero nor unusually small.
  std::size_t typical(std::size_t from = 0) const {
    while (std::fabs(honest_[from]) < 0.5) ++from;
    return from;
  }

  Network network_;
  Evaluation evaluation_;
  Expected expected_;
  std::vector<double> honest_;
};

TEST_P(Faults, AcceptsHonestImplementations) {
  for (bool rounds : {false, true}) {
    evaluate_in_f32(evaluation_, rounds);
    const Comparison result = expected_.compare(evaluation_.tensor("y"), evaluation_.data("y"));
    EXPECT_TRUE(result.ok) << result.summary;
    EXPECT_EQ(result.compared, element_count(evaluation_.tensor("y").dims));
  }
  evaluation_.expect_nodes_agree();
}

TEST_P(Faults, CatchesPlantedFaults) {
  const double step = GetParam() == f32 ? 1e-3 : GetParam() == f16 ? 2e-2 : 6e-2;  // relative
  const std::size_t at = typical(100), other = typical(at + 1);
  EXPECT_EQ(after([&](auto& v) { v[at] *= 1.0 + step; }).mismatches, 1);
  EXPECT_EQ(after([&](auto& v) { v[at] = -v[at]; }).mismatches, 1);
  EXPECT_EQ(after([&](auto& v) { v[at] = 0.0; }).mismatches, 1);
  EXPECT_EQ(after([&](auto& v) { v[at] = kNaN; }).mismatches, 1);
  EXPECT_EQ(after([&](auto& v) { v[at] = kInf; }).mismatches, 1);
  EXPECT_EQ(after([&](auto& v) { v[at] = v[other] = kNaN; }).mismatches, 2);
  EXPECT_FALSE(
      after([&](auto& v) { std::fill(v.begin() + 81, v.begin() + 90, 0.0); }).ok);  // a row
  EXPECT_FALSE(
      after([&](auto& v) { std::rotate(v.begin(), v.begin() + 1, v.end()); }).ok);  // all shifted
  EXPECT_FALSE(after([&](auto& v) { std::swap(v[at], v[other]); }).ok);
  const Comparison result = after([&](auto& v) { v[at] += 100.0; });
  EXPECT_EQ(result.worst_index, static_cast<std::int64_t>(at));
  EXPECT_NE(result.summary.find("1 of 3888 elements are wrong"), std::string::npos)
      << result.summary;
}

INSTANTIATE_TEST_SUITE_P(DTypes, Faults, testing::Values(f32, f16, bf16),
                         [](const auto& param_info) {
                           return std::string(to_string(param_info.param));
                         });

TEST(Comparer, DistinguishesNegativeValues) {
  Graph g;
  g.output("y", g.input("x", {3}, f32) + g.input("b", {3}, f32));
  Evaluation e(g);
  e.set("x", {-2, -3, -4.25});
  e.set("b", {-3, -1, 0.125});
  const Expected expected = e.oracle("y");
  e.set("y", {-10, -4, -4.125});
  EXPECT_EQ(expected.compare(e.tensor("y"), e.data("y")).mismatches, 1);
  e.set("y", {-5, -4, -4.125});
  EXPECT_TRUE(expected.compare(e.tensor("y"), e.data("y")).ok);
}

TEST(Comparer, NaNAndInfinityMustMatch) {
  Graph g;
  g.output("y", g.input("x", {3}, f32) * 1.0);
  Evaluation e(g);
  e.set("x", {kNaN, kInf, 1});
  const Expected expected = e.oracle("y");
  const auto ok = [&](std::vector<double> values) {
    e.set("y", values);
    return expected.compare(e.tensor("y"), e.data("y")).ok;
  };
  EXPECT_TRUE(ok({kNaN, kInf, 1}));
  EXPECT_FALSE(ok({0, kInf, 1}));
  EXPECT_FALSE(ok({kNaN, -kInf, 1}));
  EXPECT_FALSE(ok({kNaN, 3e38, 1}));
  EXPECT_FALSE(ok({kNaN, kInf, kNaN}));
}

TEST(Comparer, RejectsAResultOfAnotherSize) {
  Graph g;
  g.output("y", g.input("x", {3}, f32) + 1.0);
  Evaluation e(g);
  Expected expected = e.oracle("y");
  expected.values.pop_back();
  EXPECT_THROW(expected.compare(e.tensor("y"), e.data("y")), Error);
}

TEST(Oracle, SmallIntegersAreExactThroughLinearOperations) {
  Graph g;
  const Value a = g.input("a", {5, 40}, f16), b = g.input("b", {40, 7}, f16);
  OutputSpec wide;
  wide.dtype = f32;
  g.output("c", g.matmul(a, b, wide));
  Evaluation e(g);
  for (const char* name : {"a", "b"}) {
    fill_random(e.tensor(name), e.data(name), 3, -8, 8);
    std::vector<double> whole = e.get(name);
    for (double& value : whole) value = std::round(value);
    e.set(name, whole);
  }
  for (double bound : e.oracle("c").bounds) EXPECT_EQ(bound, 0.0);
}

TEST(Oracle, ComparisonsWithinTheErrorAreUnknown) {
  Graph g;
  const Value x = g.input("x", {2, 1}, f32), b = g.input("b", {1, 1}, f32);
  g.output("above", g.pointwise(PointwiseMode::cmp_gt, std::vector{exp(x), b}));
  g.output("steps", g.pointwise(PointwiseMode::floor, std::vector{exp(x)}));
  Evaluation e(g);
  e.set("x", {0, 1});
  e.set("b", {1});
  EXPECT_EQ(e.oracle("above").bounds, (std::vector<double>{1, 0}));
  EXPECT_EQ(e.oracle("steps").bounds, (std::vector<double>{1, 0}));
}

TEST(Oracle, NarrowIntermediatesMayStayUnroundedButIntegersMayNot) {
  for (DType dtype : {f16, i8}) {
    Graph g;
    g.output("y", cast(cast(g.input("x", {1}, f32), dtype), f32));
    Evaluation e(g);
    e.set("x", {3.0004f});
    const Expected expected = e.oracle("y");
    e.set("y", {3.0004f});
    EXPECT_EQ(expected.compare(e.tensor("y"), e.data("y")).ok, dtype == f16);
    e.set("y", {round_to(dtype, 3.0004f)});
    EXPECT_TRUE(expected.compare(e.tensor("y"), e.data("y")).ok);
  }
}

TEST(Oracle, RejectsMissingPointers) {
  Graph g;
  g.output("y", g.input("x", {3}, f32) + 1.0);
  EXPECT_THROW(evaluate_reference(g, {}), Error);
  const std::vector<const void*> nothing(2, nullptr);
  EXPECT_THROW(evaluate_reference(g, nothing), Error);
}

TEST(Fill, TouchesExactlyTheElementsAndSuitsTheType) {
  for (DType dtype : kAllDTypes) {
    Tensor tensor;
    tensor.dtype = dtype;
    tensor.dims = {3, 4};
    tensor.strides = {16, 2};
    const DType part = dtype == complex_f32 ? f32 : dtype == complex_f64 ? f64 : dtype;
    const int parts = is_complex(dtype) ? 2 : 1;
    // The value of zeroed memory; e8m0 has no zero.
    const double nothing = dtype == e8m0 ? 0x1p-127 : 0.0;
    std::vector<std::uint8_t> memory(
        static_cast<std::size_t>(48 * std::max(bit_width(dtype), 8) / 8), 0);
    fill_random(tensor, memory.data(), 5, -3.0, 3.0);
    bool varied = false;
    for (std::int64_t i = 0; i < 48 * parts; ++i) {
      const double value = load_element(part, memory.data(), i);
      const bool element = i / parts % 16 < 8 && i / parts % 2 == 0;
      EXPECT_TRUE(element || value == nothing) << to_string(dtype) << " at " << i;
      EXPECT_LE(std::fabs(value), dtype == e8m0 ? 4.0 : 3.0);
      EXPECT_TRUE(is_floating(part) || value == std::floor(value))
          << to_string(dtype) << " holds " << value;
      varied = varied || (element && value != load_element(part, memory.data(), 0));
    }
    EXPECT_TRUE(varied) << to_string(dtype);
    std::vector<std::uint8_t> again(memory.size(), 0);
    fill_random(tensor, again.data(), 5, -3.0, 3.0);
    EXPECT_EQ(memory, again);
    fill_random(tensor, again.data(), 6, -3.0, 3.0);
    EXPECT_NE(memory, again);
  }
}

}  // namespace
}  // namespace ashlar::reference

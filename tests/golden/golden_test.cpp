// The oracle against PyTorch.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ashlar/check.hpp>
#include <cmath>

#include "base/element.hpp"
#include "golden/golden_file.hpp"
#include "graph/op_traits.hpp"

namespace ashlar {
namespace {

// Allowance for PyTorch's own double-precision rounding and that of the saved tensors of a
// gradient.
constexpr double kPeerError = 1e-9;
// A bound wider than this would let a wrong formula pass.
constexpr double kWidestBound = 1e-9;

bool draws_random_numbers(std::string_view operation) {
  return operation == "rng" || operation.starts_with("dropout_");
}

TEST(Goldens, CoverTheOperations) {
  const std::vector<std::string> names = golden::case_names();
  EXPECT_GE(names.size(), 60u);
  std::vector<std::string_view> used;
  for (const std::string& name : names) {
    const golden::File file = golden::load(name);
    for (const Node& node : file.graph.nodes()) used.push_back(traits_of(node.op).name);
  }
  for (const OpTraits& row : op_table()) {
    if (draws_random_numbers(row.name)) continue;  // our own, not PyTorch's
    EXPECT_NE(std::find(used.begin(), used.end(), row.name), used.end()) << row.name;
  }
}

// Empty if our element and PyTorch's agree within the bound, else a message.
std::string difference(double ours, double golden, double bound) {
  if (std::isnan(golden)) return std::isnan(ours) ? "" : fmt::format("got {}, expected NaN", ours);
  if (std::isinf(golden))
    return ours == golden ? "" : fmt::format("got {}, expected {}", ours, golden);
  if (std::fabs(ours - golden) <= bound + kPeerError * std::fabs(golden)) return "";
  return fmt::format("got {}, expected {} within {}", ours, golden, bound);
}

class GoldenOracle : public testing::TestWithParam<std::string> {};

TEST_P(GoldenOracle, AgreesWithPyTorch) {
  const golden::File file = golden::load(GetParam());
  const golden::Memory memory(file);
  const std::vector<Expected> results = evaluate_reference(file.graph, memory.readable());
  std::size_t outputs = 0;
  for (std::size_t i = 0; i < file.bound.size(); ++i) {
    const Tensor& tensor = file.graph.tensor(file.bound[i]);
    if (tensor.kind != TensorKind::output) continue;
    ++outputs;
    const auto found = std::find_if(results.begin(), results.end(), [&](const Expected& result) {
      return result.tensor == file.bound[i];
    });
    ASSERT_NE(found, results.end()) << tensor.name;
    ASSERT_EQ(found->values.size(), file.values[i].size()) << tensor.name;
    for (std::size_t element = 0; element < found->values.size(); ++element) {
      const DType part = tensor.dtype == complex_f64 ? f64 : tensor.dtype;
      const double golden = round_to(part, file.values[i][element]);
      const double bound = found->bounds[element];
      const std::string where = fmt::format("{}[{}]", tensor.name, element);
      ASSERT_EQ(difference(found->values[element], golden, bound), "") << where;
      if (tensor.dtype == f64 && std::isfinite(golden)) {
        ASSERT_LE(bound, kWidestBound * std::max(1.0, std::fabs(golden))) << where;
      }
    }
  }
  EXPECT_EQ(outputs, results.size());
}

std::string name_of(const testing::TestParamInfo<std::string>& parameter) {
  return parameter.param;
}

INSTANTIATE_TEST_SUITE_P(PyTorch, GoldenOracle, testing::ValuesIn(golden::case_names()), name_of);

}  // namespace
}  // namespace ashlar

// The golden cases through the CPU's engines, against the oracle.
#include <gtest/gtest.h>

#include <ashlar/check.hpp>

#include "golden/golden_file.hpp"
#include "golden/run_case.hpp"

namespace ashlar {
namespace {

class GoldenPlan : public testing::TestWithParam<std::string> {};

void run_and_compare(const golden::File& file, const CompileOptions& options) {
  golden::Memory memory(file);
  const Plan plan = golden::run_case(file, memory, options);
  const std::vector<Expected> expected =
      evaluate_reference(file.graph, memory.readable(), plan.notes());
  for (std::size_t i = 0; i < file.bound.size(); ++i)
    for (const Expected& result : expected)
      if (result.tensor == file.bound[i]) {
        const Comparison comparison =
            result.compare(file.graph.tensor(result.tensor), memory.at(i));
        EXPECT_TRUE(comparison.ok) << comparison.summary << "\n" << plan.explain();
      }
}

TEST_P(GoldenPlan, FusedAgreesWithTheOracle) { run_and_compare(golden::load(GetParam()), {}); }

TEST_P(GoldenPlan, OneRegionPerOperationAgreesWithTheOracle) {
  run_and_compare(golden::load(GetParam()), {.fuse = false});
}

TEST_P(GoldenPlan, ReferenceEngineAgreesWithTheOracle) {
  run_and_compare(golden::load(GetParam()), {.reference_only = true});
}

std::string plan_name_of(const testing::TestParamInfo<std::string>& parameter) {
  return parameter.param;
}

INSTANTIATE_TEST_SUITE_P(PyTorch, GoldenPlan, testing::ValuesIn(golden::case_names()),
                         plan_name_of);

}  // namespace
}  // namespace ashlar

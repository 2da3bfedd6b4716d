// Every engine of the test device's table, on every operation, dtype and layout it takes.
#include "ops/engine_walk.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "graph/schema.hpp"
#include "plan/plan_data.hpp"
#include "support/test_device.hpp"

namespace ashlar::ops {
namespace {

// All layouts in f32, one in every other dtype (another from case to case); fused in one of them.
// In short: one variant of each case.
void visit_variants(EngineWalk& walk, const OpCase& one, std::size_t number) {
  if (support::short_tests()) {
    const DType dtype = one.dtypes[number % one.dtypes.size()];
    return walk.visit(one, {dtype, kShapes[number % kShapes.size()], number % 2 == 1});
  }
  for (std::size_t d = 0; d < one.dtypes.size(); ++d) {
    const DType dtype = one.dtypes[d];
    const bool every_shape = !one.one_shape && (dtype == f32 || dtype == f16 || dtype == boolean);
    const std::size_t own = (number + d) % kShapes.size();
    for (std::size_t s = 0; s < kShapes.size(); ++s)
      if (every_shape || s == own) walk.visit(one, {dtype, kShapes[s], false});
    walk.visit(one, {dtype, kShapes[(own + 2) % kShapes.size()], true});
  }
}

EngineTable table() { return engine_table(support::test_device().props().kind); }

std::vector<std::string> operation_names() {
  std::vector<std::string> names;
  for (const OpSchema& schema : schema_table()) names.emplace_back(schema.name);
  return names;
}

class EveryEngine : public testing::TestWithParam<std::string> {};

TEST_P(EveryEngine, AgreesWithTheOracle) {
  EngineWalk walk;
  std::size_t number = 0;
  for (const OpCase& one : all_cases())
    if (one.op == GetParam()) visit_variants(walk, one, number++);
  ASSERT_GT(number, 0u) << "no case for this operation";

  std::set<std::string> engines;
  for (const auto& [engine, op, dtype] : walk.combinations()) engines.insert(engine);
  fmt::print(
      "{}: {} graphs, {} forced plans, {} refusals with reasons, {} (engine, operation, "
      "dtype) combinations on {}; {:.1f}% of the elements compared\n",
      GetParam(), walk.graphs(), walk.plans(), walk.refusals(), walk.combinations().size(),
      fmt::join(engines, ", "), 100 * walk.compared_share());
  const std::string last_resort(table().back()->id());
  EXPECT_TRUE(engines.contains(last_resort) || !support::is_tested(last_resort))
      << "the last resort has to take everything";
  EXPECT_GT(walk.compared_share(), 0.5) << "most elements have no bound: nothing was tested";

  constexpr std::size_t kShown = 12;
  for (std::size_t i = 0; i < walk.failures().size() && i < kShown; ++i)
    ADD_FAILURE() << walk.failures()[i];
  EXPECT_EQ(walk.failures().size(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Op, EveryEngine, testing::ValuesIn(operation_names()),
                         [](const auto& parameter) { return parameter.param; });

// An engine that no case reaches is not tested at all.
TEST(EngineTable, EveryEngineIsReached) {
  std::set<const Engine*> reached;
  const DeviceProps& device = support::test_device().props();
  for (const OpCase& one : all_cases()) {
    for (const DType dtype : one.dtypes) {
      CaseBuilder builder({dtype, Shape::row_major, false});
      one.build(builder);
      const auto outline = build_plan(builder.graph(), device, {}, nullptr, false);
      for (const PlanData::Step& step : outline->steps)
        for (const Engine* engine : table())
          if (engine->supports(step.region, device)) reached.insert(engine);
    }
  }
  for (const Engine* engine : table()) EXPECT_TRUE(reached.contains(engine)) << engine->id();
}

TEST(EngineTable, EnginesAreDescribedAndUnique) {
  std::set<std::string_view> ids;
  const bool is_gpu = support::test_device().props().kind == DeviceKind::cuda;
  const std::string_view prefix = is_gpu ? "cuda." : "cpu.";
  for (const Engine* engine : table()) {
    EXPECT_TRUE(ids.insert(engine->id()).second) << engine->id();
    EXPECT_TRUE(engine->id().starts_with(prefix)) << engine->id();
    EXPECT_FALSE(engine->description().empty()) << engine->id();
  }
  ASSERT_FALSE(table().empty());
  EXPECT_EQ(table().back()->kind(), EngineKind::reference);
}

}  // namespace
}  // namespace ashlar::ops

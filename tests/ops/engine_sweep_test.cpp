// Every engine of the test device's table, on every operation, dtype and layout it supports.
#include "ops/engine_sweep.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "api/backends.hpp"
#include "graph/op_traits.hpp"
#include "support/test_device.hpp"

namespace ashlar::ops {
namespace {

// All layouts in f32, one layout (varying by case) in every other dtype; fused in one of them.
std::vector<Variant> variants_of(const OpCase& one, std::size_t number) {
  std::vector<Variant> variants;
  for (std::size_t d = 0; d < one.dtypes.size(); ++d) {
    const DType dtype = one.dtypes[d];
    const bool every_shape = !one.one_shape && (dtype == f32 || dtype == f16 || dtype == boolean);
    const std::size_t own = (number + d) % kShapes.size();
    for (std::size_t s = 0; s < kShapes.size(); ++s)
      if (every_shape || s == own) variants.push_back({dtype, kShapes[s], false});
    variants.push_back({dtype, kShapes[(own + 2) % kShapes.size()], true});
  }
  return variants;
}

// On a GPU each variant compiles one or more kernels, and there are more than 50000 variants: about
// this many are run per operation, spread over its dtypes and layouts. With ASHLAR_TEST_SHORT one
// per case, with ASHLAR_TEST_LONG all.
constexpr std::size_t kVariantsOnGpu = 60;

void visit_variants(EngineSweep& sweep, const OpCase& one, std::size_t number, std::size_t cases) {
  const std::vector<Variant> all = variants_of(one, number);
  const bool on_gpu = support::test_device().props().kind == DeviceKind::cuda;
  std::size_t count = all.size();
  if (on_gpu && std::getenv("ASHLAR_TEST_LONG") == nullptr)
    count = std::min(count, (kVariantsOnGpu + cases - 1) / cases);
  if (support::short_tests()) count = 1;
  constexpr std::size_t kStep = 37;  // coprime to every number of variants
  for (std::size_t i = 0; i < count; ++i)
    sweep.visit(
        one, all[(count == all.size() ? i : number * kStep + i * all.size() / count) % all.size()]);
}

EngineTable table() { return backend_for(support::test_device().props().kind).engines(); }

std::vector<std::string> operation_names() {
  std::vector<std::string> names;
  for (const OpTraits& traits : op_table()) names.emplace_back(traits.name);
  return names;
}

class EveryEngine : public testing::TestWithParam<std::string> {};

TEST_P(EveryEngine, AgreesWithTheOracle) {
  EngineSweep sweep;
  std::vector<OpCase> cases = all_cases();
  std::erase_if(cases, [](const OpCase& one) { return one.op != GetParam(); });
  ASSERT_FALSE(cases.empty()) << "no case for this operation";
  if (support::shortest_tests()) cases.resize(1);
  const support::TestPart part = support::test_part();
  for (std::size_t i = part.index; i < cases.size(); i += part.count)
    visit_variants(sweep, cases[i], i, cases.size());
  if (sweep.graphs() == 0) GTEST_SKIP() << "no case of this operation in this part";

  std::set<std::string> engines;
  for (const auto& [engine, op, dtype] : sweep.combinations()) engines.insert(engine);
  fmt::print(
      "{}: {} graphs, {} forced plans, {} refusals with reasons, {} (engine, operation, "
      "dtype) combinations on {}; {:.1f}% of the elements compared\n",
      GetParam(), sweep.graphs(), sweep.plans(), sweep.refusals(), sweep.combinations().size(),
      fmt::join(engines, ", "), 100 * sweep.compared_share());
  const std::string last_resort(table().back()->id());
  EXPECT_TRUE(engines.contains(last_resort) || !support::is_tested(last_resort))
      << "the last resort has to take everything";
  EXPECT_GT(sweep.compared_share(), 0.5) << "most elements have no bound: nothing was tested";

  constexpr std::size_t kShown = 12;
  for (std::size_t i = 0; i < sweep.failures().size() && i < kShown; ++i)
    ADD_FAILURE() << sweep.failures()[i];
  EXPECT_EQ(sweep.failures().size(), 0u);
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

// The generic engine: every operation it takes compiles, for an old and a new architecture.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "cuda/engines/engines.hpp"
#include "cuda/jit/nvrtc.hpp"
#include "ops/op_case.hpp"
#include "plan/cut.hpp"

namespace ashlar::cuda {
namespace {

class GenericText : public testing::Test {
 protected:
  void SetUp() override {
    if (!nvrtc().is_open) GTEST_SKIP() << nvrtc().reason;
  }

  // Every region of the case that the engine takes.
  void compile(const ops::OpCase& one, const ops::Variant& variant, const char* architecture) {
    ops::CaseBuilder builder(variant);
    one.build(builder);
    const LoweredGraph lowered = lower(builder.graph(), true);
    const std::vector<FusionLimits> limits(lowered.graph.nodes().size());
    const Device h200 = Device::named("h200");
    const CudaEngine& engine = generic_engine();
    for (const Region& region : cut(lowered, limits)) {
      if (!engine.supports(region, h200.props())) continue;
      const Config config = engine.configs(region, h200.props())[0];
      for (const LaunchDesign& launch :
           engine.design(lowered.graph, region, config, h200.props()).launches) {
        SCOPED_TRACE(fmt::format("{} ({}) {}", one.op, one.label, architecture));
        try {
          launch.arguments.check_size();
          images_.get(launch.source, architecture);
          ++compiled_;
        } catch (const Error& error) {
          ADD_FAILURE() << error.what();
        }
      }
    }
  }
  KernelImages images_{FileCache("")};
  int compiled_ = 0;
};

// One case of each operation, fused and in another dtype and layout each; all of them when there is
// time.
TEST_F(GenericText, EveryOperationCompiles) {
  const bool all = std::getenv("ASHLAR_TEST_LONG") != nullptr;
  std::set<std::string> seen;
  std::size_t number = 0;
  for (const ops::OpCase& one : ops::all_cases()) {
    ++number;
    if (!all && !seen.insert(one.op).second) continue;
    for (std::size_t d = 0; d < one.dtypes.size(); ++d) {
      if (!all && d != number % one.dtypes.size()) continue;
      const ops::Shape shape = ops::kShapes[(number + d) % ops::kShapes.size()];
      compile(one, {one.dtypes[d], shape, true}, (number + d) % 2 == 0 ? "sm_90a" : "sm_75");
    }
  }
  EXPECT_GT(compiled_, 40);
}

}  // namespace
}  // namespace ashlar::cuda

// The generic CUDA engine: every supported operation compiles, for old and new architectures.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "cuda/engines/engines.hpp"
#include "cuda/jit/nvrtc.hpp"
#include "ops/op_case.hpp"
#include "plan/partition.hpp"

namespace ashlar::cuda {
namespace {

class GenericText : public testing::Test {
 protected:
  void SetUp() override {
    if (!nvrtc().is_open) GTEST_SKIP() << nvrtc().reason;
  }

  // The regions of the case that the engine supports: all of them in long runs, else one launch per
  // operation not yet covered.
  void compile(const ops::OpCase& one, const ops::Variant& variant, const char* architecture) {
    ops::CaseBuilder builder(variant);
    one.build(builder);
    const LoweredGraph lowered = lower(builder.graph(), true);
    const std::vector<FusionLimits> limits(lowered.graph.nodes().size());
    const Device h200 = Device::named("h200");
    const CudaEngine& engine = generic_engine();
    for (const Region& region : partition(lowered, limits)) {
      if (!engine.supports(region, h200.props())) continue;
      const std::size_t kind = region.anchor ? region.anchor->op.index() : std::variant_npos;
      if (!seen_.insert(kind).second && !is_long_) continue;
      const Config config = engine.configs(region, h200.props())[0];
      const KernelDesign design = engine.design(lowered.graph, region, config, h200.props());
      for (std::size_t i = 0; i < design.launches.size(); ++i) {
        if (!is_long_ && i != 0) break;
        SCOPED_TRACE(fmt::format("{} ({}) {}", one.op, one.label, architecture));
        try {
          const ArgumentFiller within_the_limit(design.launches[i].arguments);
          images_.get(design.launches[i].source, architecture);
        } catch (const Error& error) {
          ADD_FAILURE() << error.what();
        }
      }
    }
  }
  KernelImages images_{FileCache("")};
  const bool is_long_ = std::getenv("ASHLAR_TEST_LONG") != nullptr;
  std::set<std::size_t> seen_;  // operations, by index in the variant
};

// Fused, with dtype and layout varying from case to case.
TEST_F(GenericText, EveryOperationCompiles) {
  std::size_t number = 0;
  std::string last;
  for (const ops::OpCase& one : ops::all_cases()) {
    ++number;
    const bool is_slow = one.op.starts_with("multi_head");  // to compile
    if (!is_long_ && (one.op == last || is_slow)) continue;
    last = one.op;
    for (std::size_t d = 0; d < one.dtypes.size(); ++d) {
      if (!is_long_ && d != number % one.dtypes.size()) continue;
      const ops::Shape shape = ops::kShapes[(number + d) % ops::kShapes.size()];
      compile(one, {one.dtypes[d], shape, true}, (number + d) % 2 == 0 ? "sm_90a" : "sm_75");
    }
  }
  EXPECT_GT(seen_.size(), 40u);
}

}  // namespace
}  // namespace ashlar::cuda

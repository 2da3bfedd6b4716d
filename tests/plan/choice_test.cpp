// Options that affect engine selection: a requested engine, tuning, constant inputs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ashlar/ashlar.hpp>
#include <vector>

#include "api/backends.hpp"
#include "plan/tuning_record.hpp"

namespace ashlar {
namespace {

using testing::HasSubstr;
using testing::Not;

Graph product() {
  Graph g("product");
  g.output("c", g.matmul(g.input("a", {2, 3}, f32), g.input("b", {3, 2}, f32)));
  return g;
}

std::string message_of(const CompileOptions& options) {
  try {
    compile(product(), Device::cpu(), options);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  return "no error";
}

std::vector<float> run(const CompileOptions& options) {
  const Plan plan = compile(product(), Device::cpu(), options);
  std::vector<float> a = {1, 2, 3, 4, 5, 6}, b = {1, 0, 0, 1, 1, 1}, c(4, -1.0f);
  alignas(64) static std::byte workspace[1 << 20];
  EXPECT_LE(plan.workspace_size(), static_cast<std::int64_t>(sizeof(workspace)));
  plan.run({{"a", a.data()}, {"b", b.data()}, {"c", c.data()}}, workspace);
  return c;
}

const std::vector<float> kProduct = {4, 5, 10, 11};

TEST(Choice, RequestedEngineRunsEveryRegionItSupports) {
  const Plan plan = compile(product(), Device::cpu(), {.engine = "cpu.reference"});
  EXPECT_THAT(plan.to_json(), HasSubstr("cpu.reference"));
  EXPECT_EQ(run({.engine = "cpu.reference"}), kProduct);
  // If the requested engine does not support the region, another one is selected.
  const Plan other = compile(product(), Device::cpu(), {.engine = "cpu.softmax"});
  EXPECT_THAT(other.to_json(), HasSubstr("cpu.matmul_gemm"));
  EXPECT_THAT(message_of({.engine = "cpu.nonsense"}), HasSubstr("engine: got 'cpu.nonsense'"));
}

TEST(Choice, TuningReportsMeasurements) {
  const Plan plan = compile(product(), Device::cpu(), {.tune = true});
  EXPECT_THAT(plan.explain(), HasSubstr("us measured"));
  EXPECT_THAT(plan.to_json(), Not(HasSubstr("cpu.reference")));
  EXPECT_EQ(run({.tune = true}), kProduct);
  const Plan again = Plan::from_json(plan.to_json());
  EXPECT_THAT(again.explain(), HasSubstr("as saved"));
}

TEST(Choice, TuningBackToBack) {
  std::vector<float> b = {1, 0, 0, 1, 1, 1};
  const CompileOptions back_to_back{
      .tune = true, .tune_back_to_back = true, .constants = {{"b", b.data()}}};
  EXPECT_THAT(compile(product(), Device::cpu(), back_to_back).explain(), HasSubstr("us measured"));
  EXPECT_EQ(run(back_to_back), kProduct);
}

TEST(Choice, TuningIsLimitedToMaxCandidates) {
  const auto count = [](int most) {
    return inspect(product(), Device::cpu(), {.max_candidates = most}, {.candidates = true})
        .regions[0]
        .candidates.size();
  };
  ASSERT_GT(count(0), 1);
  EXPECT_EQ(count(1), 1);
  EXPECT_EQ(count(1000), count(0));
  // A single candidate is selected without timing.
  const Plan plan = compile(product(), Device::cpu(), {.tune = true, .max_candidates = 1});
  EXPECT_THAT(plan.explain(), Not(HasSubstr("us measured")));
  EXPECT_THAT(message_of({.max_candidates = -1}), HasSubstr("max_candidates: got -1"));
}

// Back-to-back and isolated measurements have separate records.
TEST(Choice, TuningRecordIsReusedForTheSameKey) {
  const auto plan = build_plan(product(), DeviceProps{}, {}, nullptr, false);
  const auto key = [&](const CompileOptions& options) {
    return tuning_key(plan->lowered, plan->steps[0].region, plan->device, {}, options);
  };
  const float value = 0;
  const CompileOptions constant{.constants = {{"b", &value}}};
  EXPECT_EQ(key({}), key({.tune = true}));
  EXPECT_NE(key({}), key({.tune_back_to_back = true}));
  EXPECT_NE(key({}), key(constant));
}

TEST(Choice, ConstantsAreReadOnce) {
  std::vector<float> b = {1, 0, 0, 1, 1, 1};
  EXPECT_EQ(run({.constants = {{"b", b.data()}}}), kProduct);
  // Prepacked constants do not follow later changes of the caller's memory.
  const Plan plan = compile(product(), Device::cpu(), {.constants = {{"b", b.data()}}});
  b.assign(6, 0.0f);
  std::vector<float> a = {1, 2, 3, 4, 5, 6}, other = {1, 0, 0, 1, 1, 1}, c(4);
  alignas(64) static std::byte workspace[1 << 20];
  plan.run({{"a", a.data()}, {"b", other.data()}, {"c", c.data()}}, workspace);
  EXPECT_EQ(c, kProduct);
  // The same for a loaded plan, which gets its constants again.
  const Plan loaded = Plan::from_json(plan.to_json(), {{"b", other.data()}});
  other.assign(6, 0.0f);
  c.assign(4, 0.0f);
  loaded.run({{"a", a.data()}, {"b", other.data()}, {"c", c.data()}}, workspace);
  EXPECT_EQ(c, kProduct);
}

TEST(Choice, ConstantsMustBeInputsWithMemory) {
  const float value = 0;
  EXPECT_THAT(message_of({.constants = {{"c", &value}}}), HasSubstr("got 'c'"));
  EXPECT_THAT(message_of({.constants = {{"x", &value}}}), HasSubstr("got 'x'"));
  EXPECT_THAT(message_of({.constants = {{"b", nullptr}}}), HasSubstr("got null for 'b'"));
}

}  // namespace
}  // namespace ashlar

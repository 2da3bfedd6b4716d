// Options and tuning through the C API.
#include <ashlar/inspect.hpp>

#include "capi/handles.hpp"

namespace ashlar {

namespace {

using testing::HasSubstr;
using testing::Not;

TEST(CApiOptions, TheEngineIsChosen) {
  const GraphHandle graph = conv_relu();
  const auto json_with = [&](const ashlar_compile_options& options) {
    const PlanHandle plan = compile_plan(graph.get(), &options);
    return text_of(ashlar_plan_to_json, static_cast<const ashlar_plan*>(plan.get()));
  };
  ashlar_compile_options options = default_options();
  EXPECT_THAT(json_with(options), Not(HasSubstr("cpu.reference")));
  options.engine = "cpu.reference";
  EXPECT_THAT(json_with(options), HasSubstr("cpu.reference"));
}

TEST(CApiOptions, StructsOfANewerVersionAreRead) {
  struct {
    ashlar_compile_options known = default_options();
    int64_t unknown = 99;
  } options;
  options.known.size = sizeof options;
  options.known.fuse = 0;
  const GraphHandle graph = conv_relu();
  const PlanHandle plan = compile_plan(graph.get(), &options.known);
  int32_t regions = 0;
  EXPECT_OK(ashlar_plan_region_count(plan.get(), &regions));
  EXPECT_EQ(regions, 2);
}

// A prepacked constant is not read again: the result ignores what its memory holds later.
TEST(CApiOptions, ConstantsAreReadOnce) {
  const GraphHandle graph = matmul_graph(64, 256, 256);
  const PlanHandle plain = compile_plan(graph.get());
  BoundMemory memory(graph.get(), plain.get());
  const char* names[] = {"b"};
  const void* data[] = {memory.pointers[1]};
  ashlar_compile_options options = default_options();
  options.constant_names = names;
  options.constant_data = data;
  options.constant_count = 1;
  const PlanHandle plan = compile_plan(graph.get(), &options);
  int64_t size = 0;
  EXPECT_OK(ashlar_plan_workspace_size(plan.get(), &size));
  memory.workspace.resize(static_cast<std::size_t>(size / 64 + 1));
  const auto run = [&](const PlanHandle& one) {
    EXPECT_OK(ashlar_plan_run(one.get(), memory.pointers.data(), memory.count(),
                              memory.workspace.data(), nullptr));
    return memory.storage[2];
  };
  const std::vector<std::byte> expected = run(plan);
  const std::string json = text_of(ashlar_plan_to_json, static_cast<ashlar_plan*>(plan.get()));
  ashlar_plan* raw = nullptr;
  ASSERT_OK(ashlar_plan_from_json_with_constants(json.data(), json.size(), names, data, 1, &raw));
  const PlanHandle loaded(raw);
  std::fill(memory.storage[1].begin(), memory.storage[1].end(), std::byte{0});
  EXPECT_EQ(run(plan), expected);
  EXPECT_EQ(run(loaded), expected);
}

TEST(CApiOptions, MisuseIsRefused) {
  const GraphHandle graph = conv_relu();
  ashlar_plan* plan = nullptr;
  const auto refused = [&](const char* part, auto&& change) {
    ashlar_compile_options options = default_options();
    change(options);
    EXPECT_REFUSED(ashlar_compile(graph.get(), &options, &plan), ASHLAR_INVALID_ARGUMENT, part);
  };
  const char* names[] = {nullptr};
  const char* unknown[] = {"unknown"};
  const void* data[] = {"0123"};
  refused("max_candidates: got -1", [](auto& o) { o.max_candidates = -1; });
  refused("constant_names: got a null pointer", [&](auto& o) { o.constant_count = 1; });
  refused("constant_data: got a null pointer", [&](auto& o) {
    o.constant_names = unknown;
    o.constant_count = 1;
  });
  refused("constant_names: got a null pointer", [&](auto& o) {
    o.constant_names = names;
    o.constant_data = data;
    o.constant_count = 1;
  });
  refused("unknown", [&](auto& o) {
    o.constant_names = unknown;
    o.constant_data = data;
    o.constant_count = 1;
  });
  refused("constant_names: got -2 values", [](auto& o) { o.constant_count = -2; });
  refused("_init function", [](auto& o) { o.size = 8; });
  EXPECT_EQ(plan, nullptr);
}

TEST(CApiTune, CandidatesEqualThoseOfCpp) {
  const GraphHandle graph = conv_relu();
  const std::vector<RegionInspection> expected =
      inspect(in_cpp(graph.get()), Device::cpu(), {}, {.candidates = true}).regions;
  ashlar_trials* raw = nullptr;
  ASSERT_OK(ashlar_candidates(graph.get(), nullptr, &raw));
  const TrialsHandle trials(raw);
  int32_t count = 0;
  ASSERT_OK(ashlar_trials_region_count(trials.get(), &count));
  ASSERT_EQ(static_cast<std::size_t>(count), expected.size());
  for (int32_t r = 0; r < count; ++r) {
    const RegionInspection& region = expected[static_cast<std::size_t>(r)];
    ashlar_region_trials found;
    ashlar_region_trials_init(&found);
    ASSERT_OK(ashlar_trials_region(trials.get(), r, &found));
    EXPECT_EQ(found.region, region.name);
    EXPECT_EQ(found.remembered, 0);
    ASSERT_EQ(static_cast<std::size_t>(found.trials), region.candidates.size());
    for (int32_t i = 0; i < found.trials; ++i) {
      const Trial& one = region.candidates[static_cast<std::size_t>(i)];
      ashlar_trial trial;
      ashlar_trial_init(&trial);
      ASSERT_OK(ashlar_trials_get(trials.get(), r, i, &trial));
      EXPECT_EQ(trial.engine, one.engine);
      EXPECT_EQ(trial.config, one.config_text());
      EXPECT_EQ(trial.estimated, one.estimated);
      EXPECT_LT(trial.measured, 0);
    }
  }
  ashlar_trial trial;
  ashlar_trial_init(&trial);
  EXPECT_REFUSED(ashlar_trials_get(trials.get(), count, 0, &trial), ASHLAR_INVALID_ARGUMENT,
                 "index: got ");
  EXPECT_REFUSED(ashlar_trials_get(trials.get(), 0, -1, &trial), ASHLAR_INVALID_ARGUMENT,
                 "index: got -1");
}

TEST(CApiTune, TrialsAreTimedAndReported) {
  const GraphHandle graph = conv_relu();
  std::vector<std::string> said;
  ashlar_compile_options options = default_options();
  options.max_candidates = 1;
  ashlar_trials* raw = nullptr;
  ASSERT_OK(ashlar_autotune(
      graph.get(), &options, 1,
      [](const char* what, void* context) {
        static_cast<std::vector<std::string>*>(context)->emplace_back(what);
      },
      &said, &raw));
  const TrialsHandle trials(raw);
  ashlar_region_trials region;
  ashlar_region_trials_init(&region);
  ASSERT_OK(ashlar_trials_region(trials.get(), 0, &region));
  EXPECT_EQ(region.trials, 1);
  ashlar_trial trial;
  ashlar_trial_init(&trial);
  ASSERT_OK(ashlar_trials_get(trials.get(), 0, region.best, &trial));
  EXPECT_GT(trial.measured, 0) << trial.failure;
  ASSERT_EQ(said.size(), 1u);
  EXPECT_THAT(said[0], HasSubstr(trial.engine));

  options.device = "h200";
  raw = nullptr;
  EXPECT_REFUSED(ashlar_autotune(graph.get(), &options, 0, nullptr, nullptr, &raw), ASHLAR_DEVICE,
                 "not present");
  EXPECT_EQ(raw, nullptr);
}

}  // namespace

}  // namespace ashlar

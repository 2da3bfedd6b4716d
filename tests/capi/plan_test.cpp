// Plans, engines and the oracle through the C API.
#include <ashlar/plan.hpp>

#include "capi/handles.hpp"

namespace ashlar {

namespace {

using testing::HasSubstr;

TEST(CApiPlan, RunsAndIsCheckedByTheOracle) {
  const GraphHandle graph = conv_relu();
  const PlanHandle plan = compile_plan(graph.get());
  BoundMemory memory(graph.get(), plan.get());
  ASSERT_OK(ashlar_plan_run(plan.get(), memory.pointers.data(), memory.count(),
                            memory.workspace.data(), nullptr));

  ashlar_comparison worst;
  ashlar_comparison_init(&worst);
  char sentence[512];
  ASSERT_OK(ashlar_check(graph.get(), memory.readable(), memory.count(), &worst, sentence,
                         sizeof sentence, nullptr));
  EXPECT_EQ(worst.ok, 1) << sentence;
  EXPECT_EQ(worst.compared, 2 * 8 * 6 * 6);
  EXPECT_THAT(sentence, HasSubstr("y: "));

  int32_t y = 0;
  ASSERT_OK(ashlar_graph_find_tensor(graph.get(), "y", &y));
  ASSERT_OK(ashlar_write_element(graph.get(), y, memory.pointers.back(), 17, 1e6));
  ASSERT_OK(ashlar_check(graph.get(), memory.readable(), memory.count(), &worst, sentence,
                         sizeof sentence, nullptr));
  EXPECT_EQ(worst.ok, 0);
  EXPECT_EQ(worst.mismatches, 1);
  EXPECT_EQ(worst.worst_index, 17);
}

TEST(CApiPlan, RunByUidMatchesRun) {
  const GraphHandle graph = conv_relu();
  const PlanHandle plan = compile_plan(graph.get());
  BoundMemory a(graph.get(), plan.get());
  BoundMemory b(graph.get(), plan.get());
  ASSERT_OK(ashlar_plan_run(plan.get(), a.pointers.data(), a.count(), a.workspace.data(), nullptr));
  std::vector<int64_t> uids(b.uids.rbegin(), b.uids.rend());
  std::vector<void*> pointers(b.pointers.rbegin(), b.pointers.rend());
  ASSERT_OK(ashlar_plan_run_by_uid(plan.get(), uids.data(), pointers.data(), b.count(),
                                   b.workspace.data(), nullptr));
  EXPECT_EQ(a.storage, b.storage);
  uids[0] = 123456;
  EXPECT_REFUSED(ashlar_plan_run_by_uid(plan.get(), uids.data(), pointers.data(), b.count(),
                                        b.workspace.data(), nullptr),
                 ASHLAR_INVALID_ARGUMENT, "123456");
}

TEST(CApiPlan, ReferenceReturnsValuesAndBounds) {
  const GraphHandle graph = conv_relu();
  const PlanHandle plan = compile_plan(graph.get());
  BoundMemory memory(graph.get(), plan.get());
  ASSERT_OK(ashlar_plan_run(plan.get(), memory.pointers.data(), memory.count(),
                            memory.workspace.data(), nullptr));
  int32_t y = 0;
  ASSERT_OK(ashlar_graph_find_tensor(graph.get(), "y", &y));
  std::vector<double> values(2 * 8 * 6 * 6), bounds(values.size());
  const auto count = static_cast<int64_t>(values.size());
  ASSERT_OK(ashlar_reference(graph.get(), memory.readable(), memory.count(), y, values.data(),
                             bounds.data(), count));
  for (int64_t i = 0; i < count; ++i) {
    double actual = 0;
    ASSERT_OK(ashlar_read_element(graph.get(), y, memory.pointers.back(), i, &actual));
    EXPECT_NEAR(actual, values[static_cast<std::size_t>(i)], bounds[static_cast<std::size_t>(i)]);
  }
  EXPECT_REFUSED(ashlar_reference(graph.get(), memory.readable(), memory.count(), y, values.data(),
                                  nullptr, 3),
                 ASHLAR_INVALID_ARGUMENT, "count: got 3");
  EXPECT_REFUSED(ashlar_reference(graph.get(), memory.readable(), memory.count(), 0, values.data(),
                                  nullptr, count),
                 ASHLAR_INVALID_ARGUMENT, "not an output");
}

TEST(CApiPlan, RecomputeOptions) {
  const GraphHandle graph = conv_relu();
  ashlar_compile_options options = default_options();
  const auto explained = [&] {
    return text_of(ashlar_explain, static_cast<const ashlar_graph*>(graph.get()),
                   static_cast<const ashlar_compile_options*>(&options));
  };
  options.recompute = "cheap";
  EXPECT_THAT(explained(), HasSubstr("recomputed nothing"));
  options.recompute_budget = 1 << 30;
  EXPECT_THAT(explained(), HasSubstr("within the budget"));
  ashlar_plan* plan = nullptr;
  options.recompute_budget = -1;
  EXPECT_REFUSED(ashlar_compile(graph.get(), &options, &plan), ASHLAR_INVALID_ARGUMENT,
                 "recompute_budget: got -1");
  options.recompute = "some";
  EXPECT_REFUSED(ashlar_compile(graph.get(), &options, &plan), ASHLAR_INVALID_ARGUMENT,
                 "recompute: got 'some', expected one of: none, cheap, all");
}

TEST(CApiPlan, InPlaceOutputs) {
  const GraphHandle graph = matmul_graph(4, 4, 4);
  ashlar_compile_options options = default_options();
  const char* outputs[] = {"c"};
  const char* inputs[] = {"a"};
  options.in_place_outputs = outputs;
  options.in_place_inputs = inputs;
  options.in_place_count = 1;
  EXPECT_THAT(text_of(ashlar_explain, static_cast<const ashlar_graph*>(graph.get()),
                      static_cast<const ashlar_compile_options*>(&options)),
              HasSubstr("in-place output 'c' is copied last"));
  ashlar_plan* plan = nullptr;
  inputs[0] = "q";
  EXPECT_REFUSED(ashlar_compile(graph.get(), &options, &plan), ASHLAR_INVALID_ARGUMENT,
                 "in_place: got 'q', expected the name of an input");
  options.in_place_inputs = nullptr;
  EXPECT_REFUSED(ashlar_compile(graph.get(), &options, &plan), ASHLAR_INVALID_ARGUMENT,
                 "in_place_inputs");
}

TEST(CApiPlan, OptionsNotesAndJson) {
  const GraphHandle graph = conv_relu();
  ashlar_compile_options options;
  ashlar_compile_options_init(&options);
  options.device = "cpu";
  options.fuse = 0;
  options.reference_only = 1;
  options.deterministic = 1;
  options.workspace_limit = 0;
  const PlanHandle plan = compile_plan(graph.get(), &options);
  int32_t regions = 0;
  EXPECT_OK(ashlar_plan_region_count(plan.get(), &regions));
  EXPECT_EQ(regions, 2);
  int64_t bytes = -1;
  EXPECT_OK(ashlar_plan_workspace_size(plan.get(), &bytes));
  EXPECT_EQ(bytes, 0);
  EXPECT_OK(ashlar_plan_owned_bytes(plan.get(), &bytes));
  EXPECT_GT(bytes, 0);
  ashlar_plan_notes notes;
  ashlar_plan_notes_init(&notes);
  EXPECT_OK(ashlar_plan_get_notes(plan.get(), &notes));
  EXPECT_EQ(notes.deterministic, 1);
  EXPECT_THAT(text_of(ashlar_plan_explain, plan.get()), HasSubstr("reference"));
  EXPECT_THAT(text_of(ashlar_explain, static_cast<const ashlar_graph*>(graph.get()),
                      static_cast<const ashlar_compile_options*>(&options)),
              HasSubstr("reference"));

  const std::string json = text_of(ashlar_plan_to_json, plan.get());
  ashlar_plan* raw = nullptr;
  ASSERT_OK(ashlar_plan_from_json(json.data(), json.size(), &raw));
  const PlanHandle loaded(raw);
  EXPECT_EQ(text_of(ashlar_plan_to_json, loaded.get()), json);
}

TEST(CApiLibrary, NamesDevicesAndEngines) {
  EXPECT_STREQ(ashlar_version(), ASHLAR_VERSION);
  int32_t count = 0;
  ASSERT_OK(ashlar_device_count(&count));
  ASSERT_GE(count, 1);
  std::vector<std::string> names;
  for (int32_t i = 0; i < count; ++i) names.push_back(text_of(ashlar_device_name, i));
  EXPECT_EQ(names, Device::known_names());
  int present = 0;
  EXPECT_OK(ashlar_device_present("cpu", &present));
  EXPECT_EQ(present, 1);
  ASSERT_OK(ashlar_engine_count("cpu", &count));
  ASSERT_EQ(static_cast<std::size_t>(count), engines(DeviceKind::cpu).size());
  const std::string last =
      text_of(ashlar_engine_text, "cpu", count - 1, ashlar_engine_field{ASHLAR_ENGINE_ID});
  EXPECT_EQ(last, engines(DeviceKind::cpu).back().id);
  EXPECT_REFUSED(ashlar_device_present("abacus", &present), ASHLAR_INVALID_ARGUMENT, "abacus");
  EXPECT_REFUSED(ashlar_engine_text("cpu", count, ASHLAR_ENGINE_ID, nullptr, 0, nullptr),
                 ASHLAR_INVALID_ARGUMENT, "index");
  EXPECT_REFUSED(ashlar_engine_text("cpu", 0, 77, nullptr, 0, nullptr), ASHLAR_INVALID_ARGUMENT,
                 "field: got 77");
}

TEST(CApiLibrary, EveryStatusHasAName) {
  for (ashlar_status status = ASHLAR_OK; status <= ASHLAR_INTERNAL; ++status)
    EXPECT_STRNE(ashlar_status_name(status), "unknown status");
  EXPECT_STREQ(ashlar_status_name(99), "unknown status");
  EXPECT_STREQ(ashlar_status_name(-1), "unknown status");
}

}  // namespace

}  // namespace ashlar

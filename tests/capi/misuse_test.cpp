// The C API reports misuse as an error.
#include <thread>

#include "capi/handles.hpp"

namespace ashlar {

namespace {

using testing::HasSubstr;

TEST(CApiMisuse, NullHandlesAndPointersAreReported) {
  const GraphHandle graph = conv_relu();
  const NodeHandle node = new_node("matmul");
  ashlar_graph* g = nullptr;
  ashlar_plan* p = nullptr;
  ashlar_node* n = nullptr;
  ashlar_tensor tensor;
  ashlar_tensor_init(&tensor);
  int32_t id = 0;
  int64_t bytes = 0;
  const auto refused = [](ashlar_status status) {
    EXPECT_EQ(status, ASHLAR_INVALID_ARGUMENT);
    EXPECT_THAT(ashlar_last_error(), HasSubstr("null pointer"));
  };
  refused(ashlar_graph_create("g", nullptr));
  refused(ashlar_graph_from_json(nullptr, 10, &g));
  refused(ashlar_graph_from_json("{}", 2, nullptr));
  refused(ashlar_graph_clone(nullptr, &g));
  refused(ashlar_graph_to_json(nullptr, nullptr, 0, nullptr));
  refused(ashlar_graph_to_text(nullptr, nullptr, 0, nullptr));
  refused(ashlar_graph_validate(nullptr));
  refused(ashlar_graph_hash(graph.get(), nullptr));
  refused(ashlar_graph_add_tensor(nullptr, &tensor, &id));
  refused(ashlar_graph_add_tensor(graph.get(), nullptr, &id));
  refused(ashlar_graph_add_tensor(graph.get(), &tensor, nullptr));
  refused(ashlar_graph_get_tensor(graph.get(), 0, nullptr));
  refused(ashlar_graph_find_tensor(graph.get(), nullptr, &id));
  refused(ashlar_graph_tensor_bytes(graph.get(), 0, nullptr));
  refused(ashlar_node_create(nullptr, nullptr, &n));
  refused(ashlar_node_create("matmul", nullptr, nullptr));
  refused(ashlar_node_set_int(nullptr, "axis", 1));
  refused(ashlar_node_set_int(node.get(), nullptr, 1));
  refused(ashlar_node_set_ints(node.get(), "padding", nullptr, 2));
  refused(ashlar_node_set_string(node.get(), "mode", nullptr));
  refused(ashlar_node_set_input(nullptr, "a", 0));
  refused(ashlar_node_set_input(node.get(), nullptr, 0));
  refused(ashlar_graph_add_node(graph.get(), nullptr, nullptr));
  refused(ashlar_compile(nullptr, nullptr, &p));
  refused(ashlar_compile(graph.get(), nullptr, nullptr));
  refused(ashlar_plan_from_json(nullptr, 0, &p));
  refused(ashlar_plan_workspace_size(nullptr, &bytes));
  refused(ashlar_plan_run(nullptr, nullptr, 0, nullptr, nullptr));
  refused(ashlar_check(graph.get(), nullptr, 3, nullptr, nullptr, 0, nullptr));
  refused(ashlar_read_element(graph.get(), 0, nullptr, 0, nullptr));
  ashlar_graph_destroy(nullptr);
  ashlar_node_destroy(nullptr);
  ashlar_plan_destroy(nullptr);
  ashlar_tensor_init(nullptr);
  ashlar_compile_options_init(nullptr);
}

TEST(CApiMisuse, NullHandlesOfOtherPartsAreReported) {
  const GraphHandle graph = conv_relu();
  const PlanHandle plan = compile_plan(graph.get());
  ashlar_trials* trials = nullptr;
  ashlar_inspection* inspection = nullptr;
  ashlar_bundle* bundle = nullptr;
  ashlar_bundle_builder* builder = nullptr;
  ashlar_memory* memory = nullptr;
  ashlar_timer* timer = nullptr;
  int32_t count = 0;
  int64_t bytes = 0;
  double seconds = 0;
  void* data = nullptr;
  const char* text = nullptr;
  const auto refused = [](ashlar_status status) {
    EXPECT_EQ(status, ASHLAR_INVALID_ARGUMENT);
    EXPECT_THAT(ashlar_last_error(), HasSubstr("null pointer"));
  };
  refused(ashlar_graph_name(nullptr, &text));
  refused(ashlar_graph_bound_count(graph.get(), nullptr));
  refused(ashlar_graph_bound_tensor(nullptr, 0, &count));
  refused(ashlar_plan_graph(plan.get(), nullptr));
  refused(ashlar_plan_device(nullptr, nullptr, 0, nullptr));
  refused(ashlar_plan_flops(plan.get(), nullptr));
  refused(ashlar_plan_find_bound(plan.get(), nullptr, &count));
  refused(ashlar_plan_region_seconds(plan.get(), nullptr, 3, nullptr, nullptr, &seconds, 1));
  refused(ashlar_plan_populate_cuda_graph(nullptr, &data, &data, 1, nullptr));
  refused(ashlar_plan_from_json_with_constants("{}", 2, nullptr, nullptr, 0, nullptr));
  refused(ashlar_device_get_props("cpu", nullptr));
  refused(ashlar_memory_create("cpu", 4, nullptr));
  refused(ashlar_memory_data(nullptr, &data));
  refused(ashlar_memory_fill(memory, 0));
  refused(ashlar_memory_bytes(memory, &bytes));
  refused(ashlar_timer_create("cpu", nullptr));
  refused(ashlar_timer_start(timer, nullptr));
  refused(ashlar_timer_seconds(timer, &seconds));
  refused(ashlar_candidates(nullptr, nullptr, &trials));
  refused(ashlar_candidates(graph.get(), nullptr, nullptr));
  refused(ashlar_autotune(graph.get(), nullptr, 0, nullptr, nullptr, nullptr));
  refused(ashlar_trials_region_count(trials, &count));
  refused(ashlar_trials_region(trials, 0, nullptr));
  refused(ashlar_inspect(graph.get(), nullptr, nullptr));
  refused(ashlar_plan_inspect(nullptr, &inspection));
  refused(ashlar_inspection_region(inspection, 0, nullptr));
  refused(ashlar_inspection_text(inspection, nullptr, 0, nullptr));
  refused(ashlar_bundle_read(nullptr, &bundle));
  refused(ashlar_bundle_get_info(bundle, nullptr));
  refused(ashlar_bundle_kernel(bundle, 0, &text, &bytes));
  refused(ashlar_bundle_builder_create(nullptr, &builder));
  refused(ashlar_bundle_builder_create("sm_90a", nullptr));
  refused(ashlar_bundle_builder_add(builder, graph.get(), nullptr));
  refused(ashlar_bundle_builder_write(builder, "file", nullptr, nullptr));
  ashlar_memory_destroy(nullptr);
  ashlar_timer_destroy(nullptr);
  ashlar_trials_destroy(nullptr);
  ashlar_inspection_destroy(nullptr);
  ashlar_bundle_destroy(nullptr);
  ashlar_bundle_builder_destroy(nullptr);
  ashlar_device_props_init(nullptr);
  ashlar_trial_init(nullptr);
}

TEST(CApiMisuse, StructsWithoutASizeAreReported) {
  const GraphHandle graph = conv_relu();
  ashlar_trials* raw = nullptr;
  ASSERT_OK(ashlar_candidates(graph.get(), nullptr, &raw));
  const TrialsHandle trials(raw);
  ashlar_inspection* inspection = nullptr;
  ASSERT_OK(ashlar_inspect(graph.get(), nullptr, &inspection));
  const InspectionHandle owned(inspection);
  const auto refused = [](ashlar_status status) {
    EXPECT_EQ(status, ASHLAR_INVALID_ARGUMENT);
    EXPECT_THAT(ashlar_last_error(), HasSubstr("call its _init function first"));
  };
  ashlar_device_props props{};
  refused(ashlar_device_get_props("cpu", &props));
  ashlar_region_trials region{};
  refused(ashlar_trials_region(raw, 0, &region));
  ashlar_trial trial{};
  refused(ashlar_trials_get(raw, 0, 0, &trial));
  ashlar_inspected_plan whole{};
  refused(ashlar_inspection_plan(inspection, &whole));
  ashlar_inspected_region explained{};
  refused(ashlar_inspection_region(inspection, 0, &explained));
  ashlar_engine_attempt attempt{};
  refused(ashlar_inspection_attempt(inspection, 0, 0, &attempt));
  ashlar_plan_notes notes{};
  refused(ashlar_inspection_notes(inspection, &notes));
}

TEST(CApiMisuse, UnknownNamesListTheValidOnes) {
  ashlar_node* raw = nullptr;
  EXPECT_REFUSED(ashlar_node_create("matmull", nullptr, &raw), ASHLAR_PARSE, "conv_forward");
  EXPECT_EQ(raw, nullptr);
  const NodeHandle conv = new_node("conv_forward");
  EXPECT_REFUSED(ashlar_node_set_int(conv.get(), "paddling", 1), ASHLAR_INVALID_ARGUMENT,
                 "conv_forward has no attribute 'paddling', expected one of: padding");
  EXPECT_REFUSED(ashlar_node_set_int(conv.get(), "padding", 1), ASHLAR_INVALID_ARGUMENT,
                 "attribute 'padding': got an integer, expected a list of integers");
  EXPECT_REFUSED(ashlar_node_set_double(conv.get(), "mode", 1), ASHLAR_INVALID_ARGUMENT,
                 "expected a string");
  EXPECT_REFUSED(ashlar_node_set_string(conv.get(), "mode", "sideways"), ASHLAR_INVALID_ARGUMENT,
                 "got 'sideways', expected one of: cross_correlation, convolution");
  EXPECT_REFUSED(ashlar_node_set_input(conv.get(), "q", 0), ASHLAR_INVALID_ARGUMENT,
                 "conv_forward has no input 'q', expected one of: x, w, z");
  EXPECT_REFUSED(ashlar_node_set_output(conv.get(), "x", 0), ASHLAR_INVALID_ARGUMENT,
                 "expected one of: y");
  EXPECT_REFUSED(ashlar_node_append_input(conv.get(), "x", 0), ASHLAR_INVALID_ARGUMENT,
                 "takes one tensor");
  const int64_t many[9] = {};
  EXPECT_EQ(ashlar_node_set_ints(conv.get(), "padding", many, 9), ASHLAR_INVALID_ARGUMENT);
  EXPECT_EQ(ashlar_node_set_ints(conv.get(), "padding", many, -1), ASHLAR_INVALID_ARGUMENT);
  const NodeHandle attention = new_node("attention_forward");
  EXPECT_REFUSED(ashlar_node_set_int(attention.get(), "score_modifier", 1), ASHLAR_INVALID_ARGUMENT,
                 "got an integer, expected a string holding the JSON list of steps");
  EXPECT_REFUSED(ashlar_node_set_string(attention.get(), "score_modifier", "[{\"mode\": \"tan\"}"),
                 ASHLAR_PARSE, "expected");
  EXPECT_REFUSED(
      ashlar_node_set_string(attention.get(), "score_modifier", "[{\"mode\": \"tangent\"}]"),
      ASHLAR_PARSE, "score_modifier[0].mode: got \"tangent\", expected one of: add");
  EXPECT_REFUSED(ashlar_node_set_compute(conv.get(), 50), ASHLAR_INVALID_ARGUMENT, "dtype: got 50");
}

TEST(CApiMisuse, BadTensorsLeaveTheGraphAsItWas) {
  const GraphHandle graph = conv_relu();
  const std::string before = text_of(ashlar_graph_to_json, graph.get());
  int32_t id = 77;
  const auto attempt = [&](auto&& change) {
    ashlar_tensor tensor;
    ashlar_tensor_init(&tensor);
    tensor.kind = ASHLAR_INPUT;
    tensor.dtype = ASHLAR_F32;
    tensor.rank = 1;
    tensor.dims[0] = 4;
    change(tensor);
    return ashlar_graph_add_tensor(graph.get(), &tensor, &id);
  };
  EXPECT_REFUSED(attempt([](auto& t) { t.size = 3; }), ASHLAR_INVALID_ARGUMENT, "_init function");
  EXPECT_REFUSED(attempt([](auto& t) { t.kind = 9; }), ASHLAR_INVALID_ARGUMENT, "kind: got 9");
  EXPECT_REFUSED(attempt([](auto& t) { t.dtype = 44; }), ASHLAR_INVALID_ARGUMENT, "dtype: got 44");
  EXPECT_REFUSED(attempt([](auto& t) { t.dtype = ASHLAR_DTYPE_INFER; }), ASHLAR_INVALID_ARGUMENT,
                 "computed tensors");
  EXPECT_REFUSED(attempt([](auto& t) { t.rank = 9; }), ASHLAR_INVALID_ARGUMENT, "rank: got 9");
  EXPECT_REFUSED(attempt([](auto& t) { t.layout = 5; }), ASHLAR_INVALID_ARGUMENT, "layout: got 5");
  EXPECT_NE(attempt([](auto& t) { t.dims[0] = -4; }), ASHLAR_OK);
  EXPECT_NE(attempt([](auto& t) { t.ragged_offset = 5000; }), ASHLAR_OK);
  EXPECT_EQ(id, 77);
  EXPECT_EQ(text_of(ashlar_graph_to_json, graph.get()), before);
}

TEST(CApiMisuse, BadNodesLeaveTheGraphAsItWas) {
  const GraphHandle graph = conv_relu();
  const std::string before = text_of(ashlar_graph_to_json, graph.get());
  const NodeHandle node = new_node("matmul");
  EXPECT_NE(ashlar_graph_add_node(graph.get(), node.get(), nullptr), ASHLAR_OK);
  EXPECT_OK(ashlar_node_set_input(node.get(), "a", 0));
  EXPECT_OK(ashlar_node_set_input(node.get(), "b", 12345));
  EXPECT_NE(ashlar_graph_add_node(graph.get(), node.get(), nullptr), ASHLAR_OK);
  EXPECT_EQ(text_of(ashlar_graph_to_json, graph.get()), before);
}

TEST(CApiMisuse, SmallBuffersAreNotWritten) {
  const GraphHandle graph = conv_relu();
  char buffer[4] = "abc";
  std::size_t needed = 0;
  EXPECT_REFUSED(ashlar_graph_to_json(graph.get(), buffer, sizeof buffer, &needed),
                 ASHLAR_INVALID_ARGUMENT, "buffer");
  EXPECT_STREQ(buffer, "abc");
  EXPECT_EQ(needed, text_of(ashlar_graph_to_json, graph.get()).size() + 1);
}

TEST(CApiMisuse, BadJsonAndBadRuns) {
  ashlar_graph* raw_graph = nullptr;
  EXPECT_EQ(ashlar_graph_from_json("{", 1, &raw_graph), ASHLAR_PARSE);
  ashlar_plan* raw_plan = nullptr;
  EXPECT_EQ(ashlar_plan_from_json("[]", 2, &raw_plan), ASHLAR_PARSE);
  const GraphHandle empty = new_graph();
  EXPECT_EQ(ashlar_compile(empty.get(), nullptr, &raw_plan), ASHLAR_INVALID_GRAPH);
  const GraphHandle graph = conv_relu();
  ashlar_compile_options options;
  ashlar_compile_options_init(&options);
  options.workspace_limit = -5;
  EXPECT_REFUSED(ashlar_compile(graph.get(), &options, &raw_plan), ASHLAR_INVALID_ARGUMENT,
                 "workspace_limit: got -5");
  ashlar_compile_options_init(&options);
  options.device = "abacus";
  EXPECT_REFUSED(ashlar_compile(graph.get(), &options, &raw_plan), ASHLAR_INVALID_ARGUMENT,
                 "abacus");
  EXPECT_EQ(raw_plan, nullptr);

  const PlanHandle plan = compile_plan(graph.get());
  BoundMemory memory(graph.get(), plan.get());
  EXPECT_EQ(
      ashlar_plan_run(plan.get(), memory.pointers.data(), 1, memory.workspace.data(), nullptr),
      ASHLAR_INVALID_ARGUMENT);
  memory.pointers[0] = nullptr;
  EXPECT_EQ(ashlar_plan_run(plan.get(), memory.pointers.data(), memory.count(),
                            memory.workspace.data(), nullptr),
            ASHLAR_INVALID_ARGUMENT);
  EXPECT_REFUSED(
      ashlar_check(graph.get(), memory.readable(), memory.count(), nullptr, nullptr, 0, nullptr),
      ASHLAR_INVALID_ARGUMENT, "null pointer for tensor 'x'");
}

TEST(CApiMisuse, LastErrorIsPerThread) {
  ashlar_graph_validate(nullptr);
  EXPECT_THAT(ashlar_last_error(), HasSubstr("null pointer"));
  std::thread([] { EXPECT_STREQ(ashlar_last_error(), ""); }).join();
}

}  // namespace

}  // namespace ashlar

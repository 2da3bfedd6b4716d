// Inspections, and what plans say about themselves, through the C API.
#include <ashlar/inspect.hpp>

#include "capi/handles.hpp"

namespace ashlar {

namespace {

TEST(CApiPlan, RegionsAreTimed) {
  const GraphHandle graph = conv_relu();
  ashlar_compile_options options = default_options();
  options.fuse = 0;
  const PlanHandle plan = compile_plan(graph.get(), &options);
  BoundMemory memory(graph.get(), plan.get());
  double seconds[2] = {-1, -1};
  ASSERT_OK(ashlar_plan_region_seconds(plan.get(), memory.pointers.data(), memory.count(),
                                       memory.workspace.data(), nullptr, seconds, 2));
  EXPECT_GT(seconds[0], 0);
  EXPECT_GT(seconds[1], 0);
  EXPECT_REFUSED(ashlar_plan_region_seconds(plan.get(), memory.pointers.data(), memory.count(),
                                            memory.workspace.data(), nullptr, seconds, 1),
                 ASHLAR_INVALID_ARGUMENT, "region_count: got 1, the plan has 2 regions");
}

TEST(CApiPlan, DescribesItself) {
  const GraphHandle graph = conv_relu();
  const PlanHandle plan = compile_plan(graph.get());
  EXPECT_EQ(text_of(ashlar_plan_device, static_cast<const ashlar_plan*>(plan.get())), "cpu");
  double flops = 0;
  EXPECT_OK(ashlar_plan_flops(plan.get(), &flops));
  EXPECT_GT(flops, 2.0 * 2 * 8 * 6 * 6 * 4 * 9 * 0.5);
  int32_t index = -1;
  EXPECT_OK(ashlar_plan_find_bound(plan.get(), "y", &index));
  EXPECT_EQ(index, 2);
  EXPECT_REFUSED(ashlar_plan_find_bound(plan.get(), "product", &index), ASHLAR_INVALID_ARGUMENT,
                 "no bound tensor 'product'");
  int32_t count = 0, id = -1;
  EXPECT_OK(ashlar_graph_bound_count(graph.get(), &count));
  EXPECT_EQ(count, 3);
  EXPECT_OK(ashlar_graph_bound_tensor(graph.get(), 2, &id));
  EXPECT_EQ(id, 3);
  const char* name = nullptr;
  EXPECT_OK(ashlar_graph_name(graph.get(), &name));
  EXPECT_STREQ(name, "test");
  ashlar_graph* copy = nullptr;
  ASSERT_OK(ashlar_plan_graph(plan.get(), &copy));
  const GraphHandle owned(copy);
  EXPECT_EQ(text_of(ashlar_graph_to_text, static_cast<const ashlar_graph*>(copy)),
            text_of(ashlar_graph_to_text, static_cast<const ashlar_graph*>(graph.get())));
}

TEST(CApiPlan, CudaGraphsNeedAPlanForAGpu) {
  const GraphHandle graph = conv_relu();
  const PlanHandle plan = compile_plan(graph.get());
  BoundMemory memory(graph.get(), plan.get());
  int anything = 0;
  EXPECT_REFUSED(ashlar_plan_populate_cuda_graph(plan.get(), &anything, memory.pointers.data(),
                                                 memory.count(), nullptr),
                 ASHLAR_INVALID_ARGUMENT, "expected one for a GPU");
  EXPECT_REFUSED(ashlar_plan_update_cuda_graph(plan.get(), nullptr, memory.pointers.data(),
                                               memory.count(), nullptr),
                 ASHLAR_INVALID_ARGUMENT, "expected a CUDA graph");
}

TEST(CApiInspect, EqualsThatOfCpp) {
  const GraphHandle graph = conv_relu();
  ashlar_compile_options options = default_options();
  options.device = "h200";
  options.fuse = 0;
  const Inspection expected = inspect(in_cpp(graph.get()), Device::named("h200"), {.fuse = false});
  ashlar_inspection* raw = nullptr;
  ASSERT_OK(ashlar_inspect(graph.get(), &options, &raw));
  const InspectionHandle owned(raw);
  EXPECT_EQ(text_of(ashlar_inspection_text, static_cast<const ashlar_inspection*>(raw)),
            expected.to_text());
  ashlar_inspected_plan whole;
  ashlar_inspected_plan_init(&whole);
  ASSERT_OK(ashlar_inspection_plan(raw, &whole));
  EXPECT_EQ(whole.operations, 2);
  ASSERT_EQ(whole.regions, 2);
  EXPECT_EQ(whole.seconds, expected.seconds());
  EXPECT_EQ(static_cast<std::size_t>(whole.rewrites), expected.rewrites.size());
  for (int32_t r = 0; r < whole.regions; ++r) {
    const RegionInspection& region = expected.regions[static_cast<std::size_t>(r)];
    ashlar_inspected_region found;
    ashlar_inspected_region_init(&found);
    ASSERT_OK(ashlar_inspection_region(raw, r, &found));
    EXPECT_EQ(found.name, region.name);
    EXPECT_EQ(found.engine, region.engine);
    EXPECT_EQ(found.config, region.config);
    EXPECT_EQ(found.flops, region.flops);
    EXPECT_EQ(found.memory_seconds, region.memory_seconds);
    EXPECT_EQ(found.method, static_cast<int>(region.method));
    ASSERT_EQ(static_cast<std::size_t>(found.attempts), region.attempts.size());
    int chosen = 0;
    for (int32_t i = 0; i < found.attempts; ++i) {
      ashlar_engine_attempt attempt;
      ashlar_engine_attempt_init(&attempt);
      ASSERT_OK(ashlar_inspection_attempt(raw, r, i, &attempt));
      EXPECT_EQ(attempt.outcome, region.attempts[static_cast<std::size_t>(i)].outcome);
      if (attempt.is_chosen) {
        EXPECT_STREQ(attempt.engine, found.engine);
      }
      chosen += attempt.is_chosen;
    }
    EXPECT_EQ(chosen, 1);
    int32_t node = -1;
    ASSERT_OK(ashlar_inspection_node(raw, r, 0, &node));
    EXPECT_EQ(node, region.nodes[0]);
    EXPECT_REFUSED(ashlar_inspection_node(raw, r, found.nodes, &node), ASHLAR_INVALID_ARGUMENT,
                   "index");
    for (int32_t i = 0; i < found.boundaries; ++i) {
      ashlar_region_boundary boundary;
      ashlar_region_boundary_init(&boundary);
      ASSERT_OK(ashlar_inspection_boundary(raw, r, i, &boundary));
      EXPECT_STREQ(boundary.value, "product");
      EXPECT_EQ(boundary.reason, region.boundaries[static_cast<std::size_t>(i)].reason);
    }
  }
  ashlar_plan_notes notes;
  ashlar_plan_notes_init(&notes);
  EXPECT_OK(ashlar_inspection_notes(raw, &notes));
  EXPECT_EQ(notes.tf32 != 0, expected.notes.tf32);
}

TEST(CApiInspect, OfAPlanIsWhatThePlanSays) {
  const GraphHandle graph = conv_relu();
  const PlanHandle plan = compile_plan(graph.get());
  ashlar_inspection* raw = nullptr;
  ASSERT_OK(ashlar_plan_inspect(plan.get(), &raw));
  const InspectionHandle owned(raw);
  EXPECT_EQ(text_of(ashlar_inspection_text, static_cast<const ashlar_inspection*>(raw)),
            text_of(ashlar_plan_explain, static_cast<const ashlar_plan*>(plan.get())));
  ashlar_graph* copy = nullptr;
  ASSERT_OK(ashlar_inspection_graph(raw, &copy));
  const GraphHandle rewritten(copy);
  int32_t nodes = 0;
  EXPECT_OK(ashlar_graph_node_count(rewritten.get(), &nodes));
  EXPECT_EQ(nodes, 2);
  const char* sentence = nullptr;
  EXPECT_REFUSED(ashlar_inspection_rewrite(raw, 1000, &sentence), ASHLAR_INVALID_ARGUMENT,
                 "index: got 1000");
}

}  // namespace

}  // namespace ashlar

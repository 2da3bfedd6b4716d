// Owning handles and a small graph for the tests of the C API.
#pragma once

#include <ashlar/ashlar.h>
#include <gmock/gmock.h>

#include <ashlar/graph.hpp>
#include <memory>
#include <string>
#include <vector>

namespace ashlar {

struct Destroy {
  void operator()(ashlar_graph* graph) const { ashlar_graph_destroy(graph); }
  void operator()(ashlar_node* node) const { ashlar_node_destroy(node); }
  void operator()(ashlar_plan* plan) const { ashlar_plan_destroy(plan); }
  void operator()(ashlar_memory* memory) const { ashlar_memory_destroy(memory); }
  void operator()(ashlar_timer* timer) const { ashlar_timer_destroy(timer); }
  void operator()(ashlar_trials* trials) const { ashlar_trials_destroy(trials); }
  void operator()(ashlar_inspection* inspection) const { ashlar_inspection_destroy(inspection); }
  void operator()(ashlar_bundle* bundle) const { ashlar_bundle_destroy(bundle); }
  void operator()(ashlar_bundle_builder* builder) const { ashlar_bundle_builder_destroy(builder); }
};
using GraphHandle = std::unique_ptr<ashlar_graph, Destroy>;
using NodeHandle = std::unique_ptr<ashlar_node, Destroy>;
using PlanHandle = std::unique_ptr<ashlar_plan, Destroy>;
using MemoryHandle = std::unique_ptr<ashlar_memory, Destroy>;
using TimerHandle = std::unique_ptr<ashlar_timer, Destroy>;
using TrialsHandle = std::unique_ptr<ashlar_trials, Destroy>;
using InspectionHandle = std::unique_ptr<ashlar_inspection, Destroy>;
using BundleHandle = std::unique_ptr<ashlar_bundle, Destroy>;
using BundleBuilderHandle = std::unique_ptr<ashlar_bundle_builder, Destroy>;

#define ASSERT_OK(call) ASSERT_EQ(call, ASHLAR_OK) << ashlar_last_error()
#define EXPECT_OK(call) EXPECT_EQ(call, ASHLAR_OK) << ashlar_last_error()
// Expects the status and a part of the error message.
#define EXPECT_REFUSED(call, status, part)                      \
  do {                                                          \
    EXPECT_EQ(call, status) << ashlar_last_error();             \
    EXPECT_THAT(ashlar_last_error(), testing::HasSubstr(part)); \
  } while (false)

inline GraphHandle new_graph() {
  ashlar_graph* graph = nullptr;
  EXPECT_OK(ashlar_graph_create("test", &graph));
  return GraphHandle(graph);
}

inline NodeHandle new_node(const char* op) {
  ashlar_node* node = nullptr;
  EXPECT_OK(ashlar_node_create(op, nullptr, &node));
  return NodeHandle(node);
}

inline int32_t add_tensor(ashlar_graph* graph, const char* name, ashlar_tensor_kind kind,
                          ashlar_dtype dtype, const std::vector<int64_t>& dims,
                          ashlar_layout layout = ASHLAR_ROW_MAJOR) {
  ashlar_tensor tensor;
  ashlar_tensor_init(&tensor);
  tensor.name = name;
  tensor.kind = kind;
  tensor.dtype = dtype;
  tensor.layout = layout;
  tensor.rank = static_cast<int32_t>(dims.size());
  std::copy(dims.begin(), dims.end(), tensor.dims);
  int32_t id = ASHLAR_NO_TENSOR;
  EXPECT_OK(ashlar_graph_add_tensor(graph, &tensor, &id));
  return id;
}

template <class Function, class... Args>
std::string text_of(Function function, Args... args) {
  std::size_t needed = 0;
  EXPECT_OK(function(args..., nullptr, 0, &needed));
  std::string text(needed, '\0');
  EXPECT_OK(function(args..., text.data(), needed, nullptr));
  EXPECT_EQ(text.back(), '\0');
  text.pop_back();
  EXPECT_EQ(text.find('\0'), std::string::npos);
  return text;
}

// relu(conv(x, w)), built with every kind of attribute setter.
inline GraphHandle conv_relu() {
  GraphHandle graph = new_graph();
  const int32_t x =
      add_tensor(graph.get(), "x", ASHLAR_INPUT, ASHLAR_F32, {2, 4, 6, 6}, ASHLAR_CHANNELS_LAST);
  const int32_t w =
      add_tensor(graph.get(), "w", ASHLAR_INPUT, ASHLAR_F32, {8, 4, 3, 3}, ASHLAR_CHANNELS_LAST);
  const int32_t product =
      add_tensor(graph.get(), "product", ASHLAR_INTERMEDIATE, ASHLAR_DTYPE_INFER, {});
  const int32_t y = add_tensor(graph.get(), "y", ASHLAR_OUTPUT, ASHLAR_DTYPE_INFER, {});
  NodeHandle conv = new_node("conv_forward");
  const int64_t padding[] = {1, 1};
  EXPECT_OK(ashlar_node_set_ints(conv.get(), "padding", padding, 2));
  EXPECT_OK(ashlar_node_set_string(conv.get(), "mode", "convolution"));
  EXPECT_OK(ashlar_node_set_double(conv.get(), "alpha", 0.5));
  EXPECT_OK(ashlar_node_set_int(conv.get(), "beta", 0));
  EXPECT_OK(ashlar_node_set_compute(conv.get(), ASHLAR_F32));
  EXPECT_OK(ashlar_node_set_input(conv.get(), "x", x));
  EXPECT_OK(ashlar_node_set_input(conv.get(), "w", w));
  EXPECT_OK(ashlar_node_set_output(conv.get(), "y", product));
  EXPECT_OK(ashlar_graph_add_node(graph.get(), conv.get(), nullptr));
  NodeHandle relu = new_node("pointwise");
  EXPECT_OK(ashlar_node_set_string(relu.get(), "mode", "relu_fwd"));
  EXPECT_OK(ashlar_node_set_input(relu.get(), "x", product));
  EXPECT_OK(ashlar_node_set_output(relu.get(), "y", y));
  EXPECT_OK(ashlar_graph_add_node(graph.get(), relu.get(), nullptr));
  return graph;
}

// c = a b
inline GraphHandle matmul_graph(int64_t m, int64_t n, int64_t k, ashlar_dtype dtype = ASHLAR_F32) {
  GraphHandle graph = new_graph();
  const int32_t a = add_tensor(graph.get(), "a", ASHLAR_INPUT, dtype, {m, k});
  const int32_t b = add_tensor(graph.get(), "b", ASHLAR_INPUT, dtype, {k, n});
  const int32_t c = add_tensor(graph.get(), "c", ASHLAR_OUTPUT, ASHLAR_DTYPE_INFER, {});
  const NodeHandle node = new_node("matmul");
  EXPECT_OK(ashlar_node_set_input(node.get(), "a", a));
  EXPECT_OK(ashlar_node_set_input(node.get(), "b", b));
  EXPECT_OK(ashlar_node_set_output(node.get(), "c", c));
  EXPECT_OK(ashlar_graph_add_node(graph.get(), node.get(), nullptr));
  return graph;
}

inline ashlar_compile_options default_options() {
  ashlar_compile_options options;
  ashlar_compile_options_init(&options);
  return options;
}

inline Graph in_cpp(const ashlar_graph* graph) {
  return Graph::from_json(text_of(ashlar_graph_to_json, graph));
}

// Memory for the bound tensors of a plan, with random inputs.
struct BoundMemory {
  explicit BoundMemory(const ashlar_graph* graph, const ashlar_plan* plan) {
    int32_t count = 0;
    EXPECT_OK(ashlar_plan_bound_count(plan, &count));
    for (int32_t i = 0; i < count; ++i) {
      ashlar_tensor tensor;
      ashlar_tensor_init(&tensor);
      int64_t bytes = 0;
      int32_t id = 0;
      EXPECT_OK(ashlar_plan_bound_tensor(plan, i, &tensor));
      EXPECT_OK(ashlar_plan_bound_bytes(plan, i, &bytes));
      EXPECT_OK(ashlar_graph_find_tensor(graph, tensor.name, &id));
      storage.emplace_back(static_cast<std::size_t>(bytes));
      EXPECT_OK(ashlar_fill_random(graph, id, storage.back().data(), 5, -1, 1));
      uids.push_back(tensor.uid);
    }
    for (auto& bytes : storage) pointers.push_back(bytes.data());
    int64_t size = 0;
    EXPECT_OK(ashlar_plan_workspace_size(plan, &size));
    workspace.resize(static_cast<std::size_t>(size / 64 + 1));
  }
  const void* const* readable() const { return const_cast<const void* const*>(pointers.data()); }
  int32_t count() const { return static_cast<int32_t>(pointers.size()); }

  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<std::vector<std::byte>> storage;
  std::vector<void*> pointers;
  std::vector<int64_t> uids;
  std::vector<Line> workspace;
};

inline PlanHandle compile_plan(const ashlar_graph* graph,
                               const ashlar_compile_options* options = nullptr) {
  ashlar_plan* plan = nullptr;
  EXPECT_OK(ashlar_compile(graph, options, &plan));
  return PlanHandle(plan);
}

}  // namespace ashlar

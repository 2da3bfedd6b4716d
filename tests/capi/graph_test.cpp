// Graphs and nodes built through the C API equal those of the C++ API.
#include <ashlar/graph.hpp>

#include "capi/handles.hpp"

namespace ashlar {

namespace {

Graph conv_relu_in_cpp() {
  Graph graph("test");
  const Value x = graph.input("x", {2, 4, 6, 6}, f32, channels_last);
  const Value w = graph.input("w", {8, 4, 3, 3}, f32, channels_last);
  const ConvAttributes attributes{.padding = {1, 1}, .mode = ConvMode::convolution, .alpha = 0.5};
  graph.output("y", relu(graph.conv(x, w, attributes)));
  return graph;
}

TEST(CApiGraph, BuildsTheGraphThatCppBuilds) {
  const GraphHandle graph = conv_relu();
  EXPECT_OK(ashlar_graph_validate(graph.get()));
  uint64_t hash = 0;
  EXPECT_OK(ashlar_graph_hash(graph.get(), &hash));
  EXPECT_EQ(hash, conv_relu_in_cpp().structural_hash());
}

TEST(CApiGraph, DescribesInferredTensors) {
  const GraphHandle graph = conv_relu();
  int32_t id = ASHLAR_NO_TENSOR;
  ASSERT_OK(ashlar_graph_find_tensor(graph.get(), "y", &id));
  ashlar_tensor tensor;
  ashlar_tensor_init(&tensor);
  ASSERT_OK(ashlar_graph_get_tensor(graph.get(), id, &tensor));
  EXPECT_STREQ(tensor.name, "y");
  EXPECT_EQ(tensor.kind, ASHLAR_OUTPUT);
  EXPECT_EQ(tensor.dtype, ASHLAR_F32);
  EXPECT_EQ(tensor.layout, ASHLAR_STRIDES);
  EXPECT_EQ(tensor.rank, 4);
  EXPECT_EQ(tensor.dims[1], 8);
  EXPECT_EQ(tensor.strides[1], 1);
  int64_t bytes = 0;
  EXPECT_OK(ashlar_graph_tensor_bytes(graph.get(), id, &bytes));
  EXPECT_EQ(bytes, 2 * 8 * 6 * 6 * 4);
  int32_t count = 0;
  EXPECT_OK(ashlar_graph_tensor_count(graph.get(), &count));
  EXPECT_EQ(count, 4);
}

TEST(CApiGraph, Differentiates) {
  const GraphHandle graph = new_graph();
  const int32_t x = add_tensor(graph.get(), "x", ASHLAR_INPUT, ASHLAR_F32, {2, 3});
  const int32_t other = add_tensor(graph.get(), "other", ASHLAR_INPUT, ASHLAR_F32, {1});
  const int32_t dy = add_tensor(graph.get(), "dy", ASHLAR_INPUT, ASHLAR_F32, {2, 3});
  const NodeHandle node = new_node("pointwise");
  const int32_t y = add_tensor(graph.get(), "y", ASHLAR_OUTPUT, ASHLAR_F32, {});
  ASSERT_OK(ashlar_node_set_string(node.get(), "mode", "exp"));
  ASSERT_OK(ashlar_node_set_input(node.get(), "x", x));
  ASSERT_OK(ashlar_node_set_output(node.get(), "y", y));
  ASSERT_OK(ashlar_graph_add_node(graph.get(), node.get(), nullptr));
  const int32_t wrt[] = {other, x};
  int32_t found[] = {-7, -7};
  ASSERT_OK(ashlar_graph_gradients(graph.get(), &y, 1, wrt, 2, &dy, found));
  EXPECT_EQ(found[0], ASHLAR_NO_TENSOR);
  ashlar_tensor tensor;
  ashlar_tensor_init(&tensor);
  ASSERT_OK(ashlar_graph_get_tensor(graph.get(), found[1], &tensor));
  EXPECT_EQ(tensor.rank, 2);
  EXPECT_EQ(tensor.dims[1], 3);

  EXPECT_REFUSED(ashlar_graph_gradients(graph.get(), &y, 1, wrt, 2, nullptr, found),
                 ASHLAR_INVALID_ARGUMENT, "got dims [2, 3] and no cotangent");
  EXPECT_REFUSED(ashlar_graph_gradients(graph.get(), nullptr, 1, wrt, 2, nullptr, found),
                 ASHLAR_INVALID_ARGUMENT, "of: got a null pointer");
  EXPECT_REFUSED(ashlar_graph_gradients(graph.get(), &y, 1, wrt, -1, nullptr, found),
                 ASHLAR_INVALID_ARGUMENT, "wrt: got -1 tensors, expected at least 0");
  const int32_t absent = 99;
  EXPECT_REFUSED(ashlar_graph_gradients(graph.get(), &y, 1, &absent, 1, &dy, found),
                 ASHLAR_INVALID_ARGUMENT, "tensor id: got 99");
}

TEST(CApiGraph, GoesThroughJsonAndClones) {
  const GraphHandle graph = conv_relu();
  const std::string json = text_of(ashlar_graph_to_json, graph.get());
  ashlar_graph* raw = nullptr;
  ASSERT_OK(ashlar_graph_from_json(json.data(), json.size(), &raw));
  const GraphHandle read(raw);
  EXPECT_EQ(text_of(ashlar_graph_to_json, read.get()), json);
  ASSERT_OK(ashlar_graph_clone(graph.get(), &raw));
  const GraphHandle copy(raw);
  EXPECT_EQ(text_of(ashlar_graph_to_text, copy.get()), text_of(ashlar_graph_to_text, graph.get()));
}

TEST(CApiGraph, ExposesItsNodes) {
  const GraphHandle graph = conv_relu();
  int32_t count = 0;
  ASSERT_OK(ashlar_graph_node_count(graph.get(), &count));
  ASSERT_EQ(count, 2);
  ashlar_node* raw = nullptr;
  ASSERT_OK(ashlar_graph_get_node(graph.get(), 0, &raw));
  const NodeHandle node(raw);
  const char* text = nullptr;
  ASSERT_OK(ashlar_node_op(node.get(), &text));
  EXPECT_STREQ(text, "conv_forward");
  ASSERT_OK(ashlar_node_name(node.get(), &text));
  EXPECT_STREQ(text, "conv_forward_0");
  int32_t id = 7;
  EXPECT_OK(ashlar_node_get_input(node.get(), "w", 0, &id));
  EXPECT_EQ(id, 1);
  EXPECT_OK(ashlar_node_get_input(node.get(), "z", 0, &id));
  EXPECT_EQ(id, ASHLAR_NO_TENSOR);
  EXPECT_OK(ashlar_node_get_output(node.get(), "y", &id));
  EXPECT_EQ(id, 2);
  EXPECT_REFUSED(ashlar_graph_get_node(graph.get(), 2, &raw), ASHLAR_INVALID_ARGUMENT,
                 "got 2, expected 0 to 1");
}

TEST(CApiGraph, AcceptsVariadicInputsConstantsAndUids) {
  const GraphHandle graph = new_graph();
  const int32_t a = add_tensor(graph.get(), "a", ASHLAR_INPUT, ASHLAR_I32, {2, 3});
  const int32_t b = add_tensor(graph.get(), "b", ASHLAR_INPUT, ASHLAR_I32, {4, 3});
  const int32_t y = add_tensor(graph.get(), "y", ASHLAR_OUTPUT, ASHLAR_DTYPE_INFER, {});
  const NodeHandle concat = new_node("concat");
  EXPECT_OK(ashlar_node_append_input(concat.get(), "x", a));
  EXPECT_OK(ashlar_node_append_input(concat.get(), "x", b));
  EXPECT_OK(ashlar_node_set_int(concat.get(), "axis", 0));
  EXPECT_OK(ashlar_node_set_output(concat.get(), "y", y));
  ASSERT_OK(ashlar_graph_add_node(graph.get(), concat.get(), nullptr));
  EXPECT_OK(ashlar_graph_set_uid(graph.get(), y, 900));
  ashlar_tensor tensor;
  ashlar_tensor_init(&tensor);
  ASSERT_OK(ashlar_graph_get_tensor(graph.get(), y, &tensor));
  EXPECT_EQ(tensor.dims[0], 6);
  EXPECT_EQ(tensor.uid, 900);
  int32_t id = 0;
  EXPECT_OK(ashlar_node_get_input(concat.get(), "x", 1, &id));
  EXPECT_EQ(id, b);
}

}  // namespace

}  // namespace ashlar

// The JSON form of graphs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "graph/op_traits.hpp"
#include "graph/sample_graphs.hpp"

namespace ashlar::tests {
namespace {

TEST(GraphJson, EverySampleRoundTrips) {
  for (const SampleGraph& sample : sample_graphs()) {
    SCOPED_TRACE(sample.op);
    sample.graph.validate();
    const std::string written = sample.graph.to_json();
    const Graph read = Graph::from_json(written);
    EXPECT_EQ(read.to_json(), written);
    EXPECT_EQ(read.structural_hash(), sample.graph.structural_hash());
    EXPECT_EQ(read.to_text(), sample.graph.to_text());
    EXPECT_EQ(Graph::from_json(sample.graph.to_json(-1)).to_json(), written);
  }
}

TEST(GraphJson, KeepsNamesKindsAndUids) {
  Graph g("net");
  const Value x = g.input("x", {2}, f32), s = g.scalar("s", f64, 1);
  const Value y = g.output("y", x * s);
  g.set_uid(x, 77);
  g.set_uid(y, -3);
  const Graph read = Graph::from_json(g.to_json());
  EXPECT_EQ(read.name(), "net");
  EXPECT_EQ(read.tensor(read.find_tensor("x")).uid, 77);
  EXPECT_EQ(read.tensor(read.find_tensor("y")).uid, -3);
  EXPECT_EQ(read.tensor(read.find_tensor("s")).kind, TensorKind::scalar);
  EXPECT_EQ(read.tensor(read.find_tensor("s")).dtype, f64);
}

TEST(GraphJson, IntermediatesAndDefaultsMayBeLeftOut) {
  const Graph g = Graph::from_json(R"({
    "format": "ashlar-graph", "version": 1,
    "tensors": [
      {"name": "x", "kind": "input", "dtype": "f16", "dims": [1, 4, 8, 8],
       "layout": "channels_last"},
      {"name": "w", "kind": "input", "dtype": "f16", "dims": [8, 4, 3, 3]},
      {"name": "y", "kind": "output"}],
    "nodes": [
      {"op": "conv_forward", "inputs": {"x": "x", "w": "w"}, "outputs": {"y": "c"}},
      {"op": "pointwise", "inputs": {"x": "c"}, "outputs": {"y": "y"},
       "attributes": {"mode": "relu_fwd"}}]})");
  EXPECT_EQ(g.name(), "graph");
  const Tensor& x = g.tensor(g.find_tensor("x"));
  const Tensor& y = g.tensor(g.find_tensor("y"));
  EXPECT_EQ(x.strides, Dims({256, 1, 32, 4}));
  EXPECT_EQ(g.tensor(g.find_tensor("w")).strides, Dims({36, 9, 3, 1}));
  EXPECT_EQ(y.dims, Dims({1, 8, 6, 6}));
  EXPECT_EQ(y.dtype, f16);
  EXPECT_EQ(y.strides, channels_last.strides_for(y.dims));
  EXPECT_EQ(g.tensor(g.find_tensor("c")).kind, TensorKind::intermediate);
  EXPECT_EQ(g.nodes()[0].name, "conv_forward_0");
  EXPECT_EQ(g.nodes()[0].compute, f32);
}

TEST(GraphJson, NodesMayComeInAnyOrder) {
  const Graph g = Graph::from_json(R"({
    "format": "ashlar-graph", "version": 1,
    "tensors": [{"name": "x", "kind": "input", "dtype": "f32", "dims": [4]},
                {"name": "y", "kind": "output"}],
    "nodes": [
      {"name": "c", "op": "pointwise", "inputs": {"x": "b"}, "outputs": {"y": "y"}},
      {"name": "b", "op": "pointwise", "inputs": {"x": "a"}, "outputs": {"y": "b"}},
      {"name": "a", "op": "pointwise", "inputs": {"x": "x"}, "outputs": {"y": "a"}}]})");
  ASSERT_EQ(g.nodes().size(), 3u);
  EXPECT_EQ(g.nodes()[0].name, "a");
  EXPECT_EQ(g.nodes()[2].name, "c");
}

TEST(GraphJson, ValidTopologicalOrderIsPreserved) {
  Graph g;
  const Value x = g.input("x", {4}, f32);
  const Value a = relu(x), b = exp(x), c = sqrt(a);
  g.output("y", b + c);
  EXPECT_EQ(Graph::from_json(g.to_json()).to_json(), g.to_json());
}

TEST(GraphJson, UidsLeftOutDoNotCollide) {
  const Graph g = Graph::from_json(R"({
    "format": "ashlar-graph", "version": 1,
    "tensors": [{"name": "x", "kind": "input", "dtype": "f32", "dims": [4], "uid": 2},
                {"name": "b", "kind": "input", "dtype": "f32", "dims": [4]},
                {"name": "y", "kind": "output", "uid": 1}],
    "nodes": [{"op": "pointwise", "inputs": {"x": "x", "b": "b"}, "outputs": {"y": "y"},
               "attributes": {"mode": "add"}}]})");
  EXPECT_EQ(g.tensor(g.find_tensor("b")).uid, 3);
}

TEST(GraphJson, OffsetsMayBeDeclaredLater) {
  Graph g;
  const Value q = g.input("q", {2, 1, 3, 2}, f32), kv = g.input("kv", {2, 1, 3, 2}, f32);
  const Value offsets = g.input("offsets", {3, 1, 1, 1}, i64);
  g.set_ragged(q, offsets);
  g.output("o", g.attention(q, kv, kv).first);
  const Graph read = Graph::from_json(g.to_json());
  EXPECT_EQ(read.to_json(), g.to_json());
  EXPECT_EQ(read.tensor(read.find_tensor("q")).ragged_offset, read.find_tensor("offsets"));
}

TEST(GraphJson, NonFiniteValuesRoundTrip) {
  const double inf = std::numeric_limits<double>::infinity();
  for (double value :
       {inf, -inf, std::nan(""), -std::nan(""), -0.0, 0.1, 1e300, 5e-324, 1e15, 3.0}) {
    Graph g;
    const Value x = g.input("x", {1}, f64);
    g.output("y", x + g.constant(value, f64, 1));
    const Graph read = Graph::from_json(g.to_json());
    const double back = read.tensor(1).value;
    EXPECT_TRUE(std::isnan(value) ? std::isnan(back) : back == value) << value;
    if (!std::isnan(value)) {
      EXPECT_EQ(std::signbit(back), std::signbit(value)) << value;
    }
    EXPECT_EQ(read.structural_hash(), g.structural_hash()) << value;
    EXPECT_EQ(read.to_json(), g.to_json()) << value;
  }
}

TEST(GraphJson, LargeTensorsCanBeDescribed) {
  const std::int64_t many = std::int64_t{1} << 40;
  Graph g;
  g.output("y", relu(g.input("x", {many, 4}, f32)));
  const Graph read = Graph::from_json(g.to_json());
  EXPECT_EQ(byte_size(read.tensor(read.find_tensor("y"))), many * 16);
}

TEST(GraphJson, StringsAreEscaped) {
  Graph g("a \"quoted\"\nname");
  g.output("\xc3\xa9\t", relu(g.input("x\\", {1}, f32)));
  const Graph read = Graph::from_json(g.to_json());
  EXPECT_EQ(read.name(), g.name());
  EXPECT_NE(read.find_tensor("\xc3\xa9\t"), kNoTensor);
}

}  // namespace
}  // namespace ashlar::tests

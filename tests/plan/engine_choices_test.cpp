// Engines are asked once per kind of region: regions that an engine could tell apart have different
// keys, and repeated layers have the same.
#include "plan/engine_choices.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "plan/partition.hpp"

namespace ashlar {
namespace {

std::vector<std::string> keys_of(const Graph& graph) {
  const LoweredGraph lowered = lower(graph, true);
  std::vector<std::string> keys;
  for (const Region& region :
       partition(lowered, std::vector<FusionLimits>(lowered.graph.nodes().size())))
    keys.push_back(region_key(region));
  return keys;
}

// What differs from a matmul with bias and scale.
struct Variant {
  const char* name;
  DType dtype = f32, bias_dtype = f32, result = f32;
  Dims b_strides = {8, 1}, bias_dims = {1, 8};
  double factor = 2.0;
  std::int64_t first_column = 0;  // of the bias, which is a part of a larger tensor
  bool adds_a = false;            // reads a twice
  PointwiseMode last = PointwiseMode::mul;
};

Graph graph_of(const Variant& v) {
  Graph g;
  const Value a = g.input("a", {8, 8}, v.dtype), b = g.input("b", {8, 8}, v.dtype, v.b_strides),
              bias = g.input("bias", {8, 32}, v.bias_dtype),
              other = g.input("other", {8, 8}, v.dtype);
  const Value part = g.slice(bias, {0, v.first_column}, {v.bias_dims[0], v.first_column + 8});
  const Value sum = g.matmul(a, b, {.dtype = f32}) + part + (v.adds_a ? a : other);
  const Value scaled = pointwise(v.last, sum, g.constant(v.factor, f32, 2));
  g.output("y", scaled, {.dtype = v.result});
  return g;
}

TEST(EngineChoices, KeysTellRegionsApart) {
  const Variant variants[] = {
      {.name = "base"},
      {.name = "operands of half precision", .dtype = f16},
      {.name = "bias of half precision", .bias_dtype = f16},
      {.name = "result of half precision", .result = f16},
      {.name = "transposed b", .b_strides = {1, 8}},
      {.name = "unaligned rows of b", .b_strides = {9, 1}},
      {.name = "bias of every row", .bias_dims = {8, 8}},
      {.name = "another constant", .factor = 3.0},
      {.name = "a constant of the other sign", .factor = -2.0},
      {.name = "a bias that starts at another address", .first_column = 1},
      {.name = "an operand that is read twice", .adds_a = true},
      {.name = "another operation", .last = PointwiseMode::sub},
  };
  std::map<std::string, const char*> known;
  for (const Variant& variant : variants) {
    const std::vector<std::string> keys = keys_of(graph_of(variant));
    ASSERT_EQ(keys.size(), 1u) << variant.name;
    const auto [found, is_new] = known.emplace(keys[0], variant.name);
    EXPECT_TRUE(is_new) << variant.name << " has the key of " << found->second;
  }
}

TEST(EngineChoices, KeysTellZerosApart) {
  std::set<std::string> keys;
  for (const double factor : {0.0, -0.0})
    keys.insert(keys_of(graph_of({.name = "zero", .factor = factor}))[0]);
  EXPECT_EQ(keys.size(), 2u);
}

TEST(EngineChoices, RepeatedLayersHaveOneKey) {
  Graph g;
  Value x = g.input("x", {8, 8}, f32);
  for (const char* name : {"w0", "w1", "w2"}) x = relu(g.matmul(x, g.input(name, {8, 8}, f32)));
  g.output("y", x);
  const std::vector<std::string> keys = keys_of(g);
  ASSERT_EQ(keys.size(), 3u);
  EXPECT_EQ(keys[0], keys[1]);
  EXPECT_EQ(keys[1], keys[2]);
}

TEST(EngineChoices, ComputeTypeIsPartOfTheKey) {
  std::set<std::string> keys;
  for (const DType compute : {f32, f64}) {
    Graph g;
    const Value a = g.input("a", {8, 8}, f32), b = g.input("b", {8, 8}, f32);
    g.output("y", g.matmul(a, b, {.compute = compute}));
    keys.insert(keys_of(g)[0]);
  }
  EXPECT_EQ(keys.size(), 2u);
}

}  // namespace
}  // namespace ashlar

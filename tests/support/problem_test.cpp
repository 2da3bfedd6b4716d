// The test harness itself: it must detect wrong values, writes outside a tensor, and changed
// inputs.
#include "support/problem.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace ashlar::support {
namespace {

Graph strided_copy() {
  Graph g;
  const Value x = g.input("x", {3, 4}, f32);
  g.output("y", x, {.layout = Layout(Dims{10, 2})});
  return g;
}

TEST(BoundMemory, DetectsWritesInGapsAndOutOfBounds) {
  const Graph graph = strided_copy();
  BoundMemory memory(graph);
  fill_inputs(memory, 1);
  const TensorId y = graph.find_tensor("y");
  EXPECT_EQ(memory.damage(), "");
  memory.data(y)[4 * 10] = std::byte{1};  // element 10: row 1, column 0
  EXPECT_EQ(memory.damage(), "");
  memory.data(y)[4 * 11] = std::byte{1};  // between two elements
  EXPECT_NE(memory.damage(), "");
  memory.paint_outputs();
  EXPECT_EQ(memory.damage(), "");
  memory.data(y)[-1] = std::byte{0};
  EXPECT_NE(memory.damage(), "");
}

TEST(BoundMemory, DetectsWritesToNeighbouringBits) {
  Graph graph;
  const Value x = graph.input("x", {3}, boolean);
  graph.output("y", x, {.layout = Layout(Dims{2})});
  BoundMemory memory(graph);
  fill_inputs(memory, 1);
  std::byte& bits = memory.data(graph.find_tensor("y"))[0];
  bits = std::byte{0b11101010};  // bits 0, 2 and 4 are elements
  EXPECT_EQ(memory.damage(), "");
  bits = std::byte{0b11101000};
  EXPECT_NE(memory.damage(), "");
}

TEST(BoundMemory, DetectsChangedInputs) {
  const Graph graph = strided_copy();
  BoundMemory memory(graph);
  fill_inputs(memory, 1);
  memory.data(graph.find_tensor("x"))[5] ^= std::byte{1};
  EXPECT_NE(memory.damage(), "");
}

TEST(Problem, RejectsValuesOfAnotherGraph) {
  const auto make = [](PointwiseMode mode) {
    Graph g;
    const Value x = g.input("x", {4, 9}, f32);
    g.output("y", pointwise(mode, x));
    return g;
  };
  const Graph right = make(PointwiseMode::sin);
  Problem problem(right, 5);
  EXPECT_EQ(problem.run(compile(right, Device::cpu())), "");
  EXPECT_EQ(problem.compared(), 36);
  EXPECT_NE(problem.run(compile(make(PointwiseMode::tan), Device::cpu())), "");
}

TEST(Fill, IsSeededAndSuitsItsRole) {
  Graph g;
  const Value q = g.input("q", {3, 1, 6, 2}, f32);
  const Value lengths = g.input("lengths", {3, 1, 1, 1}, i32);
  g.output("o", g.attention(q, q, q, {}, {.seq_len_q = lengths, .seq_len_kv = lengths}).first);
  BoundMemory first(g), second(g), other(g);
  fill_inputs(first, 1);
  fill_inputs(second, 1);
  fill_inputs(other, 2);
  const auto bytes = static_cast<std::size_t>(byte_size(q.tensor()));
  EXPECT_EQ(std::memcmp(first.data(q.id()), second.data(q.id()), bytes), 0);
  EXPECT_NE(std::memcmp(first.data(q.id()), other.data(q.id()), bytes), 0);
  for (std::int64_t b = 0; b < 3; ++b) {
    const double length = read_element(lengths.tensor(), first.data(lengths.id()), b);
    EXPECT_GE(length, 0);
    EXPECT_LE(length, 6);
  }
}

TEST(Fill, SometimesLeavesTheRangeWhereTheOperationAllowsIt) {
  Graph g;
  const Value container = g.input("container", {5, 1, 2, 1}, f32);
  const Value pages = g.input("pages", {60, 1, 50, 1}, i32);
  const Value lengths = g.input("lengths", {60, 1, 1, 1}, i32);
  g.output("y", g.apply(PagedCacheLoad{},
                        {{PagedCacheLoad::container, container},
                         {PagedCacheLoad::page_table, pages},
                         {PagedCacheLoad::sequence, lengths}},
                        {PagedCacheLoad::y})[PagedCacheLoad::y]);
  BoundMemory memory(g);
  fill_inputs(memory, 7);
  const auto count = [&](const Value& value, auto&& wanted) {
    int found = 0;
    for (std::int64_t i = 0; i < element_count(value.dims()); ++i)
      if (wanted(read_element(value.tensor(), memory.data(value.id()), i))) ++found;
    return found;
  };
  EXPECT_GT(count(pages, [](double page) { return page == -1; }), 60);
  EXPECT_GT(count(pages, [](double page) { return page == 5; }), 60);
  EXPECT_EQ(count(pages, [](double page) { return page < -1 || page > 5; }), 0);
  for (double usual = 0; usual < 5; ++usual)
    EXPECT_GT(count(pages, [&](double page) { return page == usual; }), 300);
  EXPECT_GT(count(lengths, [](double length) { return length <= 0 || length > 100; }), 0);
}

}  // namespace
}  // namespace ashlar::support

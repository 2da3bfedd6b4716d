// Contents past a sequence's length are padding and must not affect any result.
#include <gtest/gtest.h>

#include <limits>

#include "support/problem.hpp"

namespace ashlar::ops {
namespace {

using support::BoundMemory;
using support::Problem;

constexpr std::int64_t kBatch = 3, kHeads = 2, kQueries = 6, kKeys = 9, kWidth = 4;

// Writes NaN to every row of these tensors past the length of its batch.
Problem::Change poison(const Graph& graph, const std::vector<std::string>& tensors,
                       const std::string& lengths) {
  return [&graph, tensors, lengths](BoundMemory& memory) {
    const TensorId length_id = graph.find_tensor(lengths);
    for (const std::string& name : tensors) {
      const Tensor& tensor = graph.tensor(graph.find_tensor(name));
      const std::int64_t rows = tensor.dims[2], width = tensor.dims[3];
      for (std::int64_t i = 0, count = element_count(tensor.dims); i < count; ++i) {
        const std::int64_t batch = i / (tensor.dims[1] * rows * width), row = i / width % rows;
        const double length = read_element(graph.tensor(length_id), memory.data(length_id), batch);
        if (static_cast<double>(row) >= length)
          write_element(tensor, memory.data(graph.find_tensor(name)), i,
                        std::numeric_limits<double>::quiet_NaN());
      }
    }
  };
}

struct Sequences {
  Graph graph{"sequences"};
  Value q, k, v;
  AttentionOperands with;

  Sequences() {
    q = graph.input("q", {kBatch, kHeads, kQueries, kWidth}, f32);
    k = graph.input("k", {kBatch, kHeads, kKeys, kWidth}, f32);
    v = graph.input("v", {kBatch, kHeads, kKeys, kWidth}, f32);
    with.seq_len_q = graph.input("lengths_q", {kBatch, 1, 1, 1}, i32);
    with.seq_len_kv = graph.input("lengths_kv", {kBatch, 1, 1, 1}, i32);
  }
};

void expect_hidden(const Graph& graph, const std::vector<std::string>& of_queries,
                   const std::vector<std::string>& of_keys) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const Problem::Change queries = poison(graph, of_queries, "lengths_q");
    const Problem::Change keys = poison(graph, of_keys, "lengths_kv");
    Problem problem(graph, seed, support::Fill::plain, [&](BoundMemory& memory) {
      queries(memory);
      keys(memory);
    });
    for (bool reference : {false, true})
      EXPECT_EQ(problem.run(compile(graph, Device::cpu(), {.reference_only = reference})), "")
          << "seed " << seed << (reference ? ", reference" : "");
    EXPECT_EQ(problem.compared(), problem.elements());
  }
}

TEST(AttentionPadding, IsNotReadForward) {
  Sequences s;
  const auto [o, stats] = s.graph.attention(s.q, s.k, s.v, {}, s.with, true);
  s.graph.output("o", o);
  s.graph.output("stats", stats);
  expect_hidden(s.graph, {"q"}, {"k", "v"});
}

TEST(AttentionPadding, IsNotReadBackward) {
  Sequences s;
  const Dims dims = {kBatch, kHeads, kQueries, kWidth};
  const Value o = s.graph.input("o", dims, f32), d_o = s.graph.input("d_o", dims, f32);
  const Value stats = s.graph.input("stats", {kBatch, kHeads, kQueries, 1}, f32);
  const auto r = s.graph.attention_backward(s.q, s.k, s.v, o, d_o, stats, {}, s.with);
  s.graph.output("dq", r.dq);
  s.graph.output("dk", r.dk);
  s.graph.output("dv", r.dv);
  expect_hidden(s.graph, {"q", "o", "d_o", "stats"}, {"k", "v"});
}

}  // namespace
}  // namespace ashlar::ops

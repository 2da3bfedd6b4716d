// Multi-head attention in the variants that tests run: the same operands for all three operations.
#pragma once

#include <ashlar/graph.hpp>
#include <functional>
#include <string>
#include <vector>

#include "graph/multi_head_shapes.hpp"

namespace ashlar::support {

struct MultiHeadCase {
  std::string label;
  MultiHeadAttentionAttributes attributes = {};
  std::int64_t batch = 2, beams = 1, key_beams = 1, queries = 3, keys = 4;
  std::int64_t q_size = 4, k_size = 4, v_size = 4;
  bool residual = false, lengths = false, low = false, high = false, previous = false;
  std::string suffix = {};  // of the names of integer operands: several cases in one graph

  Dims q() const { return {batch, beams, queries, q_size}; }
  Dims k() const { return {batch, key_beams, keys, k_size}; }
  Dims v() const { return {batch, key_beams, keys, v_size}; }
  MultiHeadShape shape() const { return {attributes, q(), k(), v()}; }
};

// Adds a floating-point operand to a graph, or returns the existing one.
using MakeOperand = std::function<Value(const std::string& name, const Dims& dims)>;

// One operation of a case. Integer operands are inputs of the graph, named as their slots.
template <class MultiHead>
Outputs<MultiHead> apply_multi_head(Graph& g, const MultiHeadCase& c, const MakeOperand& make,
                                    const OutputSpec& spec = {}) {
  MultiHead op;
  static_cast<MultiHeadAttentionAttributes&>(op) = c.attributes;
  std::vector<Operand<MultiHead>> inputs = {{MultiHead::q, make("q", c.q())},
                                            {MultiHead::k, make("k", c.k())},
                                            {MultiHead::v, make("v", c.v())}};
  const auto add = [&](bool wanted, typename MultiHead::In slot, const std::string& name,
                       const Dims& dims) {
    if (wanted) inputs.push_back({slot, make(name, dims)});
  };
  const auto add_integer = [&](bool wanted, typename MultiHead::In slot, const std::string& name,
                               const Dims& dims, DType dtype) {
    if (!wanted) return;
    const TensorId old = g.find_tensor(name + c.suffix);
    inputs.push_back(
        {slot, old == kNoTensor ? g.input(name + c.suffix, dims, dtype) : g.value(old)});
  };
  const MultiHeadShape shape = c.shape();
  add(shape.weight_count > 0, MultiHead::weights, "weights", {shape.weight_count});
  if constexpr (requires { MultiHead::residual; })
    add(c.residual, MultiHead::residual, "residual", shape.o_dims());
  if constexpr (requires { MultiHead::d_o; }) add(true, MultiHead::d_o, "d_o", shape.o_dims());
  add_integer(c.lengths, MultiHead::seq_len_q, "seq_len_q", {c.batch, c.beams, 1, 1}, i32);
  add_integer(c.lengths, MultiHead::seq_len_kv, "seq_len_kv", {c.batch, c.key_beams, 1, 1}, i64);
  add_integer(c.low, MultiHead::window_low, "window_low", {1, 1, c.queries, 1}, i32);
  add_integer(c.high, MultiHead::window_high, "window_high", {1, 1, c.queries, 1}, i32);
  const bool drops = c.attributes.attention_dropout > 0,
             drops_after = c.attributes.post_dropout > 0;
  add_integer(drops, MultiHead::dropout_seed, "dropout_seed", {1}, i64);
  add_integer(drops, MultiHead::dropout_offset, "dropout_offset", {1}, i64);
  add_integer(drops_after, MultiHead::post_dropout_seed, "post_dropout_seed", {1, 1, 1, 1}, i64);
  if constexpr (requires { MultiHead::previous; })
    add(c.previous, MultiHead::previous, "previous", {shape.weight_count});
  std::vector<Wanted<MultiHead>> outputs;
  if constexpr (requires { MultiHead::dk; })
    outputs = {MultiHead::dq, MultiHead::dk, MultiHead::dv};
  return g.apply(op, inputs, outputs, spec);
}

// All combinations of options that select different code paths.
inline std::vector<MultiHeadCase> multi_head_problems() {
  const MultiHeadAttentionAttributes all = {.heads = 2,
                                            .q_projection = 3,
                                            .k_projection = 3,
                                            .v_projection = 2,
                                            .o_projection = 5,
                                            .softmax_scale = 0.5};
  const auto with = [&](auto change) {
    MultiHeadAttentionAttributes attributes = all;
    change(attributes);
    return attributes;
  };
  const auto biases = with([](auto& a) { a.projection_biases = true; });
  const auto dropped = with([](auto& a) {
    a.attention_dropout = 0.25;
    a.post_dropout = 0.5;
    a.projection_biases = true;
  });
  return {
      {.label = "all projections", .attributes = all},
      {.label = "biases and residual",
       .attributes = biases,
       .k_size = 5,
       .v_size = 3,
       .residual = true,
       .previous = true},
      {.label = "no projections", .attributes = {.heads = 3, .softmax_scale = 0.25}, .v_size = 2},
      {.label = "only queries and keys",
       .attributes = {.heads = 2, .q_projection = 3, .k_projection = 3},
       .v_size = 2},
      {.label = "only values and results",
       .attributes = {.heads = 2, .v_projection = 3, .o_projection = 4, .projection_biases = true},
       .residual = true},
      {.label = "only queries", .attributes = {.heads = 2, .q_projection = 4}},
      {.label = "lengths", .attributes = biases, .residual = true, .lengths = true},
      {.label = "windows", .attributes = biases, .low = true, .high = true},
      {.label = "only upper windows, lengths", .attributes = all, .lengths = true, .high = true},
      {.label = "beams share keys, lengths, windows",
       .attributes = biases,
       .beams = 2,
       .residual = true,
       .lengths = true,
       .low = true,
       .high = true,
       .previous = true},
      {.label = "separate keys per beam, lengths, windows",
       .attributes = biases,
       .beams = 2,
       .key_beams = 2,
       .lengths = true,
       .low = true},
      {.label = "dropout", .attributes = dropped, .residual = true},
      {.label = "dropout, beams share keys", .attributes = dropped, .beams = 2, .lengths = true},
      {.label = "dropout, separate keys per beam",
       .attributes = dropped,
       .beams = 2,
       .key_beams = 2},
      {.label = "one of everything",
       .attributes = {.q_projection = 1, .k_projection = 1, .v_projection = 1, .o_projection = 1},
       .batch = 1,
       .queries = 1,
       .keys = 1,
       .q_size = 1,
       .k_size = 1,
       .v_size = 1},
      {.label = "no keys", .attributes = biases, .keys = 0, .residual = true},
      {.label = "no queries", .attributes = biases, .queries = 0},
  };
}

}  // namespace ashlar::support

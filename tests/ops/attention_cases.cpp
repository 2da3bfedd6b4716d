// Cases of attention.
#include "ops/op_case.hpp"

namespace ashlar::ops {

namespace {

struct AttentionProblem {
  std::string label;
  Dims q, k, v;
  AttentionAttributes attributes = {};
  bool lengths = false, bias = false, seeded = false, masked = false, scaled = false;
  bool ragged = false;
  bool one_shape = true;
  Dims bias_dims = {};
};

std::vector<AttentionProblem> attention_problems() {
  const Dims q = {2, 4, 7, 8}, kv = {2, 4, 9, 8};
  const auto causal = AttentionAttributes{.right_bound = 0};
  return {
      {.label = "plain", .q = q, .k = kv, .v = kv, .one_shape = false},
      {.label = "causal, top left", .q = q, .k = kv, .v = kv, .attributes = causal},
      {.label = "sliding window, bottom right, grouped heads",
       .q = q,
       .k = {2, 2, 9, 8},
       .v = {2, 1, 9, 5},
       .attributes = {.left_bound = 3, .right_bound = 0, .alignment = MaskAlignment::bottom_right},
       .one_shape = false},
      {.label = "lengths", .q = q, .k = kv, .v = kv, .lengths = true},
      {.label = "lengths, causal, bottom right",
       .q = q,
       .k = kv,
       .v = kv,
       .attributes = {.right_bound = 0, .alignment = MaskAlignment::bottom_right},
       .lengths = true},
      {.label = "bias", .q = q, .k = kv, .v = kv, .bias = true, .bias_dims = {2, 4, 7, 9}},
      {.label = "broadcast bias, given scale",
       .q = q,
       .k = kv,
       .v = kv,
       .attributes = {.scale = 0.25},
       .bias = true,
       .bias_dims = {1, 4, 1, 9}},
      {.label = "scale tensor", .q = q, .k = kv, .v = kv, .scaled = true},
      {.label = "seeded dropout",
       .q = q,
       .k = kv,
       .v = kv,
       .attributes = {.dropout = 0.25},
       .seeded = true},
      {.label = "given dropout mask",
       .q = q,
       .k = kv,
       .v = kv,
       .attributes = {.dropout = 0.5},
       .masked = true},
      {.label = "longer than a tile",
       .q = {1, 1, 130, 16},
       .k = {1, 1, 150, 16},
       .v = {1, 1, 150, 12},
       .attributes = causal},
      {.label = "one key", .q = {1, 2, 3, 4}, .k = {1, 2, 1, 4}, .v = {1, 2, 1, 1}},
      {.label = "no keys", .q = {1, 2, 3, 4}, .k = {1, 2, 0, 4}, .v = {1, 2, 0, 4}},
      {.label = "no queries", .q = {1, 2, 0, 4}, .k = {1, 2, 3, 4}, .v = {1, 2, 3, 4}},
      {.label = "ragged",
       .q = {3, 2, 6, 4},
       .k = {3, 2, 5, 4},
       .v = {3, 2, 5, 4},
       .lengths = true,
       .ragged = true},
  };
}

// Tokens are contiguous, heads within tokens: the layout of packed sequences.
Dims token_strides(const Dims& dims) {
  return {dims[1] * dims[2] * dims[3], dims[3], dims[1] * dims[3], 1};
}

Value sequence(CaseBuilder& b, const AttentionProblem& p, const std::string& name,
               const Dims& dims) {
  if (!p.ragged) return b.operand(name, dims);
  const Value offsets = b.graph().input(name + "_rows", {dims[0] + 1, 1, 1, 1}, i32);
  return b.graph().ragged_input(name, dims, b.dtype(), token_strides(dims), offsets);
}

AttentionOperands extras(CaseBuilder& b, const AttentionProblem& p) {
  Graph& g = b.graph();
  AttentionOperands with;
  if (p.lengths) {
    with.seq_len_q = g.input("lengths_q", {p.q[0], 1, 1, 1}, i32);
    with.seq_len_kv = g.input("lengths_kv", {p.q[0], 1, 1, 1}, i32);
  }
  if (p.bias) with.bias = b.input("score_bias", p.bias_dims, b.dtype());
  if (p.seeded) {
    with.dropout_seed = g.input("seed", {1, 1, 1, 1}, i64);
    with.dropout_offset = g.scalar("offset", i64);
  }
  if (p.masked) with.dropout_mask = g.input("mask", {p.q[0], p.q[1], p.q[2], p.k[2]}, boolean);
  if (p.scaled) with.scale = g.scalar("scale", b.wide());
  return with;
}

}  // namespace

std::vector<OpCase> attention_cases() {
  std::vector<OpCase> cases;
  for (const AttentionProblem& p : attention_problems()) {
    const Dims o = {p.q[0], p.q[1], p.q[2], p.v[3]};
    const Dims stats = {p.q[0], p.q[1], p.q[2], 1};
    for (bool with_stats : {false, true})
      cases.push_back({"attention_forward", p.label + (with_stats ? ", with stats" : ""), kFloating,
                       [=](CaseBuilder& b) {
                         Graph& g = b.graph();
                         const Value q = sequence(b, p, "q", p.q), k = sequence(b, p, "k", p.k);
                         const Value v = sequence(b, p, "v", p.v);
                         const auto [result, logs] =
                             g.attention(q, k, v, p.attributes, extras(b, p), with_stats);
                         if (p.ragged) {
                           const Value out = g.output("result", result);
                           g.set_ragged(out, g.value(g.find_tensor("q_rows")));
                         } else {
                           b.result(result);
                         }
                         if (logs) b.result("stats", logs);
                       },
                       false, p.one_shape || with_stats});
    cases.push_back({"attention_backward", p.label, kFloating,
                     [=](CaseBuilder& b) {
                       Graph& g = b.graph();
                       const Value q = sequence(b, p, "q", p.q), k = sequence(b, p, "k", p.k);
                       const Value v = sequence(b, p, "v", p.v);
                       const Value logs = b.input("stats_in", stats, b.wide());
                       const AttentionGradients r =
                           g.attention_backward(q, k, v, b.operand("o", o), b.operand("d_o", o),
                                                logs, p.attributes, extras(b, p), p.bias);
                       if (p.ragged) {
                         for (const auto& [name, value] :
                              {std::pair("q", r.dq), std::pair("k", r.dk), std::pair("v", r.dv)})
                           g.set_ragged(g.output(std::string("d") + name, value),
                                        g.value(g.find_tensor(std::string(name) + "_rows")));
                         return;
                       }
                       b.result(r.dq);
                       b.result("dk", r.dk);
                       b.result("dv", r.dv);
                       if (r.dbias) b.result("dbias", r.dbias);
                     },
                     false, p.one_shape});
  }
  return cases;
}

}  // namespace ashlar::ops

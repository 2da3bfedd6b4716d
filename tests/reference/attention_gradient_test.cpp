// Attention backward against central differences of the forward, in f64.
#include "reference/harness.hpp"

namespace ashlar::reference {
namespace {

struct AttentionCase {
  const char* name;
  Dims q, k, v;
  AttentionAttributes attributes = {};
  Dims bias = {};
  bool padded = false;
  bool seeded = false;
  bool masked = false;
};

// Adds the optional operands of a case, to forward and backward alike.
AttentionOperands operands_of(const AttentionCase& test, Graph& g) {
  AttentionOperands operands;
  if (!test.bias.empty()) operands.bias = g.input("bias", test.bias, f64);
  if (test.padded) {
    operands.seq_len_q = g.input("lq", {test.q[0], 1, 1, 1}, i32);
    operands.seq_len_kv = g.input("lkv", {test.q[0], 1, 1, 1}, i64);
  }
  if (test.seeded) {
    operands.dropout_seed = g.input("seed", {1, 1, 1, 1}, i64);
    operands.dropout_offset = g.input("offset", {1, 1, 1, 1}, i64);
  }
  if (test.masked)
    operands.dropout_mask = g.input("mask", {test.q[0], test.q[1], test.q[2], test.k[2]}, boolean);
  return operands;
}

class AttentionBackwardCases : public testing::TestWithParam<AttentionCase> {};

TEST_P(AttentionBackwardCases, MatchFiniteDifferences) {
  const AttentionCase& test = GetParam();
  Graph f;
  const Value q = f.input("q", test.q, f64), k = f.input("k", test.k, f64),
              v = f.input("v", test.v, f64);
  const auto [o, stats] = f.attention(q, k, v, test.attributes, operands_of(test, f), true);
  f.output("o", o);
  f.output("stats", stats);

  Graph b;
  const Value bq = b.input("q", test.q, f64), bk = b.input("k", test.k, f64),
              bv = b.input("v", test.v, f64);
  const Value bo = b.input("o", o.dims(), f64), bdo = b.input("do", o.dims(), f64);
  const Value bstats = b.input("stats", stats.dims(), f64);
  const AttentionGradients gradients = b.attention_backward(
      bq, bk, bv, bo, bdo, bstats, test.attributes, operands_of(test, b), !test.bias.empty());
  b.output("dq", gradients.dq);
  b.output("dk", gradients.dk);
  b.output("dv", gradients.dv);
  std::vector<std::string> inputs = {"q", "k", "v"};
  if (gradients.dbias) {
    b.output("dbias", gradients.dbias);
    inputs.push_back("bias");
  }
  Evaluation forward(f), backward(b);
  forward.fill_inputs(13);
  if (test.padded) {
    forward.set("lq", {4, 2});
    forward.set("lkv", {3, 5});
  }
  if (test.seeded) {
    forward.set("seed", {123456789});
    forward.set("offset", {17});
  }
  expect_gradients(forward, "o", backward, inputs, "do");
}

INSTANTIATE_TEST_SUITE_P(
    All, AttentionBackwardCases,
    testing::Values(
        AttentionCase{"plain", {2, 2, 3, 4}, {2, 2, 5, 4}, {2, 2, 5, 3}},
        AttentionCase{"scaled_causal",
                      {1, 2, 5, 3},
                      {1, 2, 5, 3},
                      {1, 2, 5, 3},
                      {.scale = 0.8, .right_bound = 0}},
        AttentionCase{"causal_bottom_right",
                      {1, 1, 3, 3},
                      {1, 1, 5, 3},
                      {1, 1, 5, 2},
                      {.right_bound = 0, .alignment = MaskAlignment::bottom_right}},
        AttentionCase{"bottom_right_with_blind_rows",
                      {1, 1, 6, 3},
                      {1, 1, 4, 3},
                      {1, 1, 4, 2},
                      {.right_bound = 0, .alignment = MaskAlignment::bottom_right}},
        AttentionCase{"window",
                      {1, 1, 6, 3},
                      {1, 1, 6, 3},
                      {1, 1, 6, 3},
                      {.left_bound = 3, .right_bound = 1}},
        AttentionCase{"grouped_heads", {1, 4, 3, 3}, {1, 2, 4, 3}, {1, 1, 4, 2}},
        AttentionCase{"bias", {2, 2, 3, 3}, {2, 2, 4, 3}, {2, 2, 4, 2}, {}, {2, 2, 3, 4}},
        AttentionCase{"bias_broadcast",
                      {2, 4, 3, 3},
                      {2, 2, 4, 3},
                      {2, 2, 4, 2},
                      {.right_bound = 0},
                      {1, 4, 1, 4}},
        AttentionCase{"padding", {2, 2, 4, 3}, {2, 2, 5, 3}, {2, 2, 5, 2}, {}, {1, 1, 4, 5}, true},
        AttentionCase{"padding_bottom_right",
                      {2, 1, 4, 3},
                      {2, 1, 5, 3},
                      {2, 1, 5, 2},
                      {.right_bound = 0, .alignment = MaskAlignment::bottom_right},
                      {},
                      true},
        AttentionCase{"dropout",
                      {1, 2, 4, 3},
                      {1, 1, 5, 3},
                      {1, 2, 5, 2},
                      {.dropout = 0.3},
                      {1, 2, 4, 5},
                      false,
                      true},
        AttentionCase{"dropout_mask",
                      {1, 2, 4, 3},
                      {1, 2, 5, 3},
                      {1, 2, 5, 2},
                      {.dropout = 0.5},
                      {},
                      false,
                      false,
                      true}),
    [](const auto& param_info) { return param_info.param.name; });

}  // namespace
}  // namespace ashlar::reference

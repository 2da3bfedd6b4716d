// Attention's options on values with a known softmax: q = 0 makes all scaled scores 0.
#include <cmath>

#include "base/dropout.hpp"
#include "reference/harness.hpp"

namespace ashlar::reference {
namespace {

using Op = AttentionForward;

// q = 0 of `rows` rows, k = 1, v = 1, 2, 4, 8 (a column), all of one batch, with every result.
struct ZeroScores {
  Graph g;
  std::vector<Operand<Op>> inputs;
  std::int64_t heads, rows, keys;

  ZeroScores(std::int64_t head_count, std::int64_t row_count, std::int64_t key_count = 4)
      : heads(head_count), rows(row_count), keys(key_count) {
    add(Op::q, "q", {1, heads, rows, 1});
    add(Op::k, "k", {1, 1, keys, 1});
    add(Op::v, "v", {1, 1, keys, 1});
  }
  void add(Op::In slot, const char* name, const Dims& dims, DType dtype = f64) {
    inputs.push_back({slot, g.input(name, dims, dtype)});
  }
  void finish(const Op& op) {
    const std::vector<Wanted<Op>> outputs = {Op::o, Op::stats, Op::max, Op::sum_exp};
    const auto results = g.apply(op, inputs, outputs);
    const char* names[] = {"o", "stats", "max", "sum_exp"};
    for (std::size_t i = 0; i < 4; ++i) g.output(names[i], results.all()[i]);
  }
  void fill(Evaluation& e) const {
    e.set("q", std::vector<double>(static_cast<std::size_t>(heads * rows), 0.0));
    e.set("k", std::vector<double>(static_cast<std::size_t>(keys), 1.0));
    std::vector<double> powers;
    for (std::int64_t j = 0; j < keys; ++j) powers.push_back(std::exp2(static_cast<double>(j)));
    e.set("v", powers);
  }
};

TEST(HandComputedAttentionOptions, AlibiSlopesOfAHeadCountThatIsNoPowerOfTwo) {
  ZeroScores problem(3, 2);
  Op op;
  op.alibi = true;
  problem.finish(op);
  Evaluation e(problem.g);
  problem.fill(e);
  const double slopes[] = {1.0 / 16, 1.0 / 256, 1.0 / 4};
  std::vector<double> stats, largest;
  for (double slope : slopes)
    for (int i = 0; i < 2; ++i) {
      double sum = 0.0;
      for (int j = 0; j < 4; ++j) sum += std::exp(slope * (j - i));
      stats.push_back(std::log(sum));
      largest.push_back(slope * (3 - i));
    }
  expect_result(e, "stats", stats, 1e-14);
  expect_result(e, "max", largest, 1e-14);
}

TEST(HandComputedAttentionOptions, SinkHasWeightButNoValue) {
  // Row 0 sees four keys; row 1 of a batch of one row is padding and does not even see the sink.
  ZeroScores problem(2, 2);
  problem.add(Op::sink, "sink", {1, 2, 1, 1});
  problem.add(Op::seq_len_q, "rows", {1, 1, 1, 1}, i32);
  problem.finish({});
  Evaluation e(problem.g);
  problem.fill(e);
  e.set("rows", {1});
  e.set("sink", {0.0, std::log(12.0)});
  expect_result(e, "o", {15.0 / 5, 0, 15.0 / 16, 0}, 1e-14);
  expect_result(e, "max", {0, -kInf, std::log(12.0), -kInf}, 1e-14);
  expect_result(e, "sum_exp", {5, 0, 1 + 4.0 / 12, 0}, 1e-14);
  expect_result(e, "stats", {std::log(5.0), -kInf, std::log(16.0), -kInf}, 1e-14);
}

TEST(HandComputedAttentionOptions, FullyMaskedRowsSeeOnlyTheSink) {
  for (double sink : {3.0, -kInf}) {
    ZeroScores problem(1, 1);
    problem.add(Op::sink, "sink", {1, 1, 1, 1});
    problem.add(Op::bias, "bias", {1, 1, 1, 4});
    problem.finish({});
    Evaluation e(problem.g);
    problem.fill(e);
    e.set("sink", {sink});
    e.set("bias", {-kInf, -kInf, -kInf, -kInf});
    expect_result(e, "o", {0});
    expect_result(e, "max", {sink});
    expect_result(e, "sum_exp", {sink == 3.0 ? 1.0 : 0.0});
    expect_result(e, "stats", {sink});
  }
}

TEST(HandComputedAttentionOptions, BlockMasksHideWholeBlocks) {
  ZeroScores problem(1, 3);
  problem.add(Op::block_mask, "blocks", {1, 1, 2, 2}, boolean);
  Op op;
  op.block_rows = 2;
  op.block_columns = 3;
  problem.finish(op);
  Evaluation e(problem.g);
  problem.fill(e);
  // Rows 0 and 1 see keys 0 to 2; row 2 sees key 3.
  e.set("blocks", {1, 0, 0, 1});
  expect_result(e, "o", {7.0 / 3, 7.0 / 3, 8}, 1e-14);
  e.set("blocks", {0, 0, 1, 1});
  expect_result(e, "o", {0, 0, 3.75}, 1e-14);
}

TEST(HandComputedAttentionOptions, PageTableLookupMasksInvalidPages) {
  Graph g;
  const Value q = g.input("q", {2, 1, 1, 1}, f64);
  const Value k = g.input("k", {3, 1, 2, 1}, f64), v = g.input("v", {3, 1, 2, 1}, f64);
  const Value k_table = g.input("k_table", {2, 1, 2, 1}, i32);
  const Value v_table = g.input("v_table", {2, 1, 2, 1}, i64);
  Op op;
  op.scale = 1.0;
  op.max_seq_len_kv = 3;
  const auto results = g.apply(op,
                               {{Op::q, q},
                                {Op::k, k},
                                {Op::v, v},
                                {Op::page_table_k, k_table},
                                {Op::page_table_v, v_table}},
                               {Op::o});
  g.output("o", results[Op::o]);
  Evaluation e(g);
  const double l2 = std::log(2.0);
  e.set("q", {1, 1});
  e.set("k", {0, 0, l2, 0, 0, l2});
  e.set("v", {1, 2, 10, 20, 100, 200});
  // Batch 0: keys of blocks 2, 2, 1 (scores 0, log 2, log 2), values of blocks 0, 0, 2.
  // Batch 1: keys of block 1 (scores log 2, 0), no third one; values of block 1.
  e.set("k_table", {2, 1, 1, 3});
  e.set("v_table", {0, 2, 1, 0});
  expect_result(e, "o", {(1 + 2 * 2 + 2 * 100) / 5.0, (2 * 10 + 20) / 3.0}, 1e-13);
  e.set("k_table", {-1, 1, 1, 2147483647});
  e.set("v_table", {0, 2, -9223372036854775807.0, 0});
  expect_result(e, "o", {100, 0}, 1e-13);
}

TEST(HandComputedAttentionOptions, TheSoftCapComesBeforeTheModifier) {
  // Scores 2 x: capped to tanh(2 x), then doubled where the key is not ahead of the query.
  Graph g;
  const Value q = g.input("q", {1, 1, 2, 1}, f64), k = g.input("k", {1, 1, 2, 1}, f64),
              v = g.input("v", {1, 1, 2, 1}, f64), factor = g.input("factor", {1, 1, 1, 1}, f64);
  Op op;
  op.scale = 2.0;
  op.soft_cap = 1.0;
  op.score_modifier = {
      {.op = {.mode = PointwiseMode::mul}, .args = {0, 5}},     // 10
      {.constant = -kInf},                                      // 11
      {.op = {.mode = PointwiseMode::cmp_ge}, .args = {1, 2}},  // 12
      {.op = {.mode = PointwiseMode::binary_select}, .args = {10, 11, 12}},
  };
  const auto results = g.apply(op, {{Op::q, q}, {Op::k, k}, {Op::v, v}, {Op::score_input0, factor}},
                               {Op::o, Op::stats});
  g.output("o", results[Op::o]);
  g.output("stats", results[Op::stats]);
  Evaluation e(g);
  e.set("q", {1, 1});
  e.set("k", {0.5, -0.25});
  e.set("v", {3, 5});
  e.set("factor", {2});
  const double a = std::exp(2 * std::tanh(1.0)), b = std::exp(2 * std::tanh(-0.5));
  expect_result(e, "o", {3, (3 * a + 5 * b) / (a + b)}, 1e-14);
  expect_result(e, "stats", {2 * std::tanh(1.0), std::log(a + b)}, 1e-14);
}

TEST(HandComputedAttentionOptions, RngDumpReturnsTheMask) {
  Graph g;
  const Value q = g.input("q", {1, 2, 3, 1}, f32), k = g.input("k", {1, 2, 5, 1}, f32),
              v = g.input("v", {1, 2, 5, 1}, f32), seed = g.input("seed", {1, 1, 1, 1}, i64);
  Op op;
  op.dropout = 0.4;
  op.right_bound = 0;  // masked scores are included
  const auto results = g.apply(op, {{Op::q, q}, {Op::k, k}, {Op::v, v}, {Op::dropout_seed, seed}},
                               {Op::o, Op::rng_dump});
  g.output("o", results[Op::o]);
  g.output("mask", results[Op::rng_dump]);
  EXPECT_EQ(g.tensor(g.find_tensor("mask")).dtype, boolean);
  Evaluation e(g);
  e.fill_inputs(3);
  e.set("seed", {77});
  std::vector<double> expected;
  for (std::uint64_t i = 0; i < 30; ++i)
    expected.push_back(dropout_keeps(77, 0, i, 0.4) ? 1.0 : 0.0);
  expect_result(e, "mask", expected);
}

TEST(HandComputedAttentionOptions, Fp8ScalesRoundTheWeightsAndReportTheLargest) {
  Graph g;
  const Value q = g.input("q", {1, 1, 2, 1}, e4m3), k = g.input("k", {1, 1, 4, 1}, e4m3),
              v = g.input("v", {1, 1, 4, 1}, e4m3), lengths = g.input("keys", {1, 1, 1, 1}, i32);
  std::vector<Operand<Op>> inputs = {{Op::q, q}, {Op::k, k}, {Op::v, v}, {Op::seq_len_kv, lengths}};
  const std::pair<Op::In, const char*> factors[] = {
      {Op::descale_q, "descale_q"}, {Op::descale_k, "descale_k"}, {Op::descale_v, "descale_v"},
      {Op::descale_s, "descale_s"}, {Op::scale_s, "scale_s"},     {Op::scale_o, "scale_o"}};
  for (const auto& [slot, name] : factors)
    inputs.push_back({slot, g.input(name, {1, 1, 1, 1}, f32)});
  const std::vector<Wanted<Op>> wanted = {{Op::o, f32}, Op::amax_s, Op::amax_o};
  const auto results = g.apply(Op{}, inputs, wanted, {.dtype = f32});
  g.output("o", results[Op::o]);
  g.output("amax_s", results[Op::amax_s]);
  g.output("amax_o", results[Op::amax_o]);
  Evaluation e(g);
  e.set("q", {0, 0});
  e.set("k", {1, 1, 1, 1});
  e.set("v", {1, 2, 4, 8});
  for (const auto& [slot, name] : factors) e.set(name, {1.0});
  e.set("keys", {4});
  e.set("scale_s", {256});
  e.set("descale_s", {1.0 / 256});
  e.set("descale_v", {2});
  e.set("scale_o", {0.5});
  // Weights of 1/4 become 64, which fp8 has: o' = 2 * 15 / 4, and leaves as half of it.
  expect_result(e, "o", {3.75, 3.75}, 1e-6);
  expect_result(e, "amax_s", {0.25}, 1e-7);
  expect_result(e, "amax_o", {7.5}, 1e-6);
  // Three keys: 1/3 rounds to 0.34375 = 11/32 in e4m3. The oracle grants the rounding.
  e.set("keys", {3});
  e.set("scale_s", {1});
  e.set("descale_s", {1});
  e.expect_nodes_agree();
  EXPECT_NEAR(e.get("o")[0], 7 * 0.34375, 1e-6);
  EXPECT_NEAR(e.get("amax_s")[0], 1.0 / 3, 1e-7);
  EXPECT_NEAR(e.oracle("o").values[0], 7.0 / 3, 1e-6);
  // Beyond the type's range the scaled weights saturate.
  e.set("scale_s", {1000});
  e.set("descale_s", {0.001});
  e.set("keys", {1});
  e.expect_nodes_agree();
  EXPECT_NEAR(e.get("o")[0], 0.448, 1e-6);
}

}  // namespace
}  // namespace ashlar::reference

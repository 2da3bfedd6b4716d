// Attention with the options that Graph::attention does not offer.
#include <limits>

#include "ops/op_case.hpp"

namespace ashlar::ops {

namespace {

using Mode = PointwiseMode;

struct OptionProblem {
  std::string label;
  AttentionAttributes attributes = {};
  Dims q = {2, 4, 7, 8}, k = {2, 2, 9, 8}, v = {2, 4, 9, 5};
  std::int64_t keys = 9;
  bool bias = false, sink = false, blocks = false, k_pages = false, v_pages = false,
       score_inputs = false, seeded = false, lengths = false;
  bool every_result = false;  // max, sum_exp, rng_dump
  bool scaled = false;        // fp8 scales and amax outputs
  ScoreProgram gradient = {};
};

// Slopes times distance, as clients write ALiBi; a window; a soft cap of the score's own.
const ScoreProgram kSlopes = {{.op = {.mode = Mode::sub}, .args = {2, 1}, .constant = {}},
                              {.op = {.mode = Mode::mul}, .args = {10, 5}, .constant = {}},
                              {.op = {.mode = Mode::add}, .args = {0, 11}, .constant = {}}};
const ScoreProgram kWindow = {
    {.op = {.mode = Mode::sub}, .args = {1, 2}, .constant = {}},
    {.op = {.mode = Mode::abs}, .args = {10}, .constant = {}},
    {.op = {}, .args = {}, .constant = 3.0},
    {.op = {.mode = Mode::cmp_le}, .args = {11, 12}, .constant = {}},
    {.op = {}, .args = {}, .constant = -std::numeric_limits<double>::infinity()},
    {.op = {.mode = Mode::binary_select}, .args = {0, 14, 13}, .constant = {}}};
const ScoreProgram kCurve = {
    {.op = {.mode = Mode::tanh_fwd, .alpha1 = 0.5}, .args = {0}, .constant = {}},
    {.op = {.mode = Mode::mul}, .args = {10, 6}, .constant = {}},
    {.op = {.mode = Mode::add_square, .alpha2 = 0.5}, .args = {11, 0}, .constant = {}}};
const ScoreProgram kTwice = {{.op = {.mode = Mode::add}, .args = {0, 0}, .constant = {}}};
const ScoreProgram kTwiceGradient = {
    {.op = {.mode = Mode::add}, .args = {kScoreGradient, kScoreGradient}, .constant = {}}};

std::vector<OptionProblem> option_problems() {
  const auto long_keys = [](OptionProblem problem) {
    problem.q = {1, 2, 70, 16};
    problem.k = {1, 1, 150, 16};
    problem.v = {1, 2, 150, 12};
    problem.keys = 150;
    return problem;
  };
  return {
      {.label = "alibi", .attributes = {.alibi = true}},
      {.label = "alibi, six heads, causal",
       .attributes = {.right_bound = 0, .alibi = true},
       .q = {1, 6, 5, 4},
       .k = {1, 3, 6, 4},
       .v = {1, 2, 6, 4},
       .keys = 6},
      {.label = "soft cap, bias", .attributes = {.scale = 1.5, .soft_cap = 0.75}, .bias = true},
      {.label = "sink", .sink = true},
      {.label = "sink, lengths, causal",
       .attributes = {.right_bound = 0, .alignment = MaskAlignment::bottom_right},
       .sink = true,
       .lengths = true},
      {.label = "every result",
       .attributes = {.dropout = 0.25},
       .seeded = true,
       .every_result = true},
      {.label = "every result, lengths, sink",
       .attributes = {.dropout = 0.25},
       .sink = true,
       .seeded = true,
       .lengths = true,
       .every_result = true},
      {.label = "block mask", .attributes = {.block_rows = 3, .block_columns = 4}, .blocks = true},
      {.label = "paged k and v",
       .k = {5, 2, 4, 8},
       .v = {6, 4, 3, 5},
       .k_pages = true,
       .v_pages = true},
      {.label = "paged k, lengths, sink",
       .attributes = {.max_seq_len_kv = 9},
       .k = {5, 2, 2, 8},
       .sink = true,
       .k_pages = true,
       .lengths = true},
      {.label = "slopes", .attributes = {.score_modifier = kSlopes}, .score_inputs = true},
      {.label = "window by program, dropout",
       .attributes = {.dropout = 0.5, .score_modifier = kWindow},
       .seeded = true},
      {.label = "curve, soft cap, bias, sink",
       .attributes = {.soft_cap = 2.0, .score_modifier = kCurve},
       .bias = true,
       .sink = true,
       .score_inputs = true},
      {.label = "given gradient",
       .attributes = {.score_modifier = kTwice},
       .gradient = kTwiceGradient},
      {.label = "fp8 factors", .scaled = true},
      {.label = "fp8 factors, dropout, lengths",
       .attributes = {.right_bound = 0, .dropout = 0.25},
       .seeded = true,
       .lengths = true,
       .scaled = true},
      long_keys({.label = "longer than a tile, sink, alibi",
                 .attributes = {.right_bound = 0, .alibi = true},
                 .sink = true}),
      long_keys({.label = "longer than a tile, block mask, soft cap",
                 .attributes = {.soft_cap = 1.0, .block_rows = 16, .block_columns = 32},
                 .blocks = true}),
      long_keys({.label = "longer than a tile, fp8 factors", .scaled = true}),
  };
}

std::int64_t blocks_of(std::int64_t extent, std::int64_t block) {
  return (extent + block - 1) / block;
}

AttentionForward::In last_factor(const AttentionForward&) { return AttentionForward::scale_o; }
AttentionBackward::In last_factor(const AttentionBackward&) { return AttentionBackward::scale_dp; }

template <class Op>
std::vector<Operand<Op>> operands(CaseBuilder& b, const OptionProblem& p) {
  Graph& g = b.graph();
  const Value q = b.operand("q", p.q), k = b.operand("k", p.k), v = b.operand("v", p.v);
  std::vector<Operand<Op>> inputs = {{Op::q, q}, {Op::k, k}, {Op::v, v}};
  const auto add = [&](bool wanted, typename Op::In slot, const char* name, const Dims& dims,
                       DType dtype) {
    if (wanted) inputs.push_back({slot, b.input(name, dims, dtype)});
  };
  const std::int64_t batch = p.q[0], heads = p.q[1], rows = p.q[2];
  add(p.bias, Op::bias, "score_bias", {1, heads, rows, p.keys}, b.dtype());
  add(p.sink, Op::sink, "sink", {1, heads, 1, 1}, b.wide());
  add(p.blocks, Op::block_mask, "blocks",
      {batch, 1, blocks_of(rows, p.attributes.block_rows),
       blocks_of(p.keys, p.attributes.block_columns)},
      boolean);
  add(p.k_pages, Op::page_table_k, "k_table", {batch, 1, blocks_of(p.keys, p.k[2]), 1}, i32);
  add(p.v_pages, Op::page_table_v, "v_table", {batch, 1, blocks_of(p.keys, p.v[2]), 1}, i64);
  add(p.score_inputs, Op::score_input0, "slopes", {1, heads, 1, 1}, b.wide());
  add(p.score_inputs, Op::score_input1, "curve", {1, 1, rows, p.keys}, b.dtype());
  add(p.lengths, Op::seq_len_q, "lengths_q", {batch, 1, 1, 1}, i32);
  add(p.lengths, Op::seq_len_kv, "lengths_kv", {batch, 1, 1, 1}, i32);
  if (p.seeded) inputs.push_back({Op::dropout_seed, g.scalar("seed", i64)});
  if (p.scaled)
    for (int slot = Op::descale_q; slot <= last_factor(Op{}); ++slot)
      inputs.push_back({static_cast<typename Op::In>(slot),
                        g.input("factor" + std::to_string(slot), {1, 1, 1, 1}, f32)});
  return inputs;
}

}  // namespace

std::vector<OpCase> attention_option_cases() {
  std::vector<OpCase> cases;
  for (const OptionProblem& p : option_problems()) {
    cases.push_back({"attention_forward", p.label, kFloating,
                     [=](CaseBuilder& b) {
                       using Op = AttentionForward;
                       const std::vector<Operand<Op>> inputs = operands<Op>(b, p);
                       std::vector<Wanted<Op>> wanted = {Op::o, Op::stats};
                       if (p.every_result)
                         for (Op::Out slot : {Op::max, Op::sum_exp, Op::rng_dump})
                           wanted.emplace_back(slot);
                       if (p.scaled)
                         for (Op::Out slot : {Op::amax_s, Op::amax_o}) wanted.emplace_back(slot);
                       const auto results = b.graph().apply(Op{p.attributes}, inputs, wanted);
                       b.result(results[Op::o]);
                       for (std::size_t slot = 1; slot < results.all().size(); ++slot)
                         if (results.all()[slot])
                           b.result("result" + std::to_string(slot), results.all()[slot]);
                     },
                     false, true});
    cases.push_back(
        {"attention_backward", p.label, kFloating,
         [=](CaseBuilder& b) {
           using Op = AttentionBackward;
           std::vector<Operand<Op>> inputs = operands<Op>(b, p);
           const Dims o = {p.q[0], p.q[1], p.q[2], p.v[3]};
           inputs.push_back({Op::o, b.operand("o", o)});
           inputs.push_back({Op::d_o, b.operand("d_o", o)});
           inputs.push_back({Op::stats, b.input("stats_in", {o[0], o[1], o[2], 1}, b.wide())});
           std::vector<Wanted<Op>> wanted = {Op::dq, Op::dk, Op::dv};
           if (p.bias) wanted.emplace_back(Op::dbias);
           if (p.sink) wanted.emplace_back(Op::dsink);
           if (p.every_result) wanted.emplace_back(Op::rng_dump);
           if (p.scaled)
             for (Op::Out slot : {Op::amax_dq, Op::amax_dk, Op::amax_dv, Op::amax_dp})
               wanted.emplace_back(slot);
           Op op{p.attributes};
           op.score_modifier_gradient = p.gradient;
           const auto results = b.graph().apply(op, inputs, wanted);
           b.result(results[Op::dq]);
           for (std::size_t slot = 1; slot < results.all().size(); ++slot)
             if (results.all()[slot])
               b.result("result" + std::to_string(slot), results.all()[slot]);
         },
         false, true});
  }
  return cases;
}

}  // namespace ashlar::ops

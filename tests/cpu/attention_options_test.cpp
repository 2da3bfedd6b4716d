// Every option of attention through the tiled engines, over several tiles of queries and keys.
#include <cmath>
#include <functional>
#include <limits>

#include "cpu/plan_check.hpp"

namespace ashlar::cpu {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

struct OptionsCase {
  std::int64_t batch = 2, heads = 3, k_heads = 3, v_heads = 3, queries = 70, keys = 150,
               head_dim = 8, value_dim = 8;
  AttentionAttributes op = {};
  ScoreProgram gradient = {};
  DType dtype = f32;
  bool lengths = false, bias = false, sink = false, scores = false, amax = false;
  bool dump = false;                    // seeded dropout and its mask
  Dims block_mask = {};                 // its dims
  std::int64_t k_page = 0, v_page = 0;  // rows per page; 0: not paged
  std::vector<AttentionForward::In> factors = {};
  std::vector<AttentionBackward::In> backward_factors = {};
  std::function<void(PlanCheck&)> fill = {};  // final override of the inputs

  std::int64_t pages(std::int64_t page) const { return (keys + page - 1) / page; }
  // One block fewer than pages: some pages share a block.
  std::int64_t blocks(std::int64_t page) const { return batch * pages(page) - 1; }
  Dims key_dims(std::int64_t page, std::int64_t key_heads, std::int64_t dim) const {
    if (page == 0) return {batch, key_heads, keys, dim};
    return {blocks(page), key_heads, page, dim};
  }
};

// The operands shared by forward and backward.
struct Operands {
  Value q, k, v, bias, seq_len_q, seq_len_kv, seed, table_k, table_v, sink, block_mask, extra;
};

Operands make_operands(Graph& g, const OptionsCase& c) {
  Operands o;
  const DType wide = c.dtype == f64 ? f64 : f32;
  o.q = g.input("q", {c.batch, c.heads, c.queries, c.head_dim}, c.dtype);
  o.k = g.input("k", c.key_dims(c.k_page, c.k_heads, c.head_dim), c.dtype);
  o.v = g.input("v", c.key_dims(c.v_page, c.v_heads, c.value_dim), c.dtype);
  if (c.bias) o.bias = g.input("bias", {1, c.heads, c.queries, c.keys}, wide);
  if (c.lengths) {
    o.seq_len_q = g.input("seq_len_q", {c.batch, 1, 1, 1}, i32);
    o.seq_len_kv = g.input("seq_len_kv", {c.batch, 1, 1, 1}, i32);
  }
  if (c.dump) o.seed = g.input("seed", {1, 1, 1, 1}, i64);
  if (c.k_page > 0) o.table_k = g.input("table_k", {c.batch, 1, c.pages(c.k_page), 1}, i32);
  if (c.v_page > 0) o.table_v = g.input("table_v", {c.batch, 1, c.pages(c.v_page), 1}, i32);
  if (c.sink) o.sink = g.input("sink", {1, c.heads, 1, 1}, wide);
  if (!c.block_mask.empty()) o.block_mask = g.input("block_mask", c.block_mask, boolean);
  if (c.scores) o.extra = g.input("extra", {1, c.heads, 1, c.keys}, f32);
  return o;
}

template <class Op>
std::vector<Operand<Op>> slots(const Operands& o) {
  return {{Op::q, o.q},
          {Op::k, o.k},
          {Op::v, o.v},
          {Op::bias, o.bias},
          {Op::seq_len_q, o.seq_len_q},
          {Op::seq_len_kv, o.seq_len_kv},
          {Op::dropout_seed, o.seed},
          {Op::page_table_k, o.table_k},
          {Op::page_table_v, o.table_v},
          {Op::sink, o.sink},
          {Op::block_mask, o.block_mask},
          {Op::score_input1, o.extra}};
}

void fill_page_table(PlanCheck& plan, const OptionsCase& c, const char* name, std::int64_t page) {
  if (page == 0) return;
  std::vector<double> table;
  const std::int64_t count = c.batch * c.pages(page), blocks = c.blocks(page);
  for (std::int64_t i = 0; i < count; ++i)
    table.push_back(static_cast<double>((i * 5 + 3) % (blocks + 1)));  // one entry is out of range
  table[1] = table[0];
  table[2] = -1;
  plan.set(name, table);
}

void fill(PlanCheck& plan, const OptionsCase& c) {
  if (c.lengths) {
    plan.set("seq_len_q", {static_cast<double>(c.queries - 3), static_cast<double>(c.queries / 2)});
    plan.set("seq_len_kv", {static_cast<double>(c.keys / 2), static_cast<double>(c.keys - 1)});
  }
  if (c.dump) plan.set("seed", {987654321.0});
  if (!c.block_mask.empty()) plan.fill("block_mask", 0.0, 1.0);
  fill_page_table(plan, c, "table_k", c.k_page);
  fill_page_table(plan, c, "table_v", c.v_page);
  if (c.fill) c.fill(plan);
}

Outputs<AttentionForward> add_forward(Graph& g, const OptionsCase& c, const Operands& o) {
  AttentionForward op;
  static_cast<AttentionAttributes&>(op) = c.op;
  std::vector<Operand<AttentionForward>> inputs = slots<AttentionForward>(o);
  for (const auto slot : c.factors)
    inputs.push_back({slot, g.input("factor" + std::to_string(slot), {1, 1, 1, 1}, f32)});
  std::vector<Wanted<AttentionForward>> wanted = {AttentionForward::o, AttentionForward::stats,
                                                  AttentionForward::max, AttentionForward::sum_exp};
  if (c.dump) wanted.push_back(AttentionForward::rng_dump);
  if (c.amax) wanted.insert(wanted.end(), {AttentionForward::amax_s, AttentionForward::amax_o});
  const auto results = g.apply(op, inputs, wanted);
  for (const auto& output : wanted)
    g.output("forward" + std::to_string(output.slot), results[output.slot]);
  return results;
}

void fill_factors(PlanCheck& plan, const OptionsCase& c, bool backward) {
  for (const auto slot : c.factors) plan.fill("factor" + std::to_string(slot), 0.5, 1.5);
  if (backward)
    for (const auto slot : c.backward_factors) plan.fill("back" + std::to_string(slot), 0.5, 1.5);
}

void check_forward(const OptionsCase& c) {
  Graph g;
  add_forward(g, c, make_operands(g, c));
  PlanCheck plan(std::move(g));
  fill_factors(plan, c, false);
  fill(plan, c);
  plan.expect_agrees("cpu.attention_tiled");
}

void check_backward(const OptionsCase& c) {
  using Op = AttentionBackward;
  Graph g;
  const Operands o = make_operands(g, c);
  const Outputs<AttentionForward> forward = add_forward(g, c, o);
  Op op;
  static_cast<AttentionAttributes&>(op) = c.op;
  op.score_modifier_gradient = c.gradient;
  std::vector<Operand<Op>> inputs = slots<Op>(o);
  inputs.push_back({Op::o, forward[AttentionForward::o]});
  inputs.push_back({Op::stats, forward[AttentionForward::stats]});
  inputs.push_back({Op::d_o, g.input("do", {c.batch, c.heads, c.queries, c.value_dim}, c.dtype)});
  for (const auto slot : c.backward_factors)
    inputs.push_back({slot, g.input("back" + std::to_string(slot), {1, 1, 1, 1}, f32)});
  std::vector<Wanted<Op>> wanted = {Op::dq, Op::dk, Op::dv};
  if (c.bias) wanted.push_back(Op::dbias);
  if (c.sink) wanted.push_back(Op::dsink);
  if (c.dump) wanted.push_back(Op::rng_dump);
  if (c.amax) wanted.insert(wanted.end(), {Op::amax_dq, Op::amax_dk, Op::amax_dv, Op::amax_dp});
  const auto results = g.apply(op, inputs, wanted);
  for (const auto& output : wanted)
    g.output("backward" + std::to_string(output.slot), results[output.slot]);
  PlanCheck plan(std::move(g));
  fill_factors(plan, c, true);
  fill(plan, c);
  plan.expect_agrees("cpu.attention_tiled_backward");
}

void check(const char* what, const std::function<void(OptionsCase&)>& change) {
  SCOPED_TRACE(what);
  OptionsCase c;
  change(c);
  check_forward(c);
  check_backward(c);
}

ScoreStep step(PointwiseMode mode, Dims args) {
  ScoreStep result;
  result.op.mode = mode;
  result.args = args;
  return result;
}
ScoreStep constant(double value) {
  ScoreStep result;
  result.constant = value;
  return result;
}
constexpr std::int64_t kFirstStep = kFirstScoreStep;

// softplus(score) + score_input1 where query + 40 >= key, else -inf: a mask and a relative bias.
ScoreProgram masked_softplus() {
  return {step(PointwiseMode::softplus_fwd, {0}),
          step(PointwiseMode::add, {kFirstStep, kFirstScoreInput + 1}),
          constant(40.0),
          step(PointwiseMode::add, {1, kFirstStep + 2}),
          step(PointwiseMode::cmp_ge, {kFirstStep + 3, 2}),
          constant(-kInfinite),
          step(PointwiseMode::binary_select, {kFirstStep + 1, kFirstStep + 5, kFirstStep + 4})};
}

TEST(AttentionOptions, Alibi) {
  check("five heads", [](OptionsCase& c) {
    c.heads = c.k_heads = c.v_heads = 5, c.batch = 1, c.op.alibi = true, c.op.right_bound = 0;
  });
  check("bottom right, lengths", [](OptionsCase& c) {
    c.op.alibi = true, c.op.right_bound = 0, c.op.alignment = MaskAlignment::bottom_right;
    c.lengths = true;
  });
}

TEST(AttentionOptions, SoftCap) {
  check("soft cap", [](OptionsCase& c) { c.op.soft_cap = 0.75, c.op.scale = 1.0; });
  check("soft cap, bias, causal, f64", [](OptionsCase& c) {
    c.op.soft_cap = 0.75, c.bias = true, c.op.right_bound = 0, c.dtype = f64;
  });
}

TEST(AttentionOptions, ScoreModifier) {
  check("modifier",
        [](OptionsCase& c) { c.op.score_modifier = masked_softplus(), c.scores = true; });
  check("with everything else", [](OptionsCase& c) {
    c.op.score_modifier = masked_softplus(), c.scores = true, c.bias = true, c.op.alibi = true;
    c.op.soft_cap = 2.0, c.lengths = true, c.op.left_bound = 100, c.sink = true;
  });
  // The derivative of softplus is the sigmoid; masked positions have no gradient.
  check("given gradient", [](OptionsCase& c) {
    c.op.score_modifier = masked_softplus(), c.scores = true;
    c.gradient = {step(PointwiseMode::softplus_bwd, {kScoreGradient, 0})};
  });
}

TEST(AttentionOptions, BlockMask) {
  check("small blocks", [](OptionsCase& c) {
    c.op.block_rows = 16, c.op.block_columns = 24, c.block_mask = {c.batch, c.heads, 5, 7};
  });
  check("broadcast, causal", [](OptionsCase& c) {
    c.op.block_rows = 8, c.op.block_columns = 64, c.block_mask = {1, 1, 9, 3};
    c.op.right_bound = 0;
  });
  check("whole tiles hidden", [](OptionsCase& c) {
    c.op.block_rows = 64, c.op.block_columns = 128, c.block_mask = {1, 1, 2, 2};
    c.fill = [](PlanCheck& plan) { plan.set("block_mask", {0, 1, 0, 0}); };
  });
}

TEST(AttentionOptions, Sink) {
  check("sink", [](OptionsCase& c) { c.sink = true; });
  check("lengths, rows that see only the sink", [](OptionsCase& c) {
    c.sink = true, c.lengths = true, c.op.right_bound = 0;
    c.op.alignment = MaskAlignment::bottom_right, c.keys = 40;
  });
  check("few queries", [](OptionsCase& c) { c.sink = true, c.queries = 2; });
}

TEST(AttentionOptions, Paged) {
  check("both", [](OptionsCase& c) { c.k_page = 16, c.v_page = 16; });
  check("sizes that differ, lengths, causal", [](OptionsCase& c) {
    c.k_page = 7, c.v_page = 32, c.lengths = true, c.op.right_bound = 0;
    c.op.alignment = MaskAlignment::bottom_right;
    c.op.max_seq_len_kv = c.keys;
  });
  check("only v", [](OptionsCase& c) { c.v_page = 10; });
  check("one query, grouped heads", [](OptionsCase& c) {
    c.k_page = c.v_page = 16, c.queries = 1, c.heads = 4, c.k_heads = c.v_heads = 2;
  });
}

TEST(AttentionOptions, DropoutDump) {
  check("dump", [](OptionsCase& c) { c.dump = true, c.op.dropout = 0.4, c.op.right_bound = 0; });
  check("odd keys", [](OptionsCase& c) { c.dump = true, c.op.dropout = 0.9, c.keys = 131; });
}

void with_factors(OptionsCase& c) {
  using F = AttentionForward;
  using B = AttentionBackward;
  c.factors = {F::descale_q, F::descale_k, F::descale_v, F::descale_s, F::scale_s, F::scale_o};
  c.backward_factors = {B::descale_q,  B::descale_k, B::descale_v,  B::descale_o,
                        B::descale_do, B::descale_s, B::descale_dp, B::scale_s,
                        B::scale_dq,   B::scale_dk,  B::scale_dv,   B::scale_dp};
  c.amax = true;
}

TEST(AttentionOptions, Factors) {
  check("f32", [](OptionsCase& c) { with_factors(c), c.op.right_bound = 0; });
  for (DType dtype : {e4m3, e5m2})
    check("fp8", [&](OptionsCase& c) { with_factors(c), c.dtype = dtype, c.op.right_bound = 0; });
  check("fp8 saturates", [&](OptionsCase& c) {
    with_factors(c), c.dtype = e4m3, c.sink = true;
    c.fill = [](PlanCheck& plan) {
      plan.set("factor" + std::to_string(AttentionForward::scale_s), {100000.0});
    };
  });
}

// NaN and infinity in masked keys and values do not reach a row's results.
TEST(AttentionOptions, HiddenValuesDoNotSpread) {
  const auto poison = [](PlanCheck& plan, std::int64_t row_length) {
    for (const char* name : {"k", "v"}) {
      std::vector<double> values = plan.get(name);
      const std::size_t row = static_cast<std::size_t>(row_length);
      for (std::size_t at : {20 * row + 1, 131 * row, 400 * row + 3})
        values[at] = at % 2 == 0 ? kInfinite : std::numeric_limits<double>::quiet_NaN();
      plan.set(name, values);
    }
  };
  const auto fill = [&](PlanCheck& plan) { poison(plan, 8); };
  check("causal", [&](OptionsCase& c) { c.op.right_bound = 0, c.fill = fill; });
  check("window",
        [&](OptionsCase& c) { c.op.left_bound = 30, c.op.right_bound = 4, c.fill = fill; });
  check("blocks", [&](OptionsCase& c) {
    c.op.block_rows = 16, c.op.block_columns = 24, c.block_mask = {c.batch, c.heads, 5, 7};
    c.fill = fill;
  });
  check("dropped weights", [&](OptionsCase& c) {
    c.dump = true, c.op.dropout = 0.5, c.op.right_bound = 0, c.fill = fill;
  });
  check("few queries", [&](OptionsCase& c) {
    c.queries = 2, c.op.right_bound = 0, c.op.alignment = MaskAlignment::bottom_right;
    c.op.left_bound = 100, c.fill = fill;
  });
  // Most of a micro-kernel block of queries is past the end: zero rows, which must not be
  // multiplied with NaN.
  check("one query", [&](OptionsCase& c) {
    c.queries = 1, c.op.right_bound = 2;
    c.fill = [](PlanCheck& plan) {
      for (const char* name : {"k", "v"}) {
        std::vector<double> values = plan.get(name);
        values[4 * 8] = kInfinite, values[5 * 8 + 1] = std::numeric_limits<double>::quiet_NaN();
        plan.set(name, values);
      }
    };
  });
  check("queries and gradients", [&](OptionsCase& c) {
    c.op.right_bound = 0;
    c.fill = [](PlanCheck& plan) {
      std::vector<double> values = plan.get("q");
      values[10 * 8] = kInfinite;
      plan.set("q", values);
    };
  });
}

}  // namespace
}  // namespace ashlar::cpu

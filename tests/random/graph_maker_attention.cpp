// Random graphs: attention.
#include "graph/op_traits.hpp"
#include "random/graph_maker.hpp"

namespace ashlar::random_graphs {

namespace {

using Mode = PointwiseMode;

// Smooth programs over the score, its positions and score_input0.
const std::vector<ScoreProgram>& score_programs() {
  static const std::vector<ScoreProgram> programs = {
      {{.op = {.mode = Mode::sub}, .args = {2, 1}, .constant = {}},
       {.op = {.mode = Mode::mul, .alpha2 = 0.25}, .args = {10, 5}, .constant = {}},
       {.op = {.mode = Mode::add}, .args = {0, 11}, .constant = {}}},
      {{.op = {.mode = Mode::tanh_fwd}, .args = {0}, .constant = {}},
       {.op = {.mode = Mode::mul}, .args = {10, 5}, .constant = {}}},
      {{.op = {.mode = Mode::swish_fwd, .swish_beta = 1.5}, .args = {0}, .constant = {}},
       {.op = {.mode = Mode::add_square, .alpha2 = 0.5}, .args = {10, 0}, .constant = {}}},
      {{.op = {}, .args = {}, .constant = 2.0},
       {.op = {.mode = Mode::mod}, .args = {2, 10}, .constant = {}},
       {.op = {.mode = Mode::neg}, .args = {0}, .constant = {}},
       {.op = {.mode = Mode::binary_select}, .args = {0, 12, 11}, .constant = {}}},
  };
  return programs;
}

int slot_of(const OpTraits& traits, std::string_view name) {
  int slot = 0;
  while (traits.inputs[static_cast<std::size_t>(slot)].name != name) ++slot;
  return slot;
}

}  // namespace

void GraphMaker::add_attention() {
  using Forward = AttentionForward;
  using Backward = AttentionBackward;
  const std::int64_t heads = chance(0.2) ? 3 : 1 << below(3);
  const std::int64_t batch = 1 + below(3), rows = 1 + below(12), columns = 1 + below(14);
  const std::int64_t width = 1 + below(9);
  const DType dtype = floating();
  const Dims scores = {batch, heads, rows, columns};
  AttentionAttributes attributes;
  std::vector<std::pair<std::string_view, Value>> operands;  // by name, which both operations share
  const auto add = [&](std::string_view operand, Value value) {
    operands.emplace_back(operand, value);
  };
  // k or v: plain, or paged with blocks of a few keys.
  const auto keys = [&](std::int64_t extent, std::string_view table) {
    const std::int64_t key_heads = chance(0.5) ? heads : 1;
    if (!chance(0.15)) return Dims{batch, key_heads, columns, extent};
    const std::int64_t block = 1 + below(4), pages = (columns + block - 1) / block;
    attributes.max_seq_len_kv = columns;
    add(table, graph_.input(name("table"), {batch, 1, pages, 1}, i32));
    return Dims{1 + below(4), key_heads, block, extent};
  };
  const Dims k = keys(width, "page_table_k");
  const Dims v = keys(chance(0.7) ? width : 1 + below(6), "page_table_v");

  if (chance(0.4)) attributes.right_bound = below(3);
  if (chance(0.3)) attributes.left_bound = 1 + below(4);
  if (chance(0.3)) attributes.alignment = MaskAlignment::bottom_right;
  if (chance(0.3)) attributes.scale = 0.5;
  if (chance(0.15)) attributes.alibi = true;
  if (chance(0.15)) attributes.soft_cap = 1.0 + static_cast<double>(below(3));
  Value bias;
  if (chance(0.3)) bias = broadcastable(scores, dtype);
  if (bias && !is_floating(bias.dtype())) bias = {};
  add("bias", bias);
  if (chance(0.15)) {
    attributes.score_modifier = one_of(score_programs());
    add("score_input0", broadcastable(scores, f32));
  }
  const bool has_sink = chance(0.15);
  if (has_sink) add("sink", input({1, heads, 1, 1}, f32));
  if (chance(0.1)) {
    attributes.block_rows = 1 + below(4);
    attributes.block_columns = 1 + below(5);
    const auto blocks = [](std::int64_t extent, std::int64_t block) {
      return (extent + block - 1) / block;
    };
    add("block_mask",
        graph_.input(name("blocks"),
                     {batch, chance(0.5) ? heads : 1, blocks(rows, attributes.block_rows),
                      blocks(columns, attributes.block_columns)},
                     boolean));
  }
  const bool lengths_q = chance(0.3), lengths_kv = chance(0.3);
  if (lengths_q) add("seq_len_q", graph_.input(name("lq"), {batch, 1, 1, 1}, i32));
  if (lengths_kv) add("seq_len_kv", graph_.input(name("lk"), {batch, 1, 1, 1}, i64));
  bool seeded = false;
  if (chance(0.2)) {
    attributes.dropout = 0.25;
    seeded = chance(0.5);
    if (seeded)
      add("dropout_seed", graph_.scalar(name("seed"), i64));
    else
      add("dropout_mask", graph_.input(name("mask"), scores, boolean));
  }
  if (chance(0.1)) {
    add("descale_q", graph_.input(name("factor"), {1, 1, 1, 1}, f32));
    add("descale_v", graph_.input(name("factor"), {1, 1, 1, 1}, f32));
    add("scale_s", graph_.input(name("factor"), {1, 1, 1, 1}, f32));
    add("descale_s", graph_.input(name("factor"), {1, 1, 1, 1}, f32));
  }

  const bool gradient = chance(0.4);
  std::vector<Operand<Forward>> inputs = {{Forward::q, like({batch, heads, rows, width}, dtype)},
                                          {Forward::k, like(k, dtype)},
                                          {Forward::v, like(v, dtype)}};
  std::vector<Operand<Backward>> backward_inputs = {{Backward::q, inputs[0].value},
                                                    {Backward::k, inputs[1].value},
                                                    {Backward::v, inputs[2].value}};
  const Op forward = Forward{}, backward = Backward{};
  const OpTraits& forward_traits = traits_of(forward);
  const OpTraits& backward_traits = traits_of(backward);
  for (const auto& [operand, value] : operands) {
    if (!value) continue;
    inputs.push_back({static_cast<Forward::In>(slot_of(forward_traits, operand)), value});
    backward_inputs.push_back(
        {static_cast<Backward::In>(slot_of(backward_traits, operand)), value});
  }
  std::vector<Wanted<Forward>> wanted = {Forward::o};
  if (gradient || chance(0.3)) wanted.emplace_back(Forward::stats);
  for (Forward::Out slot : {Forward::max, Forward::sum_exp, Forward::amax_s, Forward::amax_o})
    if (chance(0.1)) wanted.emplace_back(slot);
  if (seeded && chance(0.3)) wanted.emplace_back(Forward::rng_dump);
  const auto results = graph_.apply(Forward{attributes}, inputs, wanted);
  keep(results[Forward::o]);
  // A fully masked row has stats of -inf: usable as an output, not as an operand.
  const bool masked = attributes.left_bound || attributes.right_bound || lengths_q || lengths_kv ||
                      attributes.max_seq_len_kv || operands.size() > 1;
  for (std::size_t slot = 1; slot < results.all().size(); ++slot)
    if (results.all()[slot] && (!masked || slot > Forward::sum_exp) && chance(0.4))
      keep(results.all()[slot]);
  if (!gradient) return;

  const Value o = results[Forward::o];
  backward_inputs.push_back({Backward::o, o});
  backward_inputs.push_back({Backward::d_o, like(o.dims(), dtype)});
  backward_inputs.push_back({Backward::stats, results[Forward::stats]});
  std::vector<Wanted<Backward>> gradients = {Backward::dq, Backward::dk, Backward::dv};
  if (bias && chance(0.5)) gradients.emplace_back(Backward::dbias);
  if (has_sink && chance(0.5)) gradients.emplace_back(Backward::dsink);
  for (Backward::Out slot :
       {Backward::amax_dq, Backward::amax_dk, Backward::amax_dv, Backward::amax_dp})
    if (chance(0.1)) gradients.emplace_back(slot);
  for (Value value : graph_.apply(Backward{attributes}, backward_inputs, gradients).all())
    if (value) keep(value);
}

}  // namespace ashlar::random_graphs

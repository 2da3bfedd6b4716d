// Attention's options, backward against central differences of the forward, in f64.
#include "reference/harness.hpp"

namespace ashlar::reference {
namespace {

using Mode = PointwiseMode;

// score * (1 + input0) + log(1 + (query - key)^2) where the key is even, and tanh of it elsewhere.
const ScoreProgram kModifier = {
    {.constant = 1.0},                                              // 10
    {.op = {.mode = Mode::add}, .args = {10, 5}},                   // 11
    {.op = {.mode = Mode::mul}, .args = {0, 11}},                   // 12
    {.op = {.mode = Mode::sub}, .args = {1, 2}},                    // 13
    {.op = {.mode = Mode::add_square}, .args = {10, 13}},           // 14
    {.op = {.mode = Mode::log}, .args = {14}},                      // 15
    {.op = {.mode = Mode::add}, .args = {12, 15}},                  // 16
    {.op = {.mode = Mode::tanh_fwd, .alpha1 = 0.7}, .args = {16}},  // 17
    {.constant = 2.0},                                              // 18
    {.op = {.mode = Mode::mod}, .args = {2, 18}},                   // 19
    {.op = {.mode = Mode::binary_select, .alpha2 = 0.5}, .args = {17, 16, 19}},
};
// score^3 with an explicit gradient program.
const ScoreProgram kCube = {{.op = {.mode = Mode::mul}, .args = {0, 0}},
                            {.op = {.mode = Mode::mul}, .args = {10, 0}}};
const ScoreProgram kCubeGradient = {{.op = {.mode = Mode::mul, .alpha1 = 3.0}, .args = {0, 0}},
                                    {.op = {.mode = Mode::mul}, .args = {10, kScoreGradient}}};

struct OptionCase {
  const char* name;
  AttentionAttributes attributes = {};
  bool bias = false, sink = false, blocks = false, paged = false, factor = false, seeded = false,
       lengths = false;
  ScoreProgram gradient = {};
};

// Operands common to forward and backward, by name.
template <class Op>
std::vector<Operand<Op>> operands_of(const OptionCase& test, Graph& g) {
  const Dims kv = test.paged ? Dims{4, 3, 2, 3} : Dims{2, 3, 5, 3};
  Dims values = kv;
  values[3] = 2;
  std::vector<Operand<Op>> inputs = {{Op::q, g.input("q", {2, 3, 4, 3}, f64)},
                                     {Op::k, g.input("k", kv, f64)},
                                     {Op::v, g.input("v", values, f64)}};
  const auto add = [&](bool wanted, typename Op::In slot, const char* name, const Dims& dims,
                       DType dtype = f64) {
    if (wanted) inputs.push_back({slot, g.input(name, dims, dtype)});
  };
  add(test.bias, Op::bias, "bias", {1, 3, 4, 5});
  add(test.sink, Op::sink, "sink", {1, 3, 1, 1});
  add(test.blocks, Op::block_mask, "blocks", {2, 1, 2, 3}, boolean);
  add(test.paged, Op::page_table_k, "k_table", {2, 1, 3, 1}, i32);
  add(test.paged, Op::page_table_v, "v_table", {2, 1, 3, 1}, i32);
  add(test.factor, Op::score_input0, "factor", {1, 3, 1, 5});
  add(test.seeded, Op::dropout_seed, "seed", {1, 1, 1, 1}, i64);
  add(test.lengths, Op::seq_len_q, "rows", {2, 1, 1, 1}, i32);
  add(test.lengths, Op::seq_len_kv, "keys", {2, 1, 1, 1}, i32);
  return inputs;
}

class AttentionOptionGradients : public testing::TestWithParam<OptionCase> {};

TEST_P(AttentionOptionGradients, MatchFiniteDifferences) {
  const OptionCase& test = GetParam();
  Graph f;
  AttentionForward forward_op{test.attributes};
  const std::vector<Wanted<AttentionForward>> forward_wanted = {AttentionForward::o,
                                                                AttentionForward::stats};
  const auto results = f.apply(forward_op, operands_of<AttentionForward>(test, f), forward_wanted);
  f.output("o", results[AttentionForward::o]);
  f.output("stats", results[AttentionForward::stats]);

  using Op = AttentionBackward;
  Graph b;
  Op op{test.attributes};
  op.score_modifier_gradient = test.gradient;
  std::vector<Operand<Op>> inputs = operands_of<Op>(test, b);
  inputs.push_back({Op::o, b.input("o", results[AttentionForward::o].dims(), f64)});
  inputs.push_back({Op::d_o, b.input("do", results[AttentionForward::o].dims(), f64)});
  inputs.push_back({Op::stats, b.input("stats", results[AttentionForward::stats].dims(), f64)});
  std::vector<Wanted<Op>> wanted = {Op::dq, Op::dk, Op::dv};
  std::vector<std::string> names = {"q", "k", "v"};
  if (test.bias) {
    wanted.emplace_back(Op::dbias);
    names.push_back("bias");
  }
  if (test.sink) {
    wanted.emplace_back(Op::dsink);
    names.push_back("sink");
  }
  const auto gradients = b.apply(op, inputs, wanted);
  for (std::size_t i = 0; i < wanted.size(); ++i)
    b.output("d" + names[i], gradients[wanted[i].slot]);

  Evaluation forward(f), backward(b);
  forward.fill_inputs(29);
  if (test.blocks) forward.set("blocks", {1, 0, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1});
  if (test.paged) {
    // Both batches read block 1; one key has no page.
    forward.set("k_table", {0, 1, 2, 3, 1, 9});
    forward.set("v_table", {2, 1, 0, 3, 1, 0});
  }
  if (test.seeded) forward.set("seed", {987654321});
  if (test.lengths) {
    forward.set("rows", {3, 2});
    forward.set("keys", {5, 3});
  }
  expect_gradients(forward, "o", backward, names, "do");
}

INSTANTIATE_TEST_SUITE_P(
    All, AttentionOptionGradients,
    testing::Values(
        OptionCase{.name = "alibi", .attributes = {.right_bound = 0, .alibi = true}, .bias = true},
        OptionCase{.name = "soft_cap", .attributes = {.scale = 1.5, .soft_cap = 0.8}, .bias = true},
        OptionCase{.name = "sink", .bias = true, .sink = true},
        OptionCase{.name = "sink_dropout_lengths",
                   .attributes = {.right_bound = 0, .dropout = 0.3},
                   .bias = true,
                   .sink = true,
                   .seeded = true,
                   .lengths = true},
        OptionCase{.name = "block_mask",
                   .attributes = {.block_rows = 2, .block_columns = 2},
                   .sink = true,
                   .blocks = true},
        OptionCase{
            .name = "paged", .attributes = {.max_seq_len_kv = 5}, .bias = true, .paged = true},
        OptionCase{.name = "paged_sink_lengths",
                   .attributes = {.right_bound = 1, .max_seq_len_kv = 5},
                   .sink = true,
                   .paged = true,
                   .lengths = true},
        OptionCase{.name = "modifier",
                   .attributes = {.score_modifier = kModifier},
                   .bias = true,
                   .factor = true},
        OptionCase{.name = "modifier_soft_cap_sink_dropout",
                   .attributes = {.scale = 1.2,
                                  .left_bound = 3,
                                  .right_bound = 1,
                                  .dropout = 0.25,
                                  .alibi = true,
                                  .soft_cap = 0.9,
                                  .score_modifier = kModifier},
                   .bias = true,
                   .sink = true,
                   .factor = true,
                   .seeded = true},
        OptionCase{.name = "modifier_derived", .attributes = {.score_modifier = kCube}},
        OptionCase{.name = "modifier_given_gradient",
                   .attributes = {.soft_cap = 2.0, .score_modifier = kCube},
                   .gradient = kCubeGradient}),
    [](const auto& param_info) { return param_info.param.name; });

}  // namespace
}  // namespace ashlar::reference

// Invalid inputs of attention.
#include <stdexcept>

#include "graph/bad_input.hpp"
#include "graph/op_traits.hpp"

namespace ashlar::tests {

namespace {

const Dims kQ = {2, 4, 5, 8}, kK = {2, 2, 6, 8}, kV = {2, 2, 6, 3};

struct Shapes {
  Dims q = kQ, k = kK, v = kV;
  DType q_dtype = f32;
};

void add_attention_forward(BadInputs& rows) {
  const auto attention = [&](const char* name, const Shapes& shapes,
                             const AttentionAttributes& attributes, std::vector<std::string> says,
                             std::function<AttentionOperands(Graph&)> with = {}) {
    rows.push_back({name, "attention_forward",
                    [=](Graph& g) {
                      const Value q = in(g, shapes.q, shapes.q_dtype), k = in(g, shapes.k);
                      const Value v = in(g, shapes.v);
                      const AttentionOperands operands = with ? with(g) : AttentionOperands{};
                      g.attention(q, k, v, attributes, operands, true, kBad);
                    },
                    says});
  };
  attention("attention rank", {.q = {4, 5, 8}}, {}, {"rank of q 'i0'", "got 3", "expected 4"});
  attention("attention dtype", {.q_dtype = i8}, {},
            {"dtype of q 'i0'", "got i8", "expected a floating-point type"});
  attention("attention batch", {.k = {3, 2, 6, 8}}, {},
            {"batch of k", "got 3", "expected 2, that of q"});
  attention("attention head dim", {.k = {2, 2, 6, 7}}, {},
            {"head dim of k", "got 7", "expected 8, that of q"});
  attention("attention lengths", {.v = {2, 2, 7, 3}}, {},
            {"sequence length of v", "got 7", "expected 6, that of k"});
  attention("attention heads of k", {.k = {2, 3, 6, 8}}, {},
            {"heads of k", "got 3", "expected a divisor of q's 4 heads"});
  attention("attention no heads of v", {.v = {2, 0, 6, 3}}, {},
            {"heads of v", "got 0", "expected a divisor of q's 4 heads"});
  attention("attention left_bound", {}, {.left_bound = 0},
            {"left_bound", "got 0", "expected at least 1"});
  attention("attention right_bound", {}, {.right_bound = -1},
            {"right_bound", "got -1", "expected at least 0"});
  attention("attention dropout of 1", {}, {.dropout = 1.0},
            {"dropout", "got 1", "expected a probability in [0, 1)"});
  attention("attention dropout negative", {}, {.dropout = -0.5},
            {"dropout", "got -0.5", "expected a probability in [0, 1)"});
  attention("attention dropout of nothing", {}, {.dropout = 0.5},
            {"dropout source", "got none", "expected dropout_seed"});
  attention("attention dropout of both", {}, {.dropout = 0.5},
            {"dropout source", "got both", "expected dropout_seed"}, [](Graph& g) {
              return AttentionOperands{.dropout_seed = in(g, {1, 1, 1, 1}, i64),
                                       .dropout_mask = in(g, {2, 4, 5, 6}, boolean)};
            });
  attention("attention seed without dropout", {}, {},
            {"dropout", "got 0", "expected a probability above 0"}, [](Graph& g) {
              return AttentionOperands{.dropout_seed = in(g, {1, 1, 1, 1}, i64)};
            });
  attention("attention offset without seed", {}, {.dropout = 0.5},
            {"input dropout_offset", "got a tensor", "expected none without dropout_seed"},
            [](Graph& g) {
              return AttentionOperands{.dropout_offset = in(g, {1, 1, 1, 1}, i64),
                                       .dropout_mask = in(g, {2, 4, 5, 6}, boolean)};
            });
  attention("attention seed of many", {}, {.dropout = 0.5},
            {"dims of dropout_seed 'i3'", "got [2, 1, 1, 1]", "expected a single element"},
            [](Graph& g) {
              return AttentionOperands{.dropout_seed = in(g, {2, 1, 1, 1}, i64)};
            });
  attention("attention seed of floats", {}, {.dropout = 0.5},
            {"dtype of dropout_seed 'i3'", "got f32", "expected an integer type"}, [](Graph& g) {
              return AttentionOperands{.dropout_seed = in(g, {1, 1, 1, 1})};
            });
  attention("attention mask dims", {}, {.dropout = 0.5},
            {"dims of dropout_mask 'i3'", "got [2, 4, 5, 5]", "expected [2, 4, 5, 6]"},
            [](Graph& g) {
              return AttentionOperands{.dropout_mask = in(g, {2, 4, 5, 5}, boolean)};
            });
  attention(
      "attention bias dims", {}, {},
      {"dims of bias 'i3'", "got [1, 3, 5, 6]", "expected extents equal to [2, 4, 5, 6] or 1"},
      [](Graph& g) {
        return AttentionOperands{.bias = in(g, {1, 3, 5, 6})};
      });
  attention("attention bias dtype", {}, {},
            {"dtype of bias 'i3'", "got i32", "expected a floating-point type"}, [](Graph& g) {
              return AttentionOperands{.bias = in(g, {1, 4, 5, 6}, i32)};
            });
  attention("attention seq_len_q dims", {}, {},
            {"dims of seq_len_q 'i3'", "got [1, 1, 1, 1]", "expected [2, 1, 1, 1]"}, [](Graph& g) {
              return AttentionOperands{.seq_len_q = in(g, {1, 1, 1, 1}, i32)};
            });
  attention("attention seq_len_kv dtype", {}, {},
            {"dtype of seq_len_kv 'i3'", "got f32", "expected an integer type"}, [](Graph& g) {
              return AttentionOperands{.seq_len_kv = in(g, {2, 1, 1, 1})};
            });
  attention("attention scale of many", {}, {},
            {"dims of scale_tensor 'i3'", "got [2, 1, 1, 1]", "expected a single element"},
            [](Graph& g) {
              return AttentionOperands{.scale = in(g, {2, 1, 1, 1})};
            });
  attention("attention scale of integers", {}, {},
            {"dtype of scale_tensor 'i3'", "got i32", "expected a floating-point type"},
            [](Graph& g) {
              return AttentionOperands{.scale = in(g, {1, 1, 1, 1}, i32)};
            });
}

void add_attention_backward(BadInputs& rows) {
  const Dims o = {2, 4, 5, 3}, stats = {2, 4, 5, 1};
  const auto backward = [&](const char* name, const Dims& o_dims, const Dims& d_o_dims,
                            const Dims& stats_dims, DType stats_dtype, bool with_dbias,
                            std::vector<std::string> says) {
    rows.push_back({name, "attention_backward",
                    [=](Graph& g) {
                      const Value q = in(g, kQ), k = in(g, kK), v = in(g, kV);
                      const Value out = in(g, o_dims), gradient = in(g, d_o_dims);
                      const Value sums = in(g, stats_dims, stats_dtype);
                      g.attention_backward(q, k, v, out, gradient, sums, {}, {}, with_dbias);
                    },
                    says});
  };
  backward("attention_backward o", {2, 4, 5, 8}, o, stats, f32, false,
           {"dims of o 'i3'", "got [2, 4, 5, 8]", "expected [2, 4, 5, 3]"});
  backward("attention_backward d_o", o, {2, 4, 5, 4}, stats, f32, false,
           {"dims of d_o 'i4'", "got [2, 4, 5, 4]", "expected [2, 4, 5, 3]"});
  backward("attention_backward stats", o, o, {2, 4, 1, 5}, f32, false,
           {"dims of stats 'i5'", "got [2, 4, 1, 5]", "expected [2, 4, 5, 1]"});
  backward("attention_backward integer stats", o, o, stats, i32, false,
           {"dtype of stats 'i5'", "got i32", "expected a floating-point type"});
  backward("attention_backward dbias of no bias", o, o, stats, f32, true,
           {"output dbias", "got a tensor", "expected none without an input bias"});
  rows.push_back({"attention_backward without stats",
                  "attention_backward",
                  [=](Graph& g) {
                    const Value q = in(g, kQ), k = in(g, kK), v = in(g, kV);
                    g.attention_backward(q, k, v, in(g, o), in(g, o), {});
                  },
                  {"input stats", "got nothing", "expected a tensor"}});
  rows.push_back({"attention_backward dropout",
                  "attention_backward",
                  [=](Graph& g) {
                    const Value q = in(g, kQ), k = in(g, kK), v = in(g, kV);
                    g.attention_backward(q, k, v, in(g, o), in(g, o), in(g, stats),
                                         {.dropout = 2.0});
                  },
                  {"dropout", "got 2", "expected a probability in [0, 1)"}});
}

// The options that only the general form of an attention node has.
struct Option {
  std::string name;
  std::function<void(AttentionAttributes&)> change;
  std::function<std::vector<std::pair<std::string, Value>>(Graph&)> with;  // operands by name
  std::vector<std::string> says;
  Dims k = kK, v = kV;
};

int slot_of(const OpTraits& traits, const std::string& name) {
  for (std::size_t i = 0; i < traits.inputs.size(); ++i)
    if (traits.inputs[i].name == name) return static_cast<int>(i);
  throw std::logic_error("no operand " + name);
}

template <class Op>
void attempt(Graph& g, const Option& option, Op op, const std::vector<Wanted<Op>>& outputs) {
  const ashlar::Op any = op;
  const OpTraits& traits = traits_of(any);
  const Value q = in(g, kQ), k = in(g, option.k), v = in(g, option.v);
  std::vector<Operand<Op>> inputs = {{Op::q, q}, {Op::k, k}, {Op::v, v}};
  if (option.with)
    for (const auto& [name, value] : option.with(g))
      inputs.push_back({static_cast<typename Op::In>(slot_of(traits, name)), value});
  if constexpr (std::is_same_v<Op, AttentionBackward>) {
    const Value o = in(g, {2, 4, 5, 3}), d_o = in(g, {2, 4, 5, 3}), stats = in(g, {2, 4, 5, 1});
    inputs.push_back({Op::o, o});
    inputs.push_back({Op::d_o, d_o});
    inputs.push_back({Op::stats, stats});
  }
  if (option.change) option.change(op);
  g.apply(op, inputs, outputs, kBad);
}

std::vector<Option> bad_options() {
  using Attributes = AttentionAttributes;
  using Mode = PointwiseMode;
  const auto tensor = [](const char* name, const Dims& dims, DType dtype = f32) {
    return [=](Graph& g) {
      return std::vector<std::pair<std::string, Value>>{{name, in(g, dims, dtype)}};
    };
  };
  const auto program = [](ScoreProgram steps) {
    return [=](Attributes& a) { a.score_modifier = steps; };
  };
  const auto pages = [](const Dims& k_table, const Dims& v_table) {
    return [=](Graph& g) {
      const Value k = in(g, k_table, i32), v = in(g, v_table, i32);
      return std::vector<std::pair<std::string, Value>>{{"page_table_k", k}, {"page_table_v", v}};
    };
  };
  const Dims blocks_k = {9, 2, 4, 8}, blocks_v = {9, 2, 4, 3};
  return {
      {"soft_cap of 0",
       [](Attributes& a) { a.soft_cap = 0.0; },
       {},
       {"soft_cap", "got 0", "expected a finite value above 0"}},
      {"max_seq_len_kv without pages",
       [](Attributes& a) { a.max_seq_len_kv = 6; },
       {},
       {"max_seq_len_kv", "got 6", "expected none without a page table"}},
      {"max_seq_len_kv past the pages",
       [](Attributes& a) { a.max_seq_len_kv = 9; },
       pages({2, 1, 2, 1}, {2, 1, 3, 1}),
       {"max_seq_len_kv", "got 9", "expected 0 to 8, the keys the page table can hold"},
       blocks_k,
       blocks_v},
      {"max_seq_len_kv that k has not",
       [](Attributes& a) { a.max_seq_len_kv = 5; },
       tensor("page_table_v", {2, 1, 2, 1}, i32),
       {"max_seq_len_kv", "got 5", "expected 6, the length of the unpaged operand"},
       kK,
       blocks_v},
      {"too few pages for the keys",
       {},
       tensor("page_table_v", {2, 1, 1, 1}, i32),
       {"max_seq_len_kv", "got 6", "expected 0 to 4"},
       kK,
       blocks_v},
      {"page table dims",
       {},
       pages({2, 2, 2, 1}, {2, 1, 2, 1}),
       {"dims of page_table_k 'i3'", "got [2, 2, 2, 1]", "expected [2, 1, 2, 1]"},
       blocks_k,
       blocks_v},
      {"page table rank",
       {},
       pages({2, 1, 2}, {2, 1, 2, 1}),
       {"rank of page_table_k 'i3'", "got 3", "expected 4"},
       blocks_k,
       blocks_v},
      {"page table dtype",
       {},
       tensor("page_table_k", {2, 1, 2, 1}, f32),
       {"dtype of page_table_k 'i3'", "got f32", "expected an integer type"},
       blocks_k},
      {"ragged container",
       {},
       [](Graph& g) {
         const Value offsets = in(g, {3, 1, 1, 1}, i32);
         const Value table = g.ragged_input("ragged", {2, 1, 2, 1}, i32, row_major, offsets);
         return std::vector<std::pair<std::string, Value>>{{"page_table_k", table}};
       },
       {"input page_table_k 'ragged'", "got a ragged tensor", "expected a plain one"},
       blocks_k},
      {"sink dims",
       {},
       tensor("sink", {2, 4, 1, 1}),
       {"dims of sink 'i3'", "got [2, 4, 1, 1]", "expected [1, 4, 1, 1]"}},
      {"sink dtype",
       {},
       tensor("sink", {1, 4, 1, 1}, i32),
       {"dtype of sink 'i3'", "got i32", "expected a floating-point type"}},
      {"block_mask dims",
       [](Attributes& a) { a.block_rows = a.block_columns = 2; },
       tensor("block_mask", {2, 4, 2, 3}, boolean),
       {"dims of block_mask 'i3'", "got [2, 4, 2, 3]", "extents equal to [2, 4, 3, 3] or 1"}},
      {"block_mask dtype",
       {},
       tensor("block_mask", {2, 4, 1, 1}, u8),
       {"dtype of block_mask 'i3'", "got u8", "expected bool"}},
      {"block_rows of 0",
       [](Attributes& a) { a.block_rows = 0; },
       {},
       {"block_rows", "got 0", "expected at least 1"}},
      {"block_columns negative",
       [](Attributes& a) { a.block_columns = -1; },
       {},
       {"block_columns", "got -1", "expected at least 1"}},
      {"score input dims",
       {},
       tensor("score_input2", {2, 4, 6, 6}),
       {"dims of score_input2 'i3'", "got [2, 4, 6, 6]", "extents equal to [2, 4, 5, 6] or 1"}},
      {"score input dtype",
       {},
       tensor("score_input1", {1, 4, 1, 1}, complex_f32),
       {"dtype of score_input1 'i3'", "got complex_f32", "expected a real type"}},
      {"descale of many",
       {},
       tensor("descale_k", {2, 1, 1, 1}),
       {"dims of descale_k 'i3'", "got [2, 1, 1, 1]", "expected a single element"}},
      {"score scale of integers",
       {},
       tensor("scale_s", {1, 1, 1, 1}, i32),
       {"dtype of scale_s 'i3'", "got i32", "expected a floating-point type"}},
      {"program too long",
       program(ScoreProgram(65, {.op = {}, .args = {0}, .constant = {}})),
       {},
       {"score_modifier step 64", "got 65 steps", "expected at most 64"}},
      {"program with a constant of operands",
       program({{.op = {}, .args = {0}, .constant = 1.0}}),
       {},
       {"score_modifier step 0", "got args [0]", "expected none with a constant"}},
      {"program with gen_index",
       program({{.op = {.mode = Mode::gen_index}, .args = {0}, .constant = {}}}),
       {},
       {"score_modifier step 0", "got mode gen_index", "expected values 1 to 4"}},
      {"program with bits",
       program({{.op = {.mode = Mode::bit_not}, .args = {0}, .constant = {}}}),
       {},
       {"score_modifier step 0", "got mode bit_not", "a mode for floating-point numbers"}},
      {"program with too few operands",
       program({{.op = {.mode = Mode::add}, .args = {0}, .constant = {}}}),
       {},
       {"score_modifier step 0", "got args [0]", "expected 2 for add"}},
      {"program that reads a later step",
       program({{.op = {}, .args = {0}, .constant = {}}, {.op = {}, .args = {11}, .constant = {}}}),
       {},
       {"score_modifier step 1", "got value 11", " or an earlier step (10 to 10)"}},
      {"program that reads no input",
       program({{.op = {}, .args = {6}, .constant = {}}}),
       {},
       {"score_modifier step 0", "got value 6", "a score input that is given (5 to 8)"}},
      {"program that reads the gradient",
       program({{.op = {}, .args = {9}, .constant = {}}}),
       {},
       {"score_modifier step 0", "got value 9", "expected 0 to 4"}},
      {"program that reads a negative value",
       program({{.op = {}, .args = {-1}, .constant = {}}}),
       {},
       {"score_modifier step 0", "got value -1", "expected 0 to 4"}},
      {"program with clips the wrong way round",
       program({{.op = {.mode = Mode::relu_fwd, .relu_lower_clip = 1.0, .relu_upper_clip = 0.5},
                 .args = {0},
                 .constant = {}}}),
       {},
       {"score_modifier step 0", "got relu_lower_clip 1", "at most relu_upper_clip = 0.5"}},
      {"program with softplus_beta of 0",
       program({{.op = {.mode = Mode::softplus_fwd, .softplus_beta = 0.0},
                 .args = {0},
                 .constant = {}}}),
       {},
       {"score_modifier step 0", "got softplus_beta 0", "a value other than 0"}},
  };
}

void add_options(BadInputs& rows) {
  const std::vector<Wanted<AttentionForward>> forward = {AttentionForward::o};
  const std::vector<Wanted<AttentionBackward>> backward = {
      AttentionBackward::dq, AttentionBackward::dk, AttentionBackward::dv};
  for (const Option& option : bad_options()) {
    rows.push_back({"attention " + option.name, "attention_forward",
                    [=](Graph& g) { attempt(g, option, AttentionForward{}, forward); },
                    option.says});
    rows.push_back({"attention_backward " + option.name, "attention_backward",
                    [=](Graph& g) { attempt(g, option, AttentionBackward{}, backward); },
                    option.says});
  }
  rows.push_back(
      {"attention rng_dump without a seed",
       "attention_forward",
       [](Graph& g) {
         attempt(g, {}, AttentionForward{}, {AttentionForward::o, AttentionForward::rng_dump});
       },
       {"output rng_dump", "got a tensor", "expected none without dropout_seed"}});
  rows.push_back({"attention_backward dsink of no sink",
                  "attention_backward",
                  [](Graph& g) {
                    attempt(g, {}, AttentionBackward{},
                            {AttentionBackward::dq, AttentionBackward::dk, AttentionBackward::dv,
                             AttentionBackward::dsink});
                  },
                  {"output dsink", "got a tensor", "expected none without an input sink"}});
  rows.push_back({"attention_backward program without a derivative",
                  "attention_backward",
                  [=](Graph& g) {
                    AttentionBackward op;
                    op.score_modifier = {
                        {.op = {.mode = PointwiseMode::tanh_bwd}, .args = {1, 0}, .constant = {}}};
                    attempt(g, {}, op, backward);
                  },
                  {"score_modifier step 0", "got an activation gradient",
                   "expected a step that can be differentiated, or score_modifier_gradient"}});
  rows.push_back(
      {"attention_backward gradient of no program",
       "attention_backward",
       [=](Graph& g) {
         AttentionBackward op;
         op.score_modifier_gradient = {{.op = {}, .args = {9}, .constant = {}}};
         attempt(g, {}, op, backward);
       },
       {"score_modifier_gradient", "got 1 steps", "expected none without score_modifier"}});
  rows.push_back({"attention_backward bad gradient program",
                  "attention_backward",
                  [=](Graph& g) {
                    AttentionBackward op;
                    op.score_modifier = {{.op = {}, .args = {0}, .constant = {}}};
                    op.score_modifier_gradient = {{.op = {}, .args = {10}, .constant = {}}};
                    attempt(g, {}, op, backward);
                  },
                  {"score_modifier_gradient step 0", "got value 10", "the gradient (9)"}});
}

}  // namespace

void add_bad_attentions(BadInputs& rows) {
  add_attention_forward(rows);
  add_attention_backward(rows);
  add_options(rows);
}

}  // namespace ashlar::tests

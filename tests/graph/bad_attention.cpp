#include "graph/bad_input.hpp"

namespace ashlar::tests {

namespace {

const Dims kQ = {2, 4, 5, 8}, kK = {2, 2, 6, 8}, kV = {2, 2, 6, 3};

struct Shapes {
  Dims q = kQ, k = kK, v = kV;
  DType q_dtype = f32;
};

void add_forward(BadInputs& rows) {
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
            {"batch of k and v", "got 3 and 2", "expected 2, that of q"});
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

void add_backward(BadInputs& rows) {
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

}  // namespace

void add_bad_attentions(BadInputs& rows) {
  add_forward(rows);
  add_backward(rows);
}

}  // namespace ashlar::tests

// Invalid inputs of multi-head attention.
#include "graph/bad_input.hpp"
#include "support/multi_head_problem.hpp"

namespace ashlar::tests {

namespace {

using support::MultiHeadCase;
using Forward = MultiHeadAttentionForward;
using BackwardData = MultiHeadAttentionBackwardData;
using BackwardWeights = MultiHeadAttentionBackwardWeights;

const MultiHeadAttentionAttributes kPlainHeads = {
    .heads = 2, .q_projection = 3, .k_projection = 3, .v_projection = 2, .o_projection = 5};

// The operands of a valid node, some of which a row replaces.
struct Wrong {
  MultiHeadAttentionAttributes attributes = kPlainHeads;
  std::vector<std::pair<int, Dims>> dims = {};
  std::vector<std::pair<int, DType>> dtypes = {};
  std::vector<int> without = {};
  std::vector<std::pair<int, Dims>> extra = {};  // further operands, of i32
};

template <class MultiHead>
void row(BadInputs& rows, const char* op, const char* name, const Wrong& wrong,
         std::vector<std::string> says) {
  rows.push_back({std::string(op) + " " + name, op,
                  [=](Graph& g) {
                    MultiHead node;
                    static_cast<MultiHeadAttentionAttributes&>(node) = wrong.attributes;
                    const MultiHeadCase right{.label = "", .attributes = kPlainHeads};
                    std::vector<std::pair<int, Dims>> operands = {
                        {MultiHead::q, right.q()},
                        {MultiHead::k, right.k()},
                        {MultiHead::v, right.v()},
                        {MultiHead::weights, {right.shape().weight_count}}};
                    if constexpr (requires { MultiHead::d_o; })
                      operands.emplace_back(MultiHead::d_o, right.shape().o_dims());
                    std::vector<AnyOperand> inputs;
                    for (auto [slot, dims] : operands) {
                      if (std::count(wrong.without.begin(), wrong.without.end(), slot)) continue;
                      DType dtype = f32;
                      for (const auto& [changed, to] : wrong.dims)
                        if (changed == slot) dims = to;
                      for (const auto& [changed, to] : wrong.dtypes)
                        if (changed == slot) dtype = to;
                      inputs.push_back({slot, in(g, dims, dtype)});
                    }
                    for (const auto& [slot, dims] : wrong.extra)
                      inputs.push_back({slot, in(g, dims, i32)});
                    std::vector<AnyWanted> outputs = {{0}};
                    if constexpr (requires { MultiHead::dk; }) outputs = {{0}, {1}, {2}};
                    g.apply_any(node, inputs, outputs, kBad);
                  },
                  std::move(says)});
}

MultiHeadAttentionAttributes with(void (*change)(MultiHeadAttentionAttributes&)) {
  MultiHeadAttentionAttributes attributes = kPlainHeads;
  change(attributes);
  return attributes;
}

// Errors common to the three operations.
template <class MultiHead>
void add_common(BadInputs& rows, const char* op) {
  const auto bad = [&](const char* name, const Wrong& wrong, std::vector<std::string> says) {
    row<MultiHead>(rows, op, name, wrong, std::move(says));
  };
  bad("heads", {.attributes = with([](auto& a) { a.heads = 0; })},
      {"heads", "got 0", "expected at least 1"});
  bad("negative projection", {.attributes = with([](auto& a) { a.v_projection = -1; })},
      {"v_projection", "got -1", "expected at least 0 (0: no projection)"});
  bad("rank", {.dims = {{MultiHead::q, {2, 3, 4}}}},
      {"rank of q 'i0'", "got 3", "expected 4 to 4"});
  bad("dtype", {.dtypes = {{MultiHead::v, i8}}},
      {"dtype of v 'i2'", "got i8", "expected a floating-point type"});
  bad("batch", {.dims = {{MultiHead::k, {3, 1, 4, 4}}}},
      {"batch of k and v", "got 3 and 2", "expected 2, that of q"});
  bad("beams of k", {.dims = {{MultiHead::k, {2, 3, 4, 4}}}},
      {"beams of k", "got 3", "expected 1 or 1, those of q"});
  bad("beams of v", {.dims = {{MultiHead::v, {2, 2, 4, 4}}}},
      {"beams of v", "got 2", "expected 1, those of k"});
  bad("lengths of k and v", {.dims = {{MultiHead::v, {2, 1, 5, 4}}}},
      {"sequence length of v", "got 5", "expected 4, that of k"});
  bad("empty vectors", {.dims = {{MultiHead::q, {2, 1, 3, 0}}}},
      {"vector size of q 'i0'", "got 0", "expected at least 1"});
  bad("sizes of heads", {.attributes = with([](auto& a) { a.k_projection = 2; })},
      {"size of a head of k", "got 2", "expected 3, that of q"});
  bad("weights of another size", {.dims = {{MultiHead::weights, {83}}}},
      {"dims of weights 'i3'", "got [83]", "expected [84]"});
  bad("weights of integers", {.dtypes = {{MultiHead::weights, i32}}},
      {"dtype of weights 'i3'", "got i32", "expected a floating-point type"});
  bad("lengths of queries", {.extra = {{MultiHead::seq_len_q, {2, 1, 3, 1}}}},
      {"dims of seq_len_q", "got [2, 1, 3, 1]", "expected [2, 1, 1, 1]"});
  bad("lengths of keys", {.extra = {{MultiHead::seq_len_kv, {1, 1, 1, 1}}}},
      {"dims of seq_len_kv", "got [1, 1, 1, 1]", "expected [2, 1, 1, 1]"});
  bad("windows", {.extra = {{MultiHead::window_high, {1, 1, 4, 1}}}},
      {"dims of window_high", "got [1, 1, 4, 1]", "expected [1, 1, 3, 1]"});
  bad("dropout of 1", {.attributes = with([](auto& a) { a.attention_dropout = 1.0; })},
      {"attention_dropout", "got 1", "expected a probability in [0, 1)"});
  bad("dropout without a seed", {.attributes = with([](auto& a) { a.post_dropout = 0.5; })},
      {"input post_dropout_seed", "got nothing", "expected a tensor: post_dropout is above 0"});
  bad("a seed without dropout", {.extra = {{MultiHead::dropout_seed, {1}}}},
      {"attention_dropout", "got 0", "expected a probability above 0 with dropout_seed"});
  bad("an offset without a seed", {.extra = {{MultiHead::post_dropout_offset, {1}}}},
      {"input post_dropout_offset", "got a tensor", "expected none without post_dropout_seed"});
  bad("two seeds",
      {.attributes = with([](auto& a) { a.attention_dropout = 0.5; }),
       .extra = {{MultiHead::dropout_seed, {2}}}},
      {"dims of dropout_seed", "got [2]", "expected a single element"});
}

}  // namespace

void add_bad_multi_head(BadInputs& rows) {
  const char* forward = "multi_head_attention_forward";
  const char* data = "multi_head_attention_backward_data";
  const char* weights = "multi_head_attention_backward_weights";
  add_common<Forward>(rows, forward);
  add_common<BackwardData>(rows, data);
  add_common<BackwardWeights>(rows, weights);
  const MultiHeadAttentionAttributes none = {.heads = 2};
  row<Forward>(rows, forward, "no weights", {.without = {Forward::weights}},
               {"input weights", "got nothing", "expected a tensor of 84 elements"});
  row<Forward>(rows, forward, "weights without projections", {.attributes = none},
               {"input weights", "got a tensor", "expected none without projections"});
  row<Forward>(rows, forward, "residual", {.extra = {{Forward::residual, {2, 1, 3, 4}}}},
               {"dims of residual", "got [2, 1, 3, 4]", "expected [2, 1, 3, 5]"});
  row<Forward>(rows, forward, "residual of integers",
               {.extra = {{Forward::residual, {2, 1, 3, 5}}}},
               {"dtype of residual", "got i32", "expected a floating-point type"});
  row<BackwardData>(rows, data, "gradient", {.dims = {{BackwardData::d_o, {2, 1, 3, 4}}}},
                    {"dims of d_o", "got [2, 1, 3, 4]", "expected [2, 1, 3, 5]"});
  row<BackwardData>(rows, data, "gradient of integers", {.dtypes = {{BackwardData::d_o, i32}}},
                    {"dtype of d_o", "got i32", "expected a floating-point type"});
  row<BackwardWeights>(rows, weights, "previous", {.extra = {{BackwardWeights::previous, {3}}}},
                       {"dims of previous", "got [3]", "expected [84]"});
  row<BackwardWeights>(rows, weights, "previous of integers",
                       {.extra = {{BackwardWeights::previous, {84}}}},
                       {"dtype of previous", "got i32", "expected a floating-point type"});
  row<BackwardWeights>(rows, weights, "no weights", {.without = {BackwardWeights::weights}},
                       {"input weights", "got nothing", "expected a tensor"});
}

}  // namespace ashlar::tests

#include "op_probes.hpp"

#include <array>

namespace ashlar::cli {

namespace {

using Results = std::vector<Value>;

// Parameters and statistics: f64 with f64 operands, else f32.
DType wide(DType dtype) { return dtype == f64 ? f64 : f32; }

Results conv_forward(Graph& g, DType t) {
  return {g.conv(g.input("x", {1, 4, 6, 6}, t), g.input("w", {4, 4, 3, 3}, t))};
}
Results conv_backward_data(Graph& g, DType t) {
  return {g.conv_backward_data(g.input("dy", {1, 4, 4, 4}, t), g.input("w", {4, 4, 3, 3}, t), {},
                               {.dims = {1, 4, 6, 6}})};
}
Results conv_backward_filter(Graph& g, DType t) {
  return {g.conv_backward_filter(g.input("x", {1, 4, 6, 6}, t), g.input("dy", {1, 4, 4, 4}, t), {},
                                 {.dims = {4, 4, 3, 3}})};
}
Results causal_conv_forward(Graph& g, DType t) {
  using Op = CausalConvForward;
  return g.apply(Op{}, {{Op::x, g.input("x", {2, 8, 16}, t)}, {Op::w, g.input("w", {8, 4}, t)}},
                 {Op::y});
}
Results causal_conv_backward(Graph& g, DType t) {
  using Op = CausalConvBackward;
  return g.apply(Op{},
                 {{Op::x, g.input("x", {2, 8, 16}, t)},
                  {Op::w, g.input("w", {8, 4}, t)},
                  {Op::dy, g.input("dy", {2, 8, 16}, t)}},
                 {Op::dx, Op::dw});
}
Results im2col(Graph& g, DType t) {
  return g.apply(Im2Col{.window = {3, 3}}, {{Im2Col::x, g.input("x", {1, 4, 6, 6}, t)}},
                 {Im2Col::y});
}
Results matmul(Graph& g, DType t) {
  return {g.matmul(g.input("a", {2, 8, 16}, t), g.input("b", {2, 16, 8}, t))};
}
Results moe_grouped_matmul(Graph& g, DType t) {
  using Op = MoeGroupedMatmul;
  return g.apply(Op{},
                 {{Op::token, g.input("token", {1, 8, 16}, t)},
                  {Op::weight, g.input("weight", {2, 16, 8}, t)},
                  {Op::first_token_offset, g.input("offsets", {2, 1, 1}, i32)}},
                 {Op::output});
}
Results moe_grouped_matmul_backward(Graph& g, DType t) {
  using Op = MoeGroupedMatmulBackward;
  return g.apply(Op{},
                 {{Op::doutput, g.input("doutput", {1, 8, 8}, t)},
                  {Op::token, g.input("token", {1, 8, 16}, t)},
                  {Op::weight, g.input("weight", {2, 16, 8}, t)},
                  {Op::first_token_offset, g.input("offsets", {2, 1, 1}, i32)}},
                 {Op::dweight, Op::dtoken});
}
Results pointwise(Graph& g, DType t) {
  const Value x = g.input("x", {4, 16}, t);
  const bool logical = t == boolean;
  return {g.pointwise(logical ? PointwiseMode::logical_not : PointwiseMode::abs, std::array{x})};
}
Results reduction(Graph& g, DType t) {
  return {g.reduce(g.input("x", {4, 16}, t), ReductionMode::add, {1})};
}
Results resample_forward(Graph& g, DType t) {
  return {g.resample(g.input("x", {1, 4, 6, 6}, t), {.window = {2, 2}})};
}
Results resample_backward(Graph& g, DType t) {
  return {g.resample_backward(g.input("dy", {1, 4, 3, 3}, t), {.window = {2, 2}},
                              {.dims = {1, 4, 6, 6}}, {}, g.input("index", {1, 4, 3, 3}, i32))};
}
Results grid_generator_forward(Graph& g, DType t) {
  using Op = GridGeneratorForward;
  Op op;
  op.size = {4, 4};
  return g.apply(op, {{Op::theta, g.input("theta", {2, 2, 3}, t)}}, {Op::grid});
}
Results grid_generator_backward(Graph& g, DType t) {
  using Op = GridGeneratorBackward;
  Op op;
  op.size = {4, 4};
  return g.apply(op, {{Op::dgrid, g.input("dgrid", {2, 4, 4, 2}, t)}}, {Op::dtheta});
}
Results grid_sample_forward(Graph& g, DType t) {
  using Op = GridSampleForward;
  return g.apply(
      Op{},
      {{Op::x, g.input("x", {1, 4, 6, 6}, t)}, {Op::grid, g.input("grid", {1, 4, 4, 2}, wide(t))}},
      {Op::y});
}
Results grid_sample_backward(Graph& g, DType t) {
  using Op = GridSampleBackward;
  return g.apply(Op{},
                 {{Op::x, g.input("x", {1, 4, 6, 6}, t)},
                  {Op::grid, g.input("grid", {1, 4, 4, 2}, wide(t))},
                  {Op::dy, g.input("dy", {1, 4, 4, 4}, t)}},
                 {Op::dx, Op::dgrid});
}
Results norm_forward(Graph& g, DType t) {
  const Value scale = g.input("scale", {1, 64}, wide(t)), bias = g.input("bias", {1, 64}, wide(t));
  return {g.norm(g.input("x", {4, 64}, t), scale, bias).y};
}
Results norm_backward(Graph& g, DType t) {
  const NormGradients gradients = g.norm_backward(
      g.input("x", {4, 64}, t), g.input("dy", {4, 64}, t), g.input("scale", {1, 64}, wide(t)), {});
  return {gradients.dx, gradients.dscale, gradients.dbias};
}
Results gen_stats(Graph& g, DType t) {
  return g.apply(GenStats{}, {{GenStats::x, g.input("x", {2, 8, 4, 4}, t)}},
                 {GenStats::sum, GenStats::sq_sum});
}
Results bn_finalize(Graph& g, DType t) {
  using Op = BnFinalize;
  const auto channels = [&](const char* name) { return g.input(name, {1, 8, 1, 1}, t); };
  return g.apply(Op{.count = 32},
                 {{Op::sum, channels("sum")},
                  {Op::sq_sum, channels("sq_sum")},
                  {Op::scale, channels("scale")},
                  {Op::bias, channels("bias")}},
                 {Op::eq_scale, Op::eq_bias});
}
Results bn_backward_weights(Graph& g, DType t) {
  using Op = BnBackwardWeights;
  const auto channels = [&](const char* name) { return g.input(name, {1, 8, 1, 1}, wide(t)); };
  return g.apply(Op{},
                 {{Op::x, g.input("x", {2, 8, 4, 4}, t)},
                  {Op::dy, g.input("dy", {2, 8, 4, 4}, t)},
                  {Op::mean, channels("mean")},
                  {Op::inv_variance, channels("inv_variance")},
                  {Op::scale, channels("scale")}},
                 {Op::dscale, Op::dbias});
}
Results lrn_forward(Graph& g, DType t) {
  return g.apply(LrnForward{}, {{LrnForward::x, g.input("x", {1, 8, 4, 4}, t)}}, {LrnForward::y});
}
Results lrn_backward(Graph& g, DType t) {
  using Op = LrnBackward;
  return g.apply(Op{},
                 {{Op::x, g.input("x", {1, 8, 4, 4}, t)}, {Op::dy, g.input("dy", {1, 8, 4, 4}, t)}},
                 {Op::dx});
}
Results divisive_norm_forward(Graph& g, DType t) {
  using Op = DivisiveNormForward;
  return g.apply(Op{}, {{Op::x, g.input("x", {1, 8, 4, 4}, t)}}, {Op::y});
}
Results divisive_norm_backward(Graph& g, DType t) {
  using Op = DivisiveNormBackward;
  return g.apply(Op{},
                 {{Op::x, g.input("x", {1, 8, 4, 4}, t)}, {Op::dy, g.input("dy", {1, 8, 4, 4}, t)}},
                 {Op::dx});
}
Results softmax_forward(Graph& g, DType t) { return {g.softmax(g.input("x", {4, 64}, t))}; }
Results softmax_backward(Graph& g, DType t) {
  return {g.softmax_backward(g.input("y", {4, 64}, t), g.input("dy", {4, 64}, t))};
}
Results attention_forward(Graph& g, DType t) {
  const Dims dims = {1, 2, 16, 8};
  return {g.attention(g.input("q", dims, t), g.input("k", dims, t), g.input("v", dims, t)).first};
}
Results attention_backward(Graph& g, DType t) {
  const Dims dims = {1, 2, 16, 8};
  const AttentionGradients gradients = g.attention_backward(
      g.input("q", dims, t), g.input("k", dims, t), g.input("v", dims, t), g.input("o", dims, t),
      g.input("do", dims, t), g.input("stats", {1, 2, 16, 1}, wide(t)));
  return {gradients.dq, gradients.dk, gradients.dv};
}

// Two heads with all four projections, none larger than the other: 4 matrices of 8 x 8.
template <class Op>
Results multi_head_attention(Graph& g, DType t, bool gradient, const std::vector<Wanted>& outputs) {
  Op op;
  op.heads = 2;
  op.q_projection = op.k_projection = op.v_projection = 4;
  op.o_projection = 8;
  const Dims sequence = {1, 1, 4, 8};
  std::vector<Operand> inputs = {{Op::q, g.input("q", sequence, t)},
                                 {Op::k, g.input("k", sequence, t)},
                                 {Op::v, g.input("v", sequence, t)},
                                 {Op::weights, g.input("weights", {4 * 8 * 8}, t)}};
  if constexpr (!std::is_same_v<Op, MultiHeadAttentionForward>)
    if (gradient) inputs.push_back({Op::d_o, g.input("do", sequence, t)});
  return g.apply(op, inputs, outputs);
}
Results multi_head_attention_forward(Graph& g, DType t) {
  using Op = MultiHeadAttentionForward;
  return multi_head_attention<Op>(g, t, false, {Op::o});
}
Results multi_head_attention_backward_data(Graph& g, DType t) {
  using Op = MultiHeadAttentionBackwardData;
  return multi_head_attention<Op>(g, t, true, {Op::dq, Op::dk, Op::dv});
}
Results multi_head_attention_backward_weights(Graph& g, DType t) {
  using Op = MultiHeadAttentionBackwardWeights;
  return multi_head_attention<Op>(g, t, true, {Op::dweights});
}

Results paged_cache_load(Graph& g, DType t) {
  using Op = PagedCacheLoad;
  return g.apply(Op{},
                 {{Op::container, g.input("container", {4, 2, 4, 8}, t)},
                  {Op::page_table, g.input("page_table", {2, 1, 2, 1}, i32)},
                  {Op::sequence, g.input("sequence", {2, 1, 1, 1}, i32)}},
                 {Op::y}, {.dims = {2, 2, 8, 8}});
}
Results expand_band_matrix(Graph& g, DType t) {
  using Op = ExpandBandMatrix;
  Op op;
  op.lower_bandwidth = 1;
  op.upper_bandwidth = 1;
  return g.apply(op, {{Op::x, g.input("x", {1, 1, 8, 3}, t)}}, {Op::y}, {.dims = {1, 1, 8, 8}});
}
Results contract_band_matrix(Graph& g, DType t) {
  using Op = ContractBandMatrix;
  Op op;
  op.lower_bandwidth = 1;
  op.upper_bandwidth = 1;
  return g.apply(op, {{Op::x, g.input("x", {1, 1, 8, 8}, t)}}, {Op::y});
}

// One layer of tanh cells, 8 wide: two matrices of 8 x 8 and two biases of 8.
template <class Op>
Op recurrent() {
  Op op;
  op.mode = RnnMode::tanh;
  op.hidden_size = 8;
  return op;
}
constexpr std::int64_t kRecurrentWeights = 2 * 8 * 8 + 2 * 8;

// Forward with what the backward operations need.
std::vector<Value> recurrent_forward(Graph& g, DType t, bool training) {
  using Op = RnnForward;
  std::vector<Wanted> outputs = {Op::y};
  if (training) outputs.emplace_back(Op::reserve);
  const std::vector<Operand> inputs = {{Op::x, g.input("x", {4, 2, 8}, t)},
                                       {Op::weights, g.input("weights", {kRecurrentWeights}, t)}};
  return g.apply(recurrent<Op>(), inputs, outputs);
}
Results rnn_forward(Graph& g, DType t) { return recurrent_forward(g, t, false); }
Results rnn_backward_data(Graph& g, DType t) {
  using Op = RnnBackwardData;
  const Value reserve = recurrent_forward(g, t, true)[RnnForward::reserve];
  const Value weights = g.value(g.find_tensor("weights"));
  return g.apply(
      recurrent<Op>(),
      {{Op::dy, g.input("dy", {4, 2, 8}, t)}, {Op::weights, weights}, {Op::reserve, reserve}},
      {Op::dx, Op::dgates}, {.dims = {4, 2, 8}});
}
Results rnn_backward_weights(Graph& g, DType t) {
  using Op = RnnBackwardWeights;
  const Value dgates = rnn_backward_data(g, t)[RnnBackwardData::dgates];
  const Node& forward = g.nodes()[0];
  const Value reserve = g.value(forward.outputs[RnnForward::reserve]);
  return g.apply(
      recurrent<Op>(),
      {{Op::x, g.value(g.find_tensor("x"))}, {Op::reserve, reserve}, {Op::dgates, dgates}},
      {Op::dweights}, {.dims = {kRecurrentWeights}});
}

Results ctc_loss(Graph& g, DType t) {
  using Op = CtcLoss;
  return g.apply(Op{},
                 {{Op::x, g.input("x", {6, 2, 5}, t)},
                  {Op::labels, g.input("labels", {2, 2}, i32)},
                  {Op::label_lengths, g.input("label_lengths", {2}, i32)},
                  {Op::input_lengths, g.input("input_lengths", {2}, i32)}},
                 {Op::loss, Op::gradient});
}
Results rng(Graph& g, DType t) { return {g.rng({4, 16}, {}, {.dtype = t})}; }
Results dropout_forward(Graph& g, DType t) {
  using Op = DropoutForward;
  return g.apply(Op{}, {{Op::x, g.input("x", {4, 16}, t)}}, {Op::y, Op::mask});
}
Results dropout_backward(Graph& g, DType t) {
  using Op = DropoutBackward;
  return g.apply(Op{}, {{Op::dy, g.input("dy", {4, 16}, t)}}, {Op::dx});
}
Results block_scale_quantize(Graph& g, DType t) {
  using Op = BlockScaleQuantize;
  return g.apply(Op{}, {{Op::x, g.input("x", {4, 64}, t)}},
                 {Wanted(Op::y, e4m3), Wanted(Op::scale, e8m0)});
}
Results block_scale_dequantize(Graph& g, DType t) {
  using Op = BlockScaleDequantize;
  return g.apply(Op{}, {{Op::x, g.input("x", {4, 64}, t)}, {Op::scale, g.input("s", {4, 2}, e8m0)}},
                 {Op::y}, {.dtype = f32});
}
Results reshape(Graph& g, DType t) { return {g.reshape(g.input("x", {4, 16}, t), {16, 4})}; }
Results transpose(Graph& g, DType t) { return {g.transpose(g.input("x", {4, 16}, t), {1, 0})}; }
Results slice(Graph& g, DType t) { return {g.slice(g.input("x", {4, 16}, t), {0, 0}, {4, 8})}; }
Results concat(Graph& g, DType t) {
  return {g.concat(std::array{g.input("a", {4, 16}, t), g.input("b", {4, 16}, t)}, 0)};
}
Results tensor_transform(Graph& g, DType t) {
  using Op = TensorTransform;
  return g.apply(Op{.fold = {2, 2}}, {{Op::x, g.input("x", {1, 4, 6, 6}, t)}}, {Op::y});
}

}  // namespace

#define ASHLAR_PROBE(op) \
  OpProbe { #op, op }

const std::vector<OpProbe>& op_probes() {
  static const std::vector<OpProbe> probes = {
      ASHLAR_PROBE(conv_forward),
      ASHLAR_PROBE(conv_backward_data),
      ASHLAR_PROBE(conv_backward_filter),
      ASHLAR_PROBE(causal_conv_forward),
      ASHLAR_PROBE(causal_conv_backward),
      ASHLAR_PROBE(im2col),
      ASHLAR_PROBE(matmul),
      ASHLAR_PROBE(moe_grouped_matmul),
      ASHLAR_PROBE(moe_grouped_matmul_backward),
      ASHLAR_PROBE(pointwise),
      ASHLAR_PROBE(reduction),
      ASHLAR_PROBE(resample_forward),
      ASHLAR_PROBE(resample_backward),
      ASHLAR_PROBE(grid_generator_forward),
      ASHLAR_PROBE(grid_generator_backward),
      ASHLAR_PROBE(grid_sample_forward),
      ASHLAR_PROBE(grid_sample_backward),
      ASHLAR_PROBE(norm_forward),
      ASHLAR_PROBE(norm_backward),
      ASHLAR_PROBE(gen_stats),
      ASHLAR_PROBE(bn_finalize),
      ASHLAR_PROBE(bn_backward_weights),
      ASHLAR_PROBE(lrn_forward),
      ASHLAR_PROBE(lrn_backward),
      ASHLAR_PROBE(divisive_norm_forward),
      ASHLAR_PROBE(divisive_norm_backward),
      ASHLAR_PROBE(softmax_forward),
      ASHLAR_PROBE(softmax_backward),
      ASHLAR_PROBE(attention_forward),
      ASHLAR_PROBE(attention_backward),
      ASHLAR_PROBE(multi_head_attention_forward),
      ASHLAR_PROBE(multi_head_attention_backward_data),
      ASHLAR_PROBE(multi_head_attention_backward_weights),
      ASHLAR_PROBE(paged_cache_load),
      ASHLAR_PROBE(expand_band_matrix),
      ASHLAR_PROBE(contract_band_matrix),
      ASHLAR_PROBE(rnn_forward),
      ASHLAR_PROBE(rnn_backward_data),
      ASHLAR_PROBE(rnn_backward_weights),
      ASHLAR_PROBE(ctc_loss),
      ASHLAR_PROBE(rng),
      ASHLAR_PROBE(dropout_forward),
      ASHLAR_PROBE(dropout_backward),
      ASHLAR_PROBE(block_scale_quantize),
      ASHLAR_PROBE(block_scale_dequantize),
      ASHLAR_PROBE(reshape),
      ASHLAR_PROBE(transpose),
      ASHLAR_PROBE(slice),
      ASHLAR_PROBE(concat),
      ASHLAR_PROBE(tensor_transform),
  };
  return probes;
}

Graph make_probe(const OpProbe& probe, DType dtype) {
  Graph graph{std::string(probe.op)};
  int count = 0;
  for (const Value& result : probe.build(graph, dtype))
    if (result) graph.output("result" + std::to_string(count++), result);
  return graph;
}

}  // namespace ashlar::cli

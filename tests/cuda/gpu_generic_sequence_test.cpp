// The generic engine on a GPU, real or emulated: one graph per family of block passes (rows,
// channels, sequences), with many options at once. tests/ops covers all of them.
#include "cuda/gpu_check.hpp"
#include "graph/rnn_shapes.hpp"

namespace ashlar::cuda {
namespace {

class GpuGenericSequence : public GpuTest {};

// Parameter gradients need the statistics of every group, which are not operands here.
TEST_F(GpuGenericSequence, GroupNormBackward) {
  Graph graph;
  const Dims dims = {2, 6, 3, 50};
  const auto r = graph.apply(NormBackward{.mode = NormMode::group, .groups = 3},
                             {{NormBackward::x, graph.input("x", dims, f16, channels_last)},
                              {NormBackward::dy, graph.input("dy", dims, f32)},
                              {NormBackward::scale, graph.input("scale", {1, 6, 1, 1}, f32)}},
                             {NormBackward::dx, NormBackward::dscale, NormBackward::dbias});
  graph.output("dx", r[NormBackward::dx]);
  graph.output("dscale", r[NormBackward::dscale]);
  graph.output("dbias", r[NormBackward::dbias]);
  expect_agrees(graph, kGenericEngine);
}

TEST_F(GpuGenericSequence, LogSoftmaxAlongTheFirstAxis) {
  Graph graph;
  const auto r = graph.apply(SoftmaxForward{{.axis = 0, .log = true}},
                             {{SoftmaxForward::x, graph.input("x", {300, 3}, bf16)}},
                             {SoftmaxForward::y, SoftmaxForward::stats});
  graph.output("y", relu(r[SoftmaxForward::y] + 2.0));
  graph.output("stats", r[SoftmaxForward::stats]);
  expect_agrees(graph, kGenericEngine);
}

const AttentionAttributes kAttention = {.left_bound = 60,
                                        .right_bound = 4,
                                        .alignment = MaskAlignment::bottom_right,
                                        .dropout = 0.25,
                                        .alibi = true,
                                        .soft_cap = 2.0};
const Dims kQueries = {2, 4, 9, 20}, kKeys = {2, 2, 140, 20}, kValues = {2, 1, 140, 130};

template <class Attention>
std::vector<Operand<Attention>> attention_operands(Graph& graph) {
  return {{Attention::q, graph.input("q", kQueries, f32)},
          {Attention::k, graph.input("k", kKeys, f16)},
          {Attention::v, graph.input("v", kValues, bf16)},
          {Attention::bias, graph.input("bias", {1, 4, 1, 140}, f32)},
          {Attention::sink, graph.input("sink", {1, 4, 1, 1}, f32)},
          {Attention::seq_len_q, graph.input("q_lengths", {2, 1, 1, 1}, i32)},
          {Attention::seq_len_kv, graph.input("kv_lengths", {2, 1, 1, 1}, i64)},
          {Attention::dropout_seed, graph.input("seed", {1}, i64)},
          {Attention::dropout_offset, graph.scalar("offset", i64)}};
}

TEST_F(GpuGenericSequence, AttentionForward) {
  using Op = AttentionForward;
  Graph graph;
  const auto r =
      graph.apply(Op{kAttention}, attention_operands<Op>(graph), {Op::o, Op::stats, Op::rng_dump});
  graph.output("o", r[Op::o]);
  graph.output("stats", r[Op::stats]);
  graph.output("rng_dump", r[Op::rng_dump]);
  expect_agrees(graph, kGenericEngine);
}

TEST_F(GpuGenericSequence, AttentionBackward) {
  using Op = AttentionBackward;
  Graph graph;
  std::vector<Operand<Op>> operands = attention_operands<Op>(graph);
  operands.push_back({Op::o, graph.input("o", {2, 4, 9, 130}, f32)});
  operands.push_back({Op::d_o, graph.input("d_o", {2, 4, 9, 130}, f32)});
  operands.push_back({Op::stats, graph.input("stats", {2, 4, 9, 1}, f32)});
  const auto r =
      graph.apply(Op{kAttention, {}}, operands, {Op::dq, Op::dk, Op::dv, Op::dbias, Op::dsink});
  graph.output("dq", r[Op::dq]);
  graph.output("dk", r[Op::dk]);
  graph.output("dv", r[Op::dv]);
  graph.output("dbias", r[Op::dbias]);
  graph.output("dsink", r[Op::dsink]);
  expect_agrees(graph, kGenericEngine);
}

// Two bidirectional layers over packed sequences, with projection and dropout between layers.
TEST_F(GpuGenericSequence, RecurrentForward) {
  using Op = RnnForward;
  RnnAttributes network;
  network.hidden_size = 37;
  network.projection_size = 5;
  network.layers = 2;
  network.bidirectional = true;
  network.layout = RnnLayout::packed;
  network.dropout = 0.3;
  const Dims x = {11, 6};
  const RnnShape shape(network, x, 3, x[1]);
  Graph graph;
  const auto r = graph.apply(Op{network},
                             {{Op::x, graph.input("x", x, f32)},
                              {Op::weights, graph.input("weights", {shape.weight_count()}, f32)},
                              {Op::hx, graph.input("hx", shape.state(shape.output()), f32)},
                              {Op::seq_lengths, graph.input("lengths", {3}, i32)},
                              {Op::dropout_seed, graph.input("seed", {1}, i64)}},
                             {Op::y, Op::hy, Op::cy, Op::reserve});
  graph.output("y", r[Op::y]);
  graph.output("hy", r[Op::hy]);
  graph.output("cy", r[Op::cy]);
  graph.output("reserve", r[Op::reserve]);
  expect_agrees(graph, kGenericEngine);
}

TEST_F(GpuGenericSequence, CtcLoss) {
  using Op = CtcLoss;
  Graph graph;
  const auto r = graph.apply(Op{.blank = 2},
                             {{Op::x, graph.input("x", {40, 3, 9}, f32)},
                              {Op::labels, graph.input("labels", {17}, i32)},
                              {Op::label_lengths, graph.input("label_lengths", {3}, i32)},
                              {Op::input_lengths, graph.input("input_lengths", {3}, i64)}},
                             {Op::loss, Op::gradient});
  graph.output("loss", r[Op::loss]);
  graph.output("gradient", r[Op::gradient]);
  expect_agrees(graph, kGenericEngine);
}

}  // namespace
}  // namespace ashlar::cuda

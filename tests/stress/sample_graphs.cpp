// Graphs that together reach every engine.
#include "stress/sample_graphs.hpp"

#include <array>

namespace ashlar::stress {

namespace {

Graph images(DType dtype) {
  Graph g("images");
  const Value x = g.input("x", {2, 8, 20, 18}, dtype, channels_last);
  const Value w = g.input("w", {16, 8, 3, 3}, dtype);
  const Value y = relu(g.conv(x, w, {.padding = {1, 1}}) + g.input("b", {1, 16, 1, 1}, dtype));
  const Value d = g.conv(y, g.input("dw", {16, 1, 3, 3}, dtype), {.padding = {1, 1}});
  const auto [pooled, index] =
      g.resample_with_index(d, {.mode = ResampleMode::maxpool, .window = {2, 2}});
  g.output("pooled", pooled);
  g.output("index", index);
  g.output("up", g.resample(pooled, {.mode = ResampleMode::bilinear, .size = {15, 13}}));
  g.output("mean", g.reduce(d, ReductionMode::avg, {2, 3}));
  return g;
}

Graph sequences(DType dtype) {
  Graph g("sequences");
  const Value q = g.input("q", {2, 4, 40, 16}, dtype), k = g.input("k", {2, 2, 50, 16}, dtype);
  const Value v = g.input("v", {2, 2, 50, 16}, dtype);
  const auto [o, stats] = g.attention(q, k, v, {.right_bound = 0}, {}, true);
  const auto r = g.attention_backward(q, k, v, o, g.input("d_o", {2, 4, 40, 16}, dtype), stats,
                                      {.right_bound = 0});
  const Value flat = g.reshape(o, {320, 16});
  g.output("product", g.matmul(flat, g.input("projection", {16, 48}, dtype)));
  g.output("normed", g.norm(flat, {}, {.scale = g.input("scale", {1, 16}, f32)}).y);
  g.output("weights", g.softmax(flat));
  g.output("dq", r.dq);
  g.output("dk", r.dk);
  g.output("dv", r.dv);
  return g;
}

Graph moves() {
  Graph g("moves");
  const Value x = g.input("x", {30, 40}, f32), y = g.input("y", {30, 7}, f32);
  const Value drawn =
      g.rng({30, 47}, {.distribution = RngDistribution::bernoulli}, {.dtype = boolean});
  const Value joined = g.concat(std::array{x, y}, 1);
  g.output("masked", select(drawn, joined, g.constant(0.0, f32, 2)));
  g.output("mask", drawn);
  g.output("turned", g.transpose(joined, {1, 0}));
  g.output("part", g.slice(joined, {3, 2}, {20, 40}, {2, 3}));
  g.output("flags", pointwise(PointwiseMode::cmp_gt, x, g.scalar("limit", f32, 2)));
  return g;
}

Graph statistics(DType dtype) {
  Graph g("statistics");
  const Dims dims = {2, 6, 20, 18}, channels = {1, 6, 1, 1};
  const Value x = g.input("x", dims, dtype, channels_last), dy = g.input("dy", dims, dtype);
  const Value scale = g.input("scale", channels, f32), bias = g.input("bias", channels, f32);
  const auto sums = g.apply(GenStats{}, {{GenStats::x, x}}, {GenStats::sum, GenStats::sq_sum});
  using Finalize = BnFinalize;
  const auto line = g.apply(
      Finalize{.count = 720},
      {{Finalize::sum, sums[GenStats::sum]},
       {Finalize::sq_sum, sums[GenStats::sq_sum]},
       {Finalize::scale, scale},
       {Finalize::bias, bias}},
      {Finalize::eq_scale, Finalize::eq_bias, Finalize::saved_mean, Finalize::saved_inv_variance});
  g.output("y", x * line[Finalize::eq_scale] + line[Finalize::eq_bias]);
  using Weights = BnBackwardWeights;
  const auto gradients = g.apply(Weights{},
                                 {{Weights::x, x},
                                  {Weights::dy, dy},
                                  {Weights::mean, line[Finalize::saved_mean]},
                                  {Weights::inv_variance, line[Finalize::saved_inv_variance]},
                                  {Weights::scale, scale}},
                                 {Weights::dscale, Weights::dbias, Weights::eq_bias});
  for (Weights::Out slot : {Weights::dscale, Weights::dbias, Weights::eq_bias})
    g.output("gradient" + std::to_string(slot), gradients[slot]);
  g.output("lrn", g.apply(LrnForward{}, {{LrnForward::x, x}}, {LrnForward::y}));
  g.output("local", g.apply(DivisiveNormBackward{},
                            {{DivisiveNormBackward::x, x}, {DivisiveNormBackward::dy, dy}},
                            {DivisiveNormBackward::dx}));
  const auto best = g.apply(Reduction{.mode = ReductionMode::max, .axes = {0, 2, 3}},
                            {{Reduction::x, x}}, {Reduction::y, Reduction::index});
  g.output("best", best[Reduction::y]);
  g.output("place", best[Reduction::index]);
  return g;
}

}  // namespace

Graph training_step() {
  Graph g("training_step");
  const Value x = g.input("x", {2, 4, 10, 9}, f32), w = g.input("w", {6, 4, 3, 3}, f32);
  const Value conv = g.conv(x, w, {.padding = {1, 1}});
  const NormForward batch{.mode = NormMode::batch};
  const Value scale = g.input("scale", {1, 6, 1, 1}, f32);
  const NormResults r = g.norm(conv, batch,
                               {.scale = scale,
                                .bias = g.input("bias", {1, 6, 1, 1}, f32),
                                .running_mean = g.input("mean", {1, 6, 1, 1}, f32),
                                .running_var = g.input("variance", {1, 6, 1, 1}, f32)});
  const Value dy = g.input("dy", {2, 6, 10, 9}, f32);
  const Value dr = pointwise(PointwiseMode::relu_bwd, dy, r.y);
  const NormGradients n =
      g.norm_backward(conv, dr, {.mode = NormMode::batch},
                      {.scale = scale, .mean = r.mean, .inv_variance = r.inv_variance});
  g.output("y", relu(r.y));
  g.output("next_mean", r.next_running_mean);
  g.output("next_variance", r.next_running_var);
  g.output("dscale", n.dscale);
  g.output("dbias", n.dbias);
  g.output("dx", g.conv_backward_data(n.dx, w, {.padding = {1, 1}}, {.dims = {2, 4, 10, 9}}));
  g.output("dw", g.conv_backward_filter(x, n.dx, {.padding = {1, 1}}, {.dims = {6, 4, 3, 3}}));
  return g;
}

std::vector<Graph> sample_graphs() {
  std::vector<Graph> graphs;
  graphs.push_back(images(f32));
  graphs.push_back(images(f16));
  graphs.push_back(images(i8));
  graphs.push_back(sequences(f32));
  graphs.push_back(sequences(bf16));
  graphs.push_back(sequences(f64));
  graphs.push_back(moves());
  graphs.push_back(statistics(f32));
  graphs.push_back(statistics(f16));
  graphs.push_back(training_step());
  return graphs;
}

}  // namespace ashlar::stress

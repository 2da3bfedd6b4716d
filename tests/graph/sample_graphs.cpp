// Sample graphs with options: the dense, convolution, attention and norm operations.
#include "graph/sample_graphs.hpp"

#include <array>
#include <ashlar/operations.hpp>
#include <limits>

namespace ashlar::tests {

namespace {

void add_convolutions(Samples& samples) {
  const ConvAttributes padded = {.padding = {1, 0}, .post_padding = Dims{0, 1}, .stride = {2, 1}};
  sample(samples, "conv_forward", [&](Graph& g) {
    const Value x = g.input("x", {1, 4, 5, 4}, f16, channels_last);
    const Value w = g.input("w", {2, 2, 2, 2}, f16, channels_last);
    return std::vector{relu(g.conv(x, w, padded) + g.input("b", {1, 2, 1, 1}, f32))};
  });
  sample(samples, "conv_forward", [](Graph& g) {
    const Value x = g.input("x", {2, 1, 6}, i8), w = g.input("w", {1, 1, 3}, i8);
    return std::vector{g.conv(x, w, {.mode = ConvMode::convolution, .alpha = 2.0, .beta = 0.5},
                              {.dtype = i32}, g.input("z", {2, 1, 4}, i32))};
  });
  sample(samples, "conv_backward_data", [&](Graph& g) {
    const Value dy = g.input("dy", {1, 2, 3, 4}, f32), w = g.input("w", {2, 2, 2, 2}, f32);
    return std::vector{g.conv_backward_data(dy, w, padded, {.dims = {1, 4, 5, 4}})};
  });
  sample(samples, "conv_backward_filter", [&](Graph& g) {
    const Value x = g.input("x", {1, 4, 5, 4}, bf16), dy = g.input("dy", {1, 2, 3, 4}, bf16);
    return std::vector{g.conv_backward_filter(x, dy, padded, {.dtype = f32, .dims = {2, 2, 2, 2}})};
  });
}

void add_dense(Samples& samples) {
  sample(samples, "matmul", [](Graph& g) {
    const Value a = g.input("a", {2, 3, 4}, e4m3), b = g.input("b", {1, 4, 5}, e5m2);
    return std::vector{g.matmul(a, b, {.dtype = f16}) * g.scalar("scale", f32, 3)};
  });
  sample(samples, "pointwise", [](Graph& g) {
    const Value x = g.input("x", {2, 1, 3}, f32), b = g.input("b", {1, 4, 3}, f32);
    const Value larger = g.pointwise(PointwiseMode::cmp_gt, std::array{x, b});
    return std::vector{select(larger, x * 2.0, b - 0.1), larger};
  });
  sample(samples, "pointwise", [](Graph& g) {
    const Value x = g.input("x", {2, 3}, f64);
    const Value rows = g.pointwise(PointwiseMode::gen_index, std::array{x}, {.axis = -1});
    return std::vector{g.pointwise(PointwiseMode::relu_fwd, std::array{x},
                                   {.relu_upper_clip = 6.0, .relu_lower_slope = 0.01}),
                       rows};
  });
  sample(samples, "pointwise", [](Graph& g) {
    const Value x = g.input("x", {2, 3}, u8), count = g.input("count", {3}, i32);
    return std::vector{pointwise(PointwiseMode::bit_not, x),
                       pointwise(PointwiseMode::shift_left, x, count)};
  });
  sample(samples, "pointwise", [](Graph& g) {
    const Value x = g.input("x", {3, 1}, f32);
    return std::vector{
        g.pointwise(PointwiseMode::identity, std::array{x}, {}, {.dims = {2, 3, 4}}),
        g.pointwise(PointwiseMode::gen_index, std::array{x}, {.axis = 1}, {.dims = {3, 4}})};
  });
  sample(samples, "reduction", [](Graph& g) {
    const Value x = g.input("x", {2, 3, 4}, boolean);
    return std::vector{g.reduce(x, ReductionMode::max, {-1}), g.reduce(x, ReductionMode::add)};
  });
  sample(samples, "reduction", [](Graph& g) {
    const Value x = g.input("x", {2, 3, 4}, f32);
    return std::vector{g.reduce(x, ReductionMode::norm2, {-1}), g.reduce(x, ReductionMode::amax)};
  });
  sample(samples, "softmax_forward", [](Graph& g) {
    return std::vector{g.softmax(g.input("x", {2, 5}, bf16), {.log = true})};
  });
  sample(samples, "softmax_backward", [](Graph& g) {
    const Value y = g.input("y", {2, 3, 2}, f32), dy = g.input("dy", {2, 3, 2}, f32);
    return std::vector{g.softmax_backward(y, dy, {.axis = 1})};
  });
}

void add_resamples(Samples& samples) {
  sample(samples, "resample_forward", [](Graph& g) {
    const auto [y, index] =
        g.resample_with_index(g.input("x", {1, 2, 5, 5}, f32, channels_last),
                              {.window = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
    return std::vector{y, index};
  });
  sample(samples, "resample_forward", [](Graph& g) {
    return std::vector{g.resample(g.input("x", {1, 1, 3, 4}, f16),
                                  {.mode = ResampleMode::bilinear, .size = {6, 2}})};
  });
  sample(samples, "resample_backward", [](Graph& g) {
    const Value dy = g.input("dy", {1, 2, 4, 4}, f32);
    return std::vector{g.resample_backward(
        dy, {.mode = ResampleMode::nearest, .align_corners = false}, {.dims = {1, 2, 2, 2}})};
  });
}

void add_norms(Samples& samples) {
  const Dims x_dims = {2, 4, 2, 3}, channels = {1, 4, 1, 1};
  for (NormMode mode : {NormMode::layer, NormMode::instance, NormMode::group, NormMode::rms}) {
    const std::int64_t groups = mode == NormMode::group ? 2 : 1;
    const bool by_axes = mode == NormMode::layer || mode == NormMode::rms;
    const Dims parameters = by_axes ? Dims{1, 4, 2, 3} : channels;
    sample(samples, "norm_forward", [&](Graph& g) {
      const Value x = g.input("x", x_dims, f32), scale = g.input("scale", parameters, f32);
      const auto r = g.norm(x, {.mode = mode, .epsilon = 1e-3, .groups = groups},
                            {.scale = scale, .bias = g.input("bias", parameters, f32)});
      return std::vector{r.y, r.mean, r.inv_variance};
    });
    sample(samples, "norm_backward", [&](Graph& g) {
      const Value x = g.input("x", x_dims, f32), dy = g.input("dy", x_dims, f32);
      const auto r = g.norm_backward(x, dy, {.mode = mode, .groups = groups},
                                     {.scale = g.input("scale", parameters, f32)});
      return std::vector{r.dx, r.dscale, r.dbias};
    });
  }
  sample(samples, "norm_forward", [&](Graph& g) {
    const Value x = g.input("x", x_dims, f16, channels_last);
    const Value scale = g.input("scale", channels, f32), bias = g.input("bias", channels, f32);
    const auto r = g.norm(x, {.mode = NormMode::batch},
                          {.scale = scale,
                           .bias = bias,
                           .running_mean = g.input("running_mean", channels, f32),
                           .running_var = g.input("running_var", channels, f32)});
    return std::vector{r.y, r.mean, r.inv_variance, r.next_running_mean, r.next_running_var};
  });
  sample(samples, "norm_forward", [&](Graph& g) {
    const Value x = g.input("x", x_dims, f32);
    const Value mean = g.input("mean", channels, f32), inv = g.input("inv", channels, f32);
    return std::vector{g.norm(x, {.mode = NormMode::batch, .phase = NormPhase::inference},
                              {.mean = mean, .inv_variance = inv})
                           .y};
  });
}

void add_attentions(Samples& samples) {
  sample(samples, "attention_forward", [](Graph& g) {
    const Value q = g.input("q", {2, 4, 3, 4}, f16), k = g.input("k", {2, 2, 5, 4}, f16);
    const Value v = g.input("v", {2, 1, 5, 2}, f16);
    const AttentionOperands with{.bias = g.input("bias", {1, 4, 3, 5}, f32),
                                 .seq_len_q = g.input("len_q", {2, 1, 1, 1}, i32),
                                 .seq_len_kv = g.input("len_kv", {2, 1, 1, 1}, i32),
                                 .dropout_seed = g.input("seed", {1, 1, 1, 1}, i64),
                                 .dropout_offset = g.input("offset", {1, 1, 1, 1}, i64)};
    const auto [o, stats] = g.attention(q, k, v,
                                        {.left_bound = 3,
                                         .right_bound = 0,
                                         .alignment = MaskAlignment::bottom_right,
                                         .dropout = 0.25},
                                        with, true);
    return std::vector{o, stats};
  });
  sample(samples, "attention_forward", [](Graph& g) {
    const Value offsets = g.input("offsets", {3, 1, 1, 1}, i32);
    const auto ragged = [&](const char* name) {
      return g.ragged_input(name, {2, 1, 3, 2}, f32, row_major, offsets);
    };
    const Value q = ragged("q"), k = ragged("k"), v = ragged("v");
    const Value lengths = g.input("lengths", {2, 1, 1, 1}, i32);
    const auto o = g.attention(q, k, v, {}, {.seq_len_q = lengths, .seq_len_kv = lengths}).first;
    g.set_ragged(o, offsets);
    return std::vector{o};
  });
  sample(samples, "attention_backward", [](Graph& g) {
    const Dims q_dims = {1, 2, 3, 4}, kv_dims = {1, 1, 3, 4};
    const Value q = g.input("q", q_dims, f32), k = g.input("k", kv_dims, f32);
    const Value v = g.input("v", kv_dims, f32), o = g.input("o", q_dims, f32);
    const Value d_o = g.input("d_o", q_dims, f32), stats = g.input("stats", {1, 2, 3, 1}, f32);
    const Value bias = g.input("bias", {1, 1, 3, 3}, f32);
    const auto r =
        g.attention_backward(q, k, v, o, d_o, stats, {.scale = 0.5}, {.bias = bias}, true);
    return std::vector{r.dq, r.dk, r.dv, r.dbias};
  });
  const ScoreProgram program = {
      {.op = {}, .args = {}, .constant = -std::numeric_limits<double>::infinity()},
      {.op = {.mode = PointwiseMode::cmp_lt}, .args = {1, 2}, .constant = {}},
      {.op = {.mode = PointwiseMode::mul, .alpha2 = 0.5}, .args = {0, 5}, .constant = {}},
      {.op = {.mode = PointwiseMode::binary_select}, .args = {10, 12, 11}, .constant = {}}};
  sample(samples, "attention_forward", [=](Graph& g) {
    using Op = AttentionForward;
    const Value q = g.input("q", {2, 2, 3, 4}, e4m3), k = g.input("k", {3, 1, 2, 4}, e4m3);
    const Value v = g.input("v", {3, 2, 2, 4}, e4m3), table = g.input("table", {2, 1, 2, 1}, i32);
    const Value sink = g.input("sink", {1, 2, 1, 1}, f32);
    const Value blocks = g.input("blocks", {2, 1, 2, 2}, boolean);
    const Value factor = g.input("factor", {1, 2, 1, 1}, f32), scale = g.scalar("scale", f32);
    Op op;
    op.alibi = true;
    op.soft_cap = 20.0;
    op.score_modifier = program;
    op.max_seq_len_kv = 3;
    op.block_rows = op.block_columns = 2;
    const auto results = g.apply(op,
                                 {{Op::q, q},
                                  {Op::k, k},
                                  {Op::v, v},
                                  {Op::page_table_k, table},
                                  {Op::page_table_v, table},
                                  {Op::sink, sink},
                                  {Op::block_mask, blocks},
                                  {Op::score_input0, factor},
                                  {Op::descale_q, scale},
                                  {Op::scale_s, scale}},
                                 {Op::o, Op::stats, Op::max, Op::sum_exp, Op::amax_s, Op::amax_o});
    return std::vector{results[Op::o], results[Op::max], results[Op::sum_exp], results[Op::amax_s],
                       results[Op::amax_o]};
  });
  sample(samples, "attention_backward", [=](Graph& g) {
    using Op = AttentionBackward;
    const Dims dims = {1, 2, 3, 4};
    const Value q = g.input("q", dims, f32), k = g.input("k", dims, f32);
    const Value v = g.input("v", dims, f32), o = g.input("o", dims, f32);
    const Value d_o = g.input("d_o", dims, f32), stats = g.input("stats", {1, 2, 3, 1}, f32);
    const Value sink = g.input("sink", {1, 2, 1, 1}, f32);
    const Value factor = g.input("factor", {1, 2, 1, 1}, f32);
    Op op;
    op.score_modifier = program;
    op.score_modifier_gradient = {{.op = {.mode = PointwiseMode::mul, .alpha2 = 0.5},
                                   .args = {kScoreGradient, 5},
                                   .constant = {}}};
    const auto results = g.apply(op,
                                 {{Op::q, q},
                                  {Op::k, k},
                                  {Op::v, v},
                                  {Op::o, o},
                                  {Op::d_o, d_o},
                                  {Op::stats, stats},
                                  {Op::sink, sink},
                                  {Op::score_input0, factor}},
                                 {Op::dq, Op::dk, Op::dv, Op::dsink, Op::amax_dp});
    return std::vector{results[Op::dq], results[Op::dk], results[Op::dv], results[Op::dsink],
                       results[Op::amax_dp]};
  });
}

void add_data_movement(Samples& samples) {
  sample(samples, "rng", [](Graph& g) {
    return std::vector{
        g.rng({2, 3}, {.distribution = RngDistribution::normal, .mean = -0.0, .seed = 5}),
        g.rng({4}, {.probability = 0.1}, {.dtype = boolean}, g.scalar("seed", i64, 1))};
  });
  sample(samples, "reshape", [](Graph& g) {
    return std::vector{g.reshape(g.input("x", {2, 3, 4}, i32), {6, -1})};
  });
  sample(samples, "slice", [](Graph& g) {
    return std::vector{g.slice(g.input("x", {4, 6}, f32), {1, 0}, {4, 6}, {1, 4})};
  });
  sample(samples, "concat", [](Graph& g) {
    const Value a = g.input("a", {2, 3}, f32), b = g.input("b", {2, 1}, f32);
    return std::vector{g.concat(std::array{a, b, a}, -1)};
  });
}

}  // namespace

std::vector<SampleGraph> sample_graphs() {
  Samples samples;
  for (const OperationInfo& operation : operations())
    samples.push_back({operation.name, sample_graph(operation.name, f32)});
  add_convolutions(samples);
  add_dense(samples);
  add_resamples(samples);
  add_norms(samples);
  add_attentions(samples);
  add_data_movement(samples);
  add_recurrent_samples(samples);
  add_low_precision_samples(samples);
  add_statistics_samples(samples);
  add_spatial_samples(samples);
  add_sequence_samples(samples);
  add_language_model_samples(samples);
  add_multi_head_samples(samples);
  add_indexing_samples(samples);
  add_lines_samples(samples);
  return samples;
}

}  // namespace ashlar::tests

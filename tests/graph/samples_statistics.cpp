// Sample graphs with options: split batch norm and local norms.
#include "graph/sample_graphs.hpp"

namespace ashlar::tests {

namespace {

const Dims kSampleImages = {2, 3, 4, 5};
const Dims kSampleChannels = {1, 3, 1, 1};

void add_batch_norm_parts(Samples& samples) {
  sample(samples, "bn_finalize", [](Graph& g) {
    using Bn = BnFinalize;
    const auto channels = [&](const char* name) { return g.input(name, kSampleChannels, f32); };
    return g.apply(Bn{.momentum = 0.2},
                   {{Bn::sum, channels("sum")},
                    {Bn::sq_sum, channels("sq_sum")},
                    {Bn::scale, channels("scale")},
                    {Bn::bias, channels("bias")},
                    {Bn::running_mean, channels("mean")},
                    {Bn::running_var, channels("var")},
                    {Bn::epsilon_tensor, g.scalar("epsilon", f32)},
                    {Bn::momentum_tensor, g.scalar("momentum", f32)},
                    {Bn::count_tensor, g.scalar("count", i64)}},
                   {Bn::eq_scale, Bn::eq_bias, Bn::saved_mean, Bn::saved_inv_variance,
                    Bn::next_running_mean, Bn::next_running_var});
  });
  sample(samples, "bn_finalize", [](Graph& g) {
    using Bn = BnFinalize;
    const auto channels = [&](const char* name) { return g.input(name, kSampleChannels, f32); };
    return g.apply(Bn{.phase = NormPhase::inference},
                   {{Bn::scale, channels("scale")},
                    {Bn::bias, channels("bias")},
                    {Bn::running_mean, channels("mean")},
                    {Bn::running_var, channels("var")}},
                   {Bn::eq_scale, Bn::eq_bias});
  });
  sample(samples, "bn_backward_weights", [](Graph& g) {
    using Bn = BnBackwardWeights;
    return g.apply(Bn{},
                   {{Bn::x, g.input("x", kSampleImages, bf16)},
                    {Bn::dy, g.input("dy", kSampleImages, bf16)},
                    {Bn::mean, g.input("mean", kSampleChannels, f32)},
                    {Bn::inv_variance, g.input("inv_variance", kSampleChannels, f32)},
                    {Bn::scale, g.input("scale", kSampleChannels, f32)}},
                   {Bn::dscale, Bn::dbias, Bn::eq_dy_scale, Bn::eq_x_scale, Bn::eq_bias});
  });
}

void add_local_norms(Samples& samples) {
  const LocalNormAttributes attributes{.window = 3, .alpha = 0.5, .beta = 0.5, .k = 1.0};
  sample(samples, "lrn_forward", [&](Graph& g) {
    return g.apply(LrnForward{attributes}, {{LrnForward::x, g.input("x", kSampleImages, f32)}},
                   {LrnForward::y});
  });
  sample(samples, "lrn_backward", [&](Graph& g) {
    return g.apply(LrnBackward{attributes},
                   {{LrnBackward::x, g.input("x", kSampleImages, f32)},
                    {LrnBackward::dy, g.input("dy", kSampleImages, f32)}},
                   {LrnBackward::dx});
  });
  sample(samples, "divisive_norm_forward", [&](Graph& g) {
    using Op = DivisiveNormForward;
    return g.apply(
        Op{attributes},
        {{Op::x, g.input("x", kSampleImages, f32)}, {Op::means, g.input("m", kSampleImages, f32)}},
        {Op::y});
  });
  sample(samples, "divisive_norm_backward", [&](Graph& g) {
    using Op = DivisiveNormBackward;
    return g.apply(Op{attributes},
                   {{Op::x, g.input("x", kSampleImages, f32)},
                    {Op::dy, g.input("dy", kSampleImages, f32)},
                    {Op::means, g.input("m", kSampleImages, f32)}},
                   {Op::dx, Op::dmeans});
  });
}

}  // namespace

void add_statistics_samples(Samples& samples) {
  add_batch_norm_parts(samples);
  add_local_norms(samples);
  sample(samples, "reduction", [](Graph& g) {
    return g.apply(Reduction{.mode = ReductionMode::max, .axes = {1, 3}},
                   {{Reduction::x, g.input("x", kSampleImages, f32)}},
                   {Reduction::y, {Reduction::index, i64}});
  });
  sample(samples, "norm_forward", [](Graph& g) {
    const NormResults r = g.norm(
        g.input("x", {2, 3, 4}, bf16), {.mode = NormMode::ada_layer},
        {.scale = g.input("scale", {2, 1, 4}, f32), .bias = g.input("bias", {2, 1, 4}, f32)});
    return std::vector{r.y, r.mean, r.inv_variance};
  });
}

}  // namespace ashlar::tests

// Sample graphs with options: MoE, caches, band matrices, causal convolution and dropout.
#include "graph/sample_graphs.hpp"

namespace ashlar::tests {

namespace {

void add_mixtures(Samples& samples) {
  sample(samples, "moe_grouped_matmul", [](Graph& g) {
    using Moe = MoeGroupedMatmul;
    const Value token = g.input("token", {1, 6, 4}, bf16);
    const Value weight = g.input("weight", {2, 4, 3}, bf16, Layout(Dims{12, 1, 4}));
    const Value first = g.input("first", {4, 1, 1}, i32);
    const Value index = g.input("index", {1, 5, 1}, i32);
    Moe op;
    op.mode = MoeMode::gather;
    return g.apply(op,
                   {{Moe::token, token},
                    {Moe::weight, weight},
                    {Moe::first_token_offset, first},
                    {Moe::token_index, index}},
                   {Moe::output});
  });
  sample(samples, "moe_grouped_matmul_backward", [](Graph& g) {
    using Moe = MoeGroupedMatmulBackward;
    Moe op;
    op.mode = MoeMode::scatter;
    op.top_k = 2;
    return g.apply(op,
                   {{Moe::doutput, g.input("doutput", {1, 8, 3}, f32)},
                    {Moe::token, g.input("token", {1, 6, 4}, f32)},
                    {Moe::first_token_offset, g.input("first", {2, 1, 1}, i32)},
                    {Moe::weight, g.input("weight", {2, 4, 3}, f32)},
                    {Moe::token_index, g.input("index", {1, 6, 1}, i32)},
                    {Moe::token_ks, g.input("ks", {1, 6, 1}, i32)}},
                   {Moe::dweight, Moe::dtoken});
  });
}

void add_caches(Samples& samples) {
  sample(samples, "paged_cache_load", [](Graph& g) {
    using Load = PagedCacheLoad;
    return g.apply(Load{.transposed = true},
                   {{Load::container, g.input("container", {5, 2, 4, 3}, f16)},
                    {Load::page_table, g.input("table", {2, 1, 3, 1}, i32)},
                    {Load::sequence, g.input("lengths", {2, 1, 1, 1}, i32)}},
                   {Load::y}, {.dims = {2, 2, 3, 10}});
  });
  sample(samples, "expand_band_matrix", [](Graph& g) {
    using Expand = ExpandBandMatrix;
    Expand op;
    op.lower_bandwidth = 1;
    op.upper_bandwidth = 2;
    op.pad_value = -1.0;
    return g.apply(op,
                   {{Expand::x, g.input("x", {2, 3, 4}, f32)},
                    {Expand::kv_token_offset, g.input("shift", {2, 1, 1}, i32)}},
                   {Expand::y}, {.dims = {2, 3, 7}});
  });
  sample(samples, "contract_band_matrix", [](Graph& g) {
    using Contract = ContractBandMatrix;
    Contract op;
    op.upper_bandwidth = 1;
    op.axis = 1;
    return g.apply(op, {{Contract::x, g.input("x", {3, 5, 2}, i8)}}, {Contract::y});
  });
}

void add_causal_convolutions(Samples& samples) {
  sample(samples, "causal_conv_forward", [](Graph& g) {
    using Conv = CausalConvForward;
    Conv op;
    op.activation = CausalConvActivation::silu;
    return g.apply(op,
                   {{Conv::x, g.input("x", {2, 3, 5}, f16)},
                    {Conv::w, g.input("w", {3, 4}, f16)},
                    {Conv::bias, g.input("bias", {3}, f16)},
                    {Conv::initial_state, g.input("state", {2, 3, 3}, f16)}},
                   {Conv::y, Conv::final_state});
  });
}

void add_dropouts(Samples& samples) {
  sample(samples, "dropout_forward", [](Graph& g) {
    using Drop = DropoutForward;
    Drop op;
    op.probability = 0.25;
    op.seed = 42;
    return g.apply(
        op,
        {{Drop::x, g.input("x", {3, 7}, bf16)}, {Drop::offset_tensor, g.input("offset", {1}, i64)}},
        {Drop::y, Drop::mask, Drop::next_offset});
  });
  sample(samples, "dropout_backward", [](Graph& g) {
    using Drop = DropoutBackward;
    return g.apply(
        Drop{},
        {{Drop::dy, g.input("dy", {3, 7}, f32)}, {Drop::mask, g.input("mask", {3, 7}, boolean)}},
        {Drop::dx});
  });
}

}  // namespace

void add_sequence_samples(Samples& samples) {
  add_mixtures(samples);
  add_caches(samples);
  add_causal_convolutions(samples);
  add_dropouts(samples);
}

}  // namespace ashlar::tests

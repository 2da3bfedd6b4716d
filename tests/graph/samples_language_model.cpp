// Sample graphs with options: cross-entropy and rotary position embedding.
#include "graph/sample_graphs.hpp"

namespace ashlar::tests {

void add_language_model_samples(Samples& samples) {
  sample(samples, "cross_entropy_forward", [](Graph& g) {
    using Op = CrossEntropyForward;
    Op op;
    op.label_smoothing = 0.1;
    op.ignore_index = 0;
    op.mean = true;
    return g.apply(
        op,
        {{Op::x, g.input("x", {2, 3, 9}, bf16)}, {Op::target, g.input("target", {2, 3, 1}, i32)}},
        {Op::loss});
  });
  sample(samples, "cross_entropy_backward", [](Graph& g) {
    using Op = CrossEntropyBackward;
    Op op;
    op.label_smoothing = 0.1;
    op.ignore_index = 0;
    op.mean = true;
    return g.apply(op,
                   {{Op::x, g.input("x", {2, 3, 9}, bf16)},
                    {Op::target, g.input("target", {2, 3, 1}, i32)},
                    {Op::stats, g.input("stats", {2, 3, 1}, f32)},
                    {Op::dloss, g.input("dloss", {1, 1, 1}, f32)}},
                   {Op::dx});
  });
  sample(samples, "rope", [](Graph& g) {
    Rope op;
    op.pairs = RopePairs::interleaved;
    op.width = 6;
    op.inverse = true;
    op.base = 500.0;
    op.factor = 4.0;
    op.original_length = 64;
    op.beta_fast = 8.0;
    op.beta_slow = 0.5;
    op.attention_factor = 1.25;
    return g.apply(op,
                   {{Rope::x, g.input("x", {2, 3, 5, 8}, f16)},
                    {Rope::positions, g.input("positions", {1, 5}, i64)}},
                   {Rope::y});
  });
  sample(samples, "rope", [](Graph& g) {
    return g.apply(Rope{},
                   {{Rope::x, g.input("x", {2, 3, 5, 8}, f32)},
                    {Rope::cos, g.input("cos", {2, 1, 5, 4}, f32)},
                    {Rope::sin, g.input("sin", {1, 3, 5, 4}, f32)}},
                   {Rope::y});
  });
}

}  // namespace ashlar::tests

// Sample graphs with options: block scaling, sub-byte and complex types.
#include "graph/sample_graphs.hpp"

namespace ashlar::tests {

void add_low_precision_samples(Samples& samples) {
  sample(samples, "block_scale_quantize", [](Graph& g) {
    const Value x = g.input("x", {2, 33, 6}, bf16);
    BlockScaleQuantize op;
    op.block_size = {16};
    op.axis = 1;
    op.scale_layout = ScaleLayout::f8_128x4;
    return g.apply(op, {{BlockScaleQuantize::x, x}},
                   {BlockScaleQuantize::y, BlockScaleQuantize::scale});
  });
  sample(samples, "block_scale_dequantize", [](Graph& g) {
    const Value x = g.input("x", {5, 9}, e2m1), scale = g.input("scale", {3, 3}, e8m0);
    BlockScaleDequantize op;
    op.block_size = {2, 4};
    op.negative_scale = true;
    return g.apply(op, {{BlockScaleDequantize::x, x}, {BlockScaleDequantize::scale, scale}},
                   {BlockScaleDequantize::y});
  });
  sample(samples, "block_scale_dequantize", [](Graph& g) {
    const Value x = g.input("x", {64, 6}, u4), scale = g.input("scale", {2, 6}, f16),
                zero = g.input("zero", {2, 6}, u4);
    BlockScaleDequantize op;
    op.block_size = {32, 1};
    return g.apply(op,
                   {{BlockScaleDequantize::x, x},
                    {BlockScaleDequantize::scale, scale},
                    {BlockScaleDequantize::zero_point, zero}},
                   {BlockScaleDequantize::y});
  });
  sample(samples, "matmul", [](Graph& g) {
    const Value a = g.input("a", {2, 3, 4}, complex_f32), b = g.input("b", {1, 4, 2}, complex_f32);
    return std::vector{g.matmul(a, b)};
  });
  sample(samples, "matmul", [](Graph& g) {
    const Value a = g.input("a", {3, 5}, bf16), b = g.input("b", {5, 3}, i4);
    return std::vector{g.matmul(a, b)};
  });
}

}  // namespace ashlar::tests

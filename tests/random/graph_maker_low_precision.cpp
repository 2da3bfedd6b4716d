// Random graphs: block scaling, sub-byte and complex types.
#include "random/graph_maker.hpp"

namespace ashlar::random_graphs {

// Scales and complex values are not added to the pool of operands: few operations support them.
void GraphMaker::add_low_precision() {
  constexpr std::array<std::int64_t, 6> kBlocks = {1, 2, 3, 16, 32, 40};
  constexpr std::array kNarrow = {e4m3, e5m2, e2m1, i8, i4};
  constexpr std::array kScales = {e8m0, e8m0, e4m3, f32};
  constexpr std::array kZeros = {u4, i4, i8, bf16, f32};
  if (chance(0.3)) {
    constexpr std::array kComplex = {complex_f32, complex_f32, complex_f64};
    const std::int64_t m = extent(), k = extent(), n = extent(), batch = extent();
    const DType dtype = one_of(kComplex);
    const Value a = graph_.input(name("a"), {batch, m, k}, dtype,
                                 chance(0.5) ? row_major : Layout(Dims{m * k, 1, m}));
    const Value b = graph_.input(name("b"), {chance(0.5) ? 1 : batch, k, n}, dtype);
    graph_.matmul(a, b);
    return;
  }
  const Value x = old([](const Tensor& t) {
    return is_floating(t.dtype) && t.dims.rank() <= 4 && element_count(t.dims) < 1500;
  });
  if (!x) return;
  const int rank = x.dims().rank();
  BlockScaleQuantize quantize;
  BlockScaleDequantize dequantize;
  quantize.axis = dequantize.axis = chance(0.5) ? -1 : below(rank);
  quantize.block_size = {one_of(kBlocks)};
  if (rank > 1 && chance(0.3)) quantize.block_size = {one_of(kBlocks), one_of(kBlocks)};
  const bool along_matrix = rank > 1 && quantize.block_size.rank() == 1 &&
                            quantize.block_size[0] > 1 &&
                            (quantize.axis == -1 || quantize.axis >= rank - 2);
  if (along_matrix && chance(0.3)) quantize.scale_layout = ScaleLayout::f8_128x4;
  const auto made = graph_.apply(
      quantize, {{BlockScaleQuantize::x, x}},
      {{BlockScaleQuantize::y, one_of(kNarrow)}, {BlockScaleQuantize::scale, one_of(kScales)}});
  dequantize.block_size = quantize.block_size;
  dequantize.scale_layout = quantize.scale_layout;
  dequantize.negative_scale = chance(0.2);
  if (chance(0.5)) {
    Value zero;
    if (dequantize.scale_layout == ScaleLayout::linear && chance(0.4))
      zero = graph_.input(name("zero"), made[BlockScaleQuantize::scale].dims(), one_of(kZeros));
    keep(graph_.apply(dequantize,
                      {{BlockScaleDequantize::x, made[BlockScaleQuantize::y]},
                       {BlockScaleDequantize::scale, made[BlockScaleQuantize::scale]},
                       {BlockScaleDequantize::zero_point, zero}},
                      {BlockScaleDequantize::y}, spec()));
  }
  if (chance(0.7)) keep(made[BlockScaleQuantize::y]);
}

}  // namespace ashlar::random_graphs

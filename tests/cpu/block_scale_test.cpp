// Block scales in sizes that the generic engine tests do not cover.
#include "cpu/plan_check.hpp"

namespace ashlar::cpu {
namespace {

using Quantize = BlockScaleQuantize;
using Dequantize = BlockScaleDequantize;

Graph quantize(const Dims& x, const Quantize& op, DType y, DType scale, const Layout& layout) {
  Graph graph;
  const auto made = graph.apply(op, {{Quantize::x, graph.input("x", x, f32, layout)}},
                                {{Quantize::y, y}, {Quantize::scale, scale}});
  graph.output("y", made[Quantize::y]);
  graph.output("scale", made[Quantize::scale]);
  return graph;
}

void check_both_ways(const Dims& x, const Quantize& op, DType y, DType scale,
                     const Layout& layout = row_major) {
  PlanCheck forward(quantize(x, op, y, scale, layout));
  forward.expect_agrees("cpu.block_scale");

  Graph graph;
  const Dims scales = quantize(x, op, y, scale, layout).value(2).dims();
  Dequantize back;
  back.block_size = op.block_size;
  back.axis = op.axis;
  back.scale_layout = op.scale_layout;
  const auto made = graph.apply(back,
                                {{Dequantize::x, graph.input("x", x, y, layout)},
                                 {Dequantize::scale, graph.input("scale", scales, scale)}},
                                {Dequantize::y});
  graph.output("y", made[Dequantize::y]);
  PlanCheck backward(std::move(graph));
  backward.fill("scale", 0.25, 4.0);
  backward.expect_agrees("cpu.block_scale");
}

Quantize blocks(const Dims& size, std::int64_t axis = -1,
                ScaleLayout layout = ScaleLayout::linear) {
  Quantize op;
  op.block_size = size;
  op.axis = axis;
  op.scale_layout = layout;
  return op;
}

TEST(BlockScale, LongRowsAreSplitIntoSegments) {
  check_both_ways({3, 5000}, blocks({32}), e4m3, e8m0);
  check_both_ways({3, 5001}, blocks({16}), e2m1, e4m3);
  check_both_ways({2, 4097}, blocks({1500}), e5m2, f32);
  check_both_ways({2, 4097}, blocks({24}), i4, bf16);
  check_both_ways({70, 3001}, blocks({32}, 0), e2m1, e8m0);
}

TEST(BlockScale, ManyThreadsShareBytes) {
  // Odd rows of 4-bit values: adjacent rows share a byte.
  check_both_ways({301, 333}, blocks({32}), e2m1, e8m0);
  check_both_ways({96, 301}, blocks({128, 128}), e4m3, f32, channels_last);
}

TEST(BlockScale, Tiles) {
  check_both_ways({2, 200, 320}, blocks({32}, -1, ScaleLayout::f8_128x4), e4m3, e8m0);
  check_both_ways({320, 200}, blocks({16}, 0, ScaleLayout::f8_128x4), e2m1, e4m3);
}

TEST(BlockScale, ZeroPoints) {
  const auto check = [](const Dims& x, const Dims& block, const Dims& blocks, DType numbers,
                        DType zeros) {
    Graph graph;
    Dequantize op;
    op.block_size = block;
    // The prologue of the zero points runs once per zero point, not per element.
    const Value zero = relu(graph.input("zero", blocks, zeros));
    const auto made = graph.apply(op,
                                  {{Dequantize::x, graph.input("x", x, numbers)},
                                   {Dequantize::scale, graph.input("scale", blocks, f16)},
                                   {Dequantize::zero_point, zero}},
                                  {Dequantize::y});
    graph.output("y", made[Dequantize::y] + 1.0);
    PlanCheck plan(std::move(graph));
    plan.fill("scale", 0.25, 4.0);
    plan.expect_agrees("cpu.block_scale");
  };
  check({301, 333}, {32, 1}, {10, 333}, u4, i8);
  check({5, 4097}, {1, 24}, {5, 171}, i4, bf16);
  check({3, 3001}, {1, 1500}, {3, 3}, i8, f32);
}

TEST(BlockScale, FusedOnBothSides) {
  Graph graph;
  const Value x = graph.input("x", {40, 96}, f16), bias = graph.input("bias", {1, 96}, f32);
  const auto made = graph.apply(Quantize{}, {{Quantize::x, relu(x) * 3.0 + bias}},
                                {{Quantize::y, e4m3}, {Quantize::scale, e8m0}});
  graph.output("y", made[Quantize::y] + 1.0);
  graph.output("scale", made[Quantize::scale]);
  PlanCheck plan(std::move(graph));
  plan.expect_agrees("cpu.block_scale");
}

}  // namespace
}  // namespace ashlar::cpu

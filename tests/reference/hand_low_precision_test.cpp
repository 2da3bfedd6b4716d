// Block scales, narrow types and complex matmuls on values small enough to verify manually.
#include <cmath>

#include "base/block_scale.hpp"
#include "graph/block_scale_shape.hpp"
#include "reference/harness.hpp"

namespace ashlar::reference {
namespace {

using Quantize = BlockScaleQuantize;
using Dequantize = BlockScaleDequantize;

struct Quantized {
  Graph graph;
  explicit Quantized(const Dims& x, const Quantize& op, DType y, DType scale) {
    const auto made = graph.apply(op, {{Quantize::x, graph.input("x", x, f32)}},
                                  {{Quantize::y, y}, {Quantize::scale, scale}});
    graph.output("y", made[Quantize::y]);
    graph.output("scale", made[Quantize::scale]);
  }
};

Quantize blocks_of(const Dims& size, std::int64_t axis = -1) {
  Quantize op;
  op.block_size = size;
  op.axis = axis;
  return op;
}

TEST(BlockScale, ScaleIsRoundedUpExactly) {
  EXPECT_EQ(scale_for(e8m0, 448.0, 448.0), 1.0);
  EXPECT_EQ(scale_for(e8m0, std::nextafter(448.0, 1e9), 448.0), 2.0);
  EXPECT_EQ(scale_for(e8m0, 6.0 * 0x1p-20, 6.0), 0x1p-20);
  EXPECT_EQ(scale_for(e8m0, 1e-300, 6.0), 0x1p-127);
  EXPECT_EQ(scale_for(e8m0, 1e300, 6.0), 0x1p127);
  EXPECT_EQ(scale_for(e4m3, 6.0, 6.0), 1.0);
  EXPECT_EQ(scale_for(e4m3, 6.01, 6.0), 1.125);
  EXPECT_EQ(scale_for(e4m3, 1e-9, 6.0), 0x1p-9);  // the smallest above 0
  EXPECT_EQ(scale_for(e4m3, 6000.0, 6.0), 448.0);
  EXPECT_EQ(scale_for(e4m3, std::numeric_limits<double>::infinity(), 6.0), 448.0);
  // The scale is the smallest sufficient one, for every scale of the type.
  for (int pattern = 1; pattern < 0x7E; ++pattern) {
    const auto bits = static_cast<std::uint8_t>(pattern);
    const double scale = load_element(e4m3, &bits, 0);
    EXPECT_EQ(scale_for(e4m3, scale * 6.0, 6.0), scale) << pattern;
    EXPECT_GT(scale_for(e4m3, std::nextafter(scale * 6.0, 1e9), 6.0), scale) << pattern;
  }
  for (DType type : {f32, f16, bf16, e5m2}) {
    const double third = scale_for(type, 1.0, 3.0);
    EXPECT_GE(third * 3.0, 1.0) << to_string(type);
    EXPECT_LT(third * 3.0, 1.0 + 8.0 * unit_roundoff(type)) << to_string(type);
  }
}

TEST(BlockScale, ZeroAndNanBlocks) {
  EXPECT_EQ(scale_for(e8m0, 0.0, 6.0), 0x1p-127);
  EXPECT_EQ(scale_for(e4m3, 0.0, 6.0), 0.0);
  EXPECT_TRUE(std::isnan(scale_for(e8m0, kNaN, 6.0)));
  const Quantized q({2, 4}, blocks_of({2}), e4m3, e4m3);
  Evaluation e(q.graph);
  e.set("x", {0, -0.0, 1, kNaN, 0, 448, 3, 1.5});
  e.run_nodes();
  const std::vector<double> y = e.get("y"), scale = e.get("scale");
  EXPECT_EQ(scale[0], 0.0);
  EXPECT_EQ(y[0], 0.0);
  EXPECT_EQ(y[1], 0.0);
  EXPECT_TRUE(std::isnan(scale[1]));
  EXPECT_TRUE(std::isnan(y[2]) && std::isnan(y[3]));
  EXPECT_EQ(scale[2], 1.0);
  EXPECT_EQ(y[5], 448.0);
}

TEST(BlockScale, Mxfp4WithATail) {
  // Blocks of 3 in a row of 5; the largest e2m1 is 6.
  const Quantized q({2, 5}, blocks_of({3}), e2m1, e8m0);
  Evaluation e(q.graph);
  e.set("x", {6, -3, 2.5, 0.4, 0.1, 7, 1, -12, 100, -50});
  // 6 / 6 = 1; 0.4 / 6 = 0.0667 -> 1/8; 12 / 6 = 2; 100 / 6 = 16.7 -> 32
  expect_result(e, "scale", {1, 0.125, 2, 32});
  // 2.5 and 3.5 are ties: to the even patterns 2 and 4; 0.8, 3.2, 3.125 and -1.5625
  expect_result(e, "y", {6, -3, 2, 3, 1, 4, 0.5, -6, 3, -1.5});
}

TEST(BlockScale, Nvfp4DividesByTheStoredScale) {
  const Quantized q({1, 16}, blocks_of({16}), e2m1, e4m3);
  Evaluation e(q.graph);
  std::vector<double> x(16, 0.0);
  x[0] = 7.0;  // 7 / 6 = 1.1667 -> 1.25 in e4m3
  x[1] = -5.0;
  x[2] = 1.25;
  x[3] = 0.3125;  // a quarter: halfway between 0 and 0.5
  e.set("x", x);
  std::vector<double> y(16, 0.0);
  y[0] = 6.0;  // 5.6
  y[1] = -4.0;
  y[2] = 1.0;
  expect_result(e, "scale", {1.25});
  e.run_nodes();
  EXPECT_EQ(e.get("y"), y);
}

TEST(BlockScale, TwoDimensionalBlocksAndOtherAxes) {
  const Quantized square({3, 4}, blocks_of({2, 2}), i8, f32);
  Evaluation e(square.graph);
  e.set("x", {127, 1, 0, 0, 2, 3, 0, -254, -1, 0.5, 127, 12.7});
  expect_result(e, "scale", {1, 2, 1.0 / 127 + 0x1p-31, 1}, 1e-8);
  e.run_nodes();
  EXPECT_EQ(e.get("y"), (std::vector<double>{127, 1, 0, 0, 2, 3, 0, -127, -127, 63, 127, 13}));
  const Quantized column({3, 2}, blocks_of({2}, 0), e5m2, e8m0);
  Evaluation c(column.graph);
  c.set("x", {57344, 1, 2, 3, 4, 5});
  expect_result(c, "scale", {1, 0x1p-14, 0x1p-13, 0x1p-13});
  expect_result(c, "y", {57344, 16384, 2, 49152, 32768, 40960});
}

TEST(BlockScale, ScaleTilesOf128By4) {
  BlockScaleAttributes op;
  op.block_size = {1, 32};
  op.scale_layout = ScaleLayout::f8_128x4;
  const BlockScaleShape shape({130, 160}, op);
  EXPECT_EQ(shape.blocks(), (Dims{130, 5}));
  EXPECT_EQ(shape.stored(), (Dims{256, 8}));
  const auto position = [&](std::int64_t r, std::int64_t c) {
    const Dims index = shape.place({r, c});
    return index[0] * 8 + index[1];
  };
  EXPECT_EQ(position(0, 0), 0);
  EXPECT_EQ(position(0, 3), 3);
  EXPECT_EQ(position(1, 0), 16);
  EXPECT_EQ(position(32, 0), 4);
  EXPECT_EQ(position(127, 3), 511);
  EXPECT_EQ(position(0, 4), 512);     // the next tile of the row
  EXPECT_EQ(position(128, 0), 1024);  // the next row of tiles
  // Every block has a distinct index.
  std::vector<bool> taken(256 * 8, false);
  for (std::int64_t r = 0; r < 130; ++r)
    for (std::int64_t c = 0; c < 5; ++c) {
      EXPECT_FALSE(taken[static_cast<std::size_t>(position(r, c))]);
      taken[static_cast<std::size_t>(position(r, c))] = true;
    }
}

TEST(BlockScale, TilesArePaddedWithZeros) {
  Quantize op = blocks_of({2});
  op.scale_layout = ScaleLayout::f8_128x4;
  const Quantized q({2, 4}, op, e4m3, e4m3);
  Evaluation e(q.graph);
  e.set("x", {448, 0, 0, 896, -1344, 0, 0, 0});
  std::vector<double> scale(512, 0.0);
  scale[0] = 1;
  scale[1] = 2;
  scale[16] = 3;
  expect_result(e, "scale", scale);
  expect_result(e, "y", {448, 0, 0, 448, -448, 0, 0, 0});
}

TEST(BlockScale, Dequantize) {
  Graph g;
  const Value x = g.input("x", {2, 3}, e2m1), scale = g.input("scale", {2, 2}, e8m0);
  Dequantize op;
  op.block_size = {2};
  g.output("y", g.apply(op, {{Dequantize::x, x}, {Dequantize::scale, scale}}, {Dequantize::y}));
  op.negative_scale = true;
  g.output("n", g.apply(op, {{Dequantize::x, x}, {Dequantize::scale, scale}}, {Dequantize::y}));
  Evaluation e(g);
  e.set("x", {6, -0.5, 3, 1, 1.5, -4});
  e.set("scale", {0x1p-3, 4, 2, 0x1p10});
  expect_result(e, "y", {0.75, -0.0625, 12, 2, 3, -4096});
  expect_result(e, "n", {-0.75, 0.0625, -12, -2, -3, 4096});
}

TEST(BlockScale, DequantizeWithZeroPoint) {
  Graph g;
  const Value x = g.input("x", {4, 2}, u4), scale = g.input("scale", {2, 2}, f32),
              zero = g.input("zero", {2, 2}, u4), half = g.input("half", {2, 2}, bf16);
  Dequantize op;
  op.block_size = {2, 1};
  const auto about = [&](Value point) {
    return g.apply(
        op, {{Dequantize::x, x}, {Dequantize::scale, scale}, {Dequantize::zero_point, point}},
        {Dequantize::y})[Dequantize::y];
  };
  g.output("y", about(zero));
  op.negative_scale = true;
  g.output("n", about(half));
  Evaluation e(g);
  e.set("x", {0, 15, 7, 8, 1, 2, 3, 4});
  e.set("scale", {0.5, 3, 10, -1});
  e.set("zero", {8, 15, 0, 3});
  e.set("half", {7.5, 15, -1, 0.25});
  expect_result(e, "y", {-4, 0, -0.5, -21, 10, 1, 30, -1});
  expect_result(e, "n", {3.75, 0, 0.25, 21, -20, 1.75, -40, 3.75});
}

TEST(HandComputed, ComplexMatmul) {
  Graph g;
  const Value a = g.input("a", {1, 2}, complex_f32), b = g.input("b", {2, 1}, complex_f32);
  g.output("c", g.matmul(a, b));
  Evaluation e(g);
  e.set("a", {1, 2, 3, -1});  // 1 + 2i, 3 - i
  e.set("b", {4, 5, 0, 7});   // 4 + 5i, 7i
  // (4 - 10) + (5 + 8) i, and 7 + 21 i
  expect_result(e, "c", {1, 34});
}

TEST(HandComputed, ComplexMatmulWithOverrides) {
  Graph g;
  const Value a = g.input("a", {1, 2, 2}, complex_f64), b = g.input("b", {1, 2, 1}, complex_f64);
  const Value m = g.input("m", {1, 1, 1}, i32), k = g.input("k", {1, 1, 1}, i32);
  Matmul op;
  op.padding_value = 9.0;
  g.output(
      "c",
      g.apply(op,
              {{Matmul::a, a}, {Matmul::b, b}, {Matmul::m_override, m}, {Matmul::k_override, k}},
              {Matmul::c}));
  Evaluation e(g);
  e.set("a", {0, 1, 5, 5, 1, 0, 1, 1});
  e.set("b", {2, 3, 100, 100});
  e.set("m", {1});
  e.set("k", {1});
  expect_result(e, "c", {-3, 2, 9, 0});  // i (2 + 3 i)
}

TEST(HandComputed, MatmulOfTwoTypes) {
  Graph g;
  const Value a = g.input("a", {1, 3}, f16), b = g.input("b", {3, 2}, i4);
  g.output("c", g.matmul(a, b, {.dtype = f32}));
  Evaluation e(g);
  e.set("a", {0.5, 2, -1});
  e.set("b", {-8, 7, 1, 3, 5, -2});
  expect_result(e, "c", {-4 + 2 - 5, 3.5 + 6 + 2});
}

}  // namespace
}  // namespace ashlar::reference

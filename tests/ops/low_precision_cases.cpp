// Cases of block scaling, sub-byte and complex types.
#include "graph/block_scale_shape.hpp"
#include "ops/op_case.hpp"

namespace ashlar::ops {

namespace {

struct Blocks {
  std::string label;
  Dims x, block;
  std::int64_t axis;
  DType narrow, scale;
  ScaleLayout layout;
  bool one_shape = true;

  void put(BlockScaleAttributes& op) const {
    op.block_size = block;
    op.scale_layout = layout;
  }
  Dims scales() const {
    BlockScaleAttributes op;
    op.scale_layout = layout;
    op.block_size = Dims::filled(x.rank(), 1);
    if (block.rank() == 1)
      op.block_size[static_cast<int>(axis < 0 ? axis + x.rank() : axis)] = block[0];
    else
      for (int i = 0; i < block.rank(); ++i) op.block_size[x.rank() - block.rank() + i] = block[i];
    return BlockScaleShape(x, op).stored();
  }
};

std::vector<Blocks> block_shapes() {
  constexpr auto kLinear = ScaleLayout::linear, kTiles = ScaleLayout::f8_128x4;
  return {
      {"MXFP8", {3, 70}, {32}, -1, e4m3, e8m0, kLinear, false},
      {"MXFP8, e5m2, first axis", {65, 3}, {32}, 0, e5m2, e8m0, kLinear, false},
      {"MXFP4", {2, 3, 64}, {32}, -1, e2m1, e8m0, kLinear, false},
      {"MXFP4, odd rows, middle axis", {2, 33, 5}, {32}, 1, e2m1, e8m0, kLinear},
      {"NVFP4", {5, 49}, {16}, -1, e2m1, e4m3, kLinear, false},
      {"NVFP4, tiles", {131, 80}, {16}, -1, e2m1, e4m3, kTiles},
      {"MXFP8, tiles along the other axis", {2, 130, 7}, {32}, 1, e4m3, e8m0, kTiles},
      {"squares", {9, 21}, {4, 8}, -1, e4m3, f32, kLinear},
      {"boxes", {3, 5, 7, 6}, {2, 3, 2}, -1, i8, f16, kLinear},
      {"integers", {4, 30}, {1, 10}, -1, i4, bf16, kLinear},
      {"one scale for all", {3, 5}, {64, 64}, -1, e4m3, f32, kLinear},
      {"a scale each", {3, 5}, {1}, -1, e4m3, e8m0, kLinear},
      {"a long block", {2, 2500}, {2048}, -1, e5m2, e4m3, kLinear},
      {"a vector", {37}, {32}, -1, e4m3, e8m0, kLinear},
      {"nothing", {3, 0}, {32}, -1, e4m3, e8m0, kLinear},
      {"nothing in tiles", {0, 32}, {32}, -1, e4m3, e8m0, kTiles},
  };
}

void add_block_scales(std::vector<OpCase>& cases) {
  using Quantize = BlockScaleQuantize;
  using Dequantize = BlockScaleDequantize;
  for (const Blocks& p : block_shapes()) {
    cases.push_back({"block_scale_quantize",
                     p.label,
                     {f64, f32, f16, bf16},
                     [p](CaseBuilder& b) {
                       Quantize op;
                       p.put(op);
                       op.axis = p.axis;
                       const auto made =
                           b.graph().apply(op, {{Quantize::x, b.operand("x", p.x)}},
                                           {{Quantize::y, p.narrow}, {Quantize::scale, p.scale}});
                       b.result(made[Quantize::y]);
                       b.result("scale", made[Quantize::scale]);
                     },
                     false,
                     p.one_shape});
    cases.push_back(
        {"block_scale_dequantize",
         p.label,
         {f64, f32, f16, bf16},
         [p](CaseBuilder& b) {
           Dequantize op;
           p.put(op);
           op.axis = p.axis;
           op.negative_scale = p.x[0] % 2 == 1;
           const Value scale = b.input("scale", p.scales(), p.scale);
           const auto made = b.graph().apply(
               op, {{Dequantize::x, b.input("x", p.x, p.narrow)}, {Dequantize::scale, scale}},
               {{Dequantize::y, b.dtype()}}, {.compute = b.wide()});
           b.result(made[Dequantize::y]);
         },
         false,
         p.one_shape});
  }
}

// Groups of rows with zero points, as in AWQ and GPTQ, and blocks of other shapes.
void add_zero_points(std::vector<OpCase>& cases) {
  using Dequantize = BlockScaleDequantize;
  constexpr auto kLinear = ScaleLayout::linear;
  struct Shifted {
    Blocks blocks;
    DType zero;
  };
  for (const Shifted& p :
       {Shifted{{"groups of rows", {70, 12}, {32}, 0, u4, f16, kLinear, false}, u4},
        Shifted{{"groups of columns", {5, 70}, {32}, -1, i4, bf16, kLinear, false}, i8},
        Shifted{{"bytes about an odd row of zeros", {33, 5}, {16}, 0, u8, f32, kLinear}, u4},
        Shifted{{"boxes about floats", {3, 5, 7, 6}, {2, 3, 2}, -1, i8, f16, kLinear}, bf16},
        Shifted{{"numbers of 32 bits", {4, 30}, {1, 10}, -1, i8, f32, kLinear}, i32},
        Shifted{{"a zero each", {3, 5}, {1}, -1, u4, f32, kLinear}, f32},
        Shifted{{"no block", {0, 32}, {32}, -1, u4, f16, kLinear}, u4}})
    cases.push_back({"block_scale_dequantize",
                     p.blocks.label + " about zero points",
                     {f64, f32, f16, bf16},
                     [p](CaseBuilder& b) {
                       Dequantize op;
                       p.blocks.put(op);
                       op.axis = p.blocks.axis;
                       op.negative_scale = p.blocks.x[0] % 2 == 1;
                       const Dims shared = p.blocks.scales();
                       const auto made = b.graph().apply(
                           op,
                           {{Dequantize::x, b.input("x", p.blocks.x, p.blocks.narrow)},
                            {Dequantize::scale, b.input("scale", shared, p.blocks.scale)},
                            {Dequantize::zero_point, b.input("zero", shared, p.zero)}},
                           {{Dequantize::y, b.dtype()}}, {.compute = b.wide()});
                       b.result(made[Dequantize::y]);
                     },
                     false,
                     p.blocks.one_shape});
}

void add_matmuls(std::vector<OpCase>& cases) {
  for (const auto& [a, b] :
       {std::pair(f16, i4), std::pair(bf16, i8), std::pair(f32, u4), std::pair(e4m3, e2m1),
        std::pair(i8, i4), std::pair(u8, i8), std::pair(u4, u8), std::pair(f32, i64),
        std::pair(u32, i8), std::pair(e2m1, e2m1)}) {
    const std::string label = std::string(to_string(a)) + " times " + std::string(to_string(b));
    cases.push_back({"matmul",
                     label,
                     {f32},
                     [a = a, b = b](CaseBuilder& build) {
                       const bool whole = is_integer(a) && is_integer(b);
                       build.result(build.graph().matmul(build.input("a", {2, 13, 35}, a),
                                                         build.input("b", {1, 35, 18}, b),
                                                         {.dtype = whole ? i32 : f32}));
                     },
                     true,
                     false});
  }
  struct Product {
    std::string label;
    Dims a, b;
    bool one_shape = true;
  };
  for (const Product& p :
       {Product{"complex", {7, 13}, {13, 9}, false},
        Product{"complex batches", {2, 1, 5, 4}, {1, 3, 4, 6}, false},
        Product{"complex, deep", {3, 530}, {530, 4}}, Product{"complex, no depth", {3, 0}, {0, 2}},
        Product{"complex, one element", {1, 1}, {1, 1}}})
    cases.push_back(
        {"matmul",
         p.label,
         {f32, f64},
         [p](CaseBuilder& b) {
           const DType dtype = b.dtype() == f64 ? complex_f64 : complex_f32;
           b.result("c", b.graph().matmul(b.input("a", p.a, dtype), b.input("b", p.b, dtype)));
         },
         true,
         p.one_shape});
  cases.push_back({"matmul",
                   "complex into transposed memory, of two widths",
                   {f32},
                   [](CaseBuilder& b) {
                     Graph& g = b.graph();
                     const Value c = g.matmul(g.input("a", {6, 5}, complex_f32),
                                              g.input("b", {5, 11}, complex_f64),
                                              {.dtype = complex_f32, .layout = Layout(Dims{1, 6})});
                     b.result("c", c);
                   },
                   true,
                   true});
}

// Every operation that supports these types, once.
void add_rare_types(std::vector<OpCase>& cases) {
  for (const Dims& a : {Dims{5, 19}, Dims{2, 3, 7}}) {
    Dims b = a;
    b[a.rank() - 2] = a[a.rank() - 1];
    b[a.rank() - 1] = 6;
    cases.push_back({"matmul", "rare types " + to_string(a), kRareArithmetic,
                     [a, b](CaseBuilder& build) {
                       build.result(
                           build.graph().matmul(build.operand("a", a), build.operand("b", b)));
                     },
                     true, false});
  }
  cases.push_back({"conv_forward", "rare types", kRareArithmetic,
                   [](CaseBuilder& b) {
                     b.result(b.graph().conv(b.operand("x", {2, 3, 5, 6}),
                                             b.operand("w", {4, 3, 3, 2}), {.padding = {1, 0}}));
                   },
                   true, false});
  cases.push_back({"conv_forward",
                   "narrow integers into i32",
                   {i8, u8, i4, u4},
                   [](CaseBuilder& b) {
                     b.result(b.graph().conv(b.input("x", {2, 20, 7, 6}, b.dtype()),
                                             b.input("w", {18, 20, 3, 3}, i8), {.padding = {1, 1}},
                                             {.dtype = i32}));
                   },
                   true,
                   false});
  cases.push_back({"conv_backward_data",
                   "narrow integers into i32",
                   {i8, u8, i4, u4},
                   [](CaseBuilder& b) {
                     b.result(b.graph().conv_backward_data(
                         b.input("dy", {2, 6, 4, 3}, b.dtype()), b.input("w", {6, 3, 2, 3}, u8),
                         {.stride = {2, 1}}, {.dtype = i32, .dims = {2, 3, 8, 5}}));
                   },
                   true,
                   false});
  cases.push_back({"conv_backward_filter",
                   "narrow integers into i32",
                   {i8, u8, i4, u4},
                   [](CaseBuilder& b) {
                     b.result(b.graph().conv_backward_filter(b.input("x", {2, 3, 7, 5}, b.dtype()),
                                                             b.input("dy", {2, 6, 6, 3}, i8), {},
                                                             {.dtype = i32, .dims = {6, 3, 2, 3}}));
                   },
                   true,
                   false});
  cases.push_back(
      {"reduction", "rare types", kRareArithmetic,
       [](CaseBuilder& b) {
         b.result(b.graph().reduce(b.operand("x", {3, 17, 5}), ReductionMode::add, {1}));
       },
       true, false});
  cases.push_back({"resample_forward", "rare types", kRareArithmetic,
                   [](CaseBuilder& b) {
                     b.result(b.graph().resample(b.operand("x", {1, 3, 7, 5}), {.window = {2, 3}}));
                   },
                   true, false});
  cases.push_back(
      {"norm_forward",
       "fp4",
       {e2m1},
       [](CaseBuilder& b) {
         const Value scale = b.input("scale", {1, 13}, f32);
         b.result(
             b.graph().norm(b.operand("x", {4, 13}), {.mode = NormMode::rms}, {.scale = scale}).y);
       },
       false,
       false});
  cases.push_back({"softmax_forward",
                   "fp4",
                   {e2m1},
                   [](CaseBuilder& b) {
                     b.result(b.graph().softmax(b.operand("x", {3, 11})));
                   },
                   false,
                   false});
}

}  // namespace

std::vector<OpCase> low_precision_cases() {
  std::vector<OpCase> cases;
  add_block_scales(cases);
  add_zero_points(cases);
  add_matmuls(cases);
  add_rare_types(cases);
  return cases;
}

}  // namespace ashlar::ops

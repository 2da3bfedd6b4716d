// Invalid inputs of block scaling, sub-byte and complex types.
#include "graph/bad_input.hpp"

namespace ashlar::tests {

namespace {

using Quantize = BlockScaleQuantize;
using Dequantize = BlockScaleDequantize;

void add_quantize(BadInputs& rows) {
  const auto quantize = [&](const char* name, const Dims& x, DType dtype, const Quantize& op,
                            const OutputSpec& spec, std::vector<std::string> says) {
    rows.push_back(
        {name, "block_scale_quantize",
         [=](Graph& g) {
           g.apply(op, {{Quantize::x, in(g, x, dtype)}}, {Quantize::y, Quantize::scale}, spec);
         },
         says});
  };
  const auto with = [](const Dims& block, std::int64_t axis,
                       ScaleLayout layout = ScaleLayout::linear) {
    Quantize op;
    op.block_size = block;
    op.axis = axis;
    op.scale_layout = layout;
    return op;
  };
  quantize("block_scale_quantize integers", {4, 32}, i8, {}, kBad,
           {"dtype of x 'i", "got i8", "expected a floating-point type"});
  quantize("block_scale_quantize scales", {4, 32}, e8m0, {}, kBad,
           {"dtype of x 'i", "got e8m0", "expected a type with a sign"});
  quantize("block_scale_quantize axis", {4, 32}, f32, with({32}, 2), kBad,
           {"axis", "got 2", "expected -2 to 1"});
  quantize("block_scale_quantize no block", {4, 32}, f32, with({}, -1), kBad,
           {"block_size", "got []", "expected 1 to 2 extents"});
  quantize("block_scale_quantize rank of block", {4, 32}, f32, with({1, 1, 32}, -1), kBad,
           {"block_size", "got [1, 1, 32]", "expected 1 to 2 extents"});
  quantize("block_scale_quantize block of nothing", {4, 32}, f32, with({0}, -1), kBad,
           {"block_size", "got [0]", "expected extents of at least 1"});
  quantize("block_scale_quantize tiles of two-dimensional blocks", {4, 32}, f32,
           with({2, 16}, -1, ScaleLayout::f8_128x4), kBad,
           {"scale_layout", "got f8_128x4", "one of the last two axes", "[2, 16]"});
  quantize("block_scale_quantize tiles of a vector", {64}, f32,
           with({32}, -1, ScaleLayout::f8_128x4), kBad,
           {"scale_layout", "got f8_128x4", "expected linear, or blocks along"});
  quantize("block_scale_quantize tiles along a batch", {64, 2, 3}, f32,
           with({32}, 0, ScaleLayout::f8_128x4), kBad, {"scale_layout", "[32, 1, 1]"});
  OutputSpec wide = kBad;
  wide.dtype = f16;
  quantize("block_scale_quantize wide y", {4, 32}, f32, {}, wide,
           {"dtype of y 'bad'", "got f16", "expected e4m3, e5m2, e2m1, i8 or i4"});
  OutputSpec whole = kBad;
  whole.compute = i32;
  quantize("block_scale_quantize compute", {4, 32}, f32, {}, whole,
           {"compute", "got i32", "expected a floating-point type"});
  rows.push_back({"block_scale_quantize scale dtype",
                  "block_scale_quantize",
                  [](Graph& g) {
                    g.apply(Quantize{}, {{Quantize::x, in(g, {4, 32})}},
                            {Quantize::y, {Quantize::scale, i8}}, kBad);
                  },
                  {"dtype of scale 'bad.scale'", "got i8", "expected e8m0, e4m3"}});
  rows.push_back({"block_scale_quantize scale dims",
                  "block_scale_quantize",
                  [](Graph& g) {
                    g.apply(Quantize{}, {{Quantize::x, in(g, {4, 33})}},
                            {Quantize::y, {Quantize::scale, {}, {4, 1}}}, kBad);
                  },
                  {"dims of scale 'bad.scale'", "got [4, 1]", "expected [4, 2]"}});
}

void add_dequantize(BadInputs& rows) {
  const auto dequantize = [&](const char* name, DType x, const Dims& scale, DType type,
                              const Dequantize& op, const OutputSpec& spec,
                              std::vector<std::string> says) {
    rows.push_back({name, "block_scale_dequantize",
                    [=](Graph& g) {
                      const Value numbers = in(g, {4, 40}, x);
                      g.apply(op,
                              {{Dequantize::x, numbers}, {Dequantize::scale, in(g, scale, type)}},
                              {Dequantize::y}, spec);
                    },
                    says});
  };
  Dequantize tiled;
  tiled.scale_layout = ScaleLayout::f8_128x4;
  dequantize("block_scale_dequantize booleans", boolean, {4, 2}, e8m0, {}, kBad,
             {"dtype of x 'i", "got bool", "expected a numeric type"});
  dequantize("block_scale_dequantize scales as data", e8m0, {4, 2}, e8m0, {}, kBad,
             {"dtype of x 'i", "got e8m0", "expected a type with a sign"});
  dequantize("block_scale_dequantize whole scales", e4m3, {4, 2}, i8, {}, kBad,
             {"dtype of scale 'i", "got i8", "expected a floating-point type"});
  dequantize("block_scale_dequantize scale dims", e4m3, {4, 1}, e8m0, {}, kBad,
             {"dims of scale 'i", "got [4, 1]", "expected [4, 2]"});
  dequantize("block_scale_dequantize unpadded tiles", e4m3, {4, 2}, e8m0, tiled, kBad,
             {"dims of scale 'i", "got [4, 2]", "expected [128, 4]"});
  OutputSpec power = kBad;
  power.dtype = e8m0;
  dequantize("block_scale_dequantize to scales", e4m3, {4, 2}, e8m0, {}, power,
             {"dtype of y 'bad'", "got e8m0", "expected a type with a sign"});
  const auto shifted = [&](const char* name, const Dims& zero, DType type, const Dequantize& op,
                           std::vector<std::string> says) {
    rows.push_back({name, "block_scale_dequantize",
                    [=](Graph& g) {
                      const bool tiles = op.scale_layout == ScaleLayout::f8_128x4;
                      const Value scale = in(g, tiles ? Dims{128, 4} : Dims{4, 2}, bf16);
                      g.apply(op,
                              {{Dequantize::x, in(g, {4, 40}, u4)},
                               {Dequantize::scale, scale},
                               {Dequantize::zero_point, in(g, zero, type)}},
                              {Dequantize::y}, kBad);
                    },
                    says});
  };
  shifted("block_scale_dequantize zero dims", {4, 1}, u4, {},
          {"dims of zero_point 'i", "got [4, 1]", "expected [4, 2]"});
  shifted("block_scale_dequantize boolean zeros", {4, 2}, boolean, {},
          {"dtype of zero_point 'i", "got bool", "expected a numeric type"});
  shifted("block_scale_dequantize scales as zeros", {4, 2}, e8m0, {},
          {"dtype of zero_point 'i", "got e8m0", "expected a type that has a zero"});
  shifted("block_scale_dequantize zero point with tiles", {128, 4}, u4, tiled,
          {"scale_layout", "got f8_128x4", "expected linear with zero_point 'i"});
}

void add_types(BadInputs& rows) {
  rows.push_back({"pointwise of complex numbers",
                  "pointwise",
                  [](Graph& g) {
                    g.pointwise(PointwiseMode::identity, std::array{in(g, {2}, complex_f32)}, {},
                                kBad);
                  },
                  {"'i0'", "got complex_f32", "only matmul supports complex"}});
  rows.push_back({"pointwise to complex numbers",
                  "pointwise",
                  [](Graph& g) {
                    OutputSpec spec = kBad;
                    spec.dtype = complex_f64;
                    g.pointwise(PointwiseMode::identity, std::array{in(g, {2})}, {}, spec);
                  },
                  {"dtype of output 'bad'", "got complex_f64", "only matmul supports complex"}});
  rows.push_back({"reshape of complex numbers",
                  "reshape",
                  [](Graph& g) {
                    g.reshape(in(g, {4}, complex_f64), {2, 2}, kBad);
                  },
                  {"'i0'", "got complex_f64", "expected a real type"}});
  rows.push_back(
      {"output that turns real",
       "matmul",
       [](Graph& g) {
         const Value c = g.matmul(in(g, {2, 2}, complex_f32), in(g, {2, 2}, complex_f32));
         g.output("y", c, {.dtype = f32});
       },
       {"dtype of c 'y'", "got f32", "expected a complex type"}});
  rows.push_back(
      {"output that turns into scales",
       "pointwise",
       [](Graph& g) { g.output("y", relu(in(g, {2})), {.dtype = e8m0}); },
       {"dtype of output 'y'", "got e8m0", "expected another type: e8m0 (block scales)"}});
  rows.push_back({"quantized output that turns wide",
                  "block_scale_quantize",
                  [](Graph& g) {
                    const auto made = g.apply(Quantize{}, {{Quantize::x, in(g, {4, 32})}},
                                              {Quantize::y, Quantize::scale});
                    g.output("wide", made[Quantize::y], {.dtype = f32});
                  },
                  {"dtype of y 'wide'", "got f32", "expected e4m3"}});
  rows.push_back({"sum of scales",
                  "pointwise",
                  [](Graph& g) {
                    const Value a = in(g, {2}, e8m0);
                    g.pointwise(PointwiseMode::add, std::array{a, a}, {}, kBad);
                  },
                  {"'i0'", "got e8m0", "expected another type: e8m0 (block scales)"}});
  rows.push_back(
      {"scaled conversion to scales",
       "pointwise",
       [](Graph& g) {
         OutputSpec spec = kBad;
         spec.dtype = e8m0;
         g.pointwise(PointwiseMode::identity, std::array{in(g, {2})}, {.alpha1 = 2.0}, spec);
       },
       {"dtype of output 'bad'", "got e8m0", "expected another type: e8m0 (block scales)"}});
  rows.push_back({"matmul of scales",
                  "matmul",
                  [](Graph& g) {
                    g.matmul(in(g, {2, 2}, e8m0), in(g, {2, 2}), kBad);
                  },
                  {"dtype of", "got e8m0", "conversions (identity) and data movement"}});
  rows.push_back({"matmul of complex and real",
                  "matmul",
                  [](Graph& g) {
                    g.matmul(in(g, {2, 2}, complex_f32), in(g, {2, 2}), kBad);
                  },
                  {"dtype of b 'i", "got f32", "expected a complex type, to match complex_f32"}});
  rows.push_back({"matmul of real and complex",
                  "matmul",
                  [](Graph& g) {
                    g.matmul(in(g, {2, 2}), in(g, {2, 2}, complex_f32), kBad);
                  },
                  {"dtype of b 'i", "got complex_f32", "expected a real type, to match f32"}});
  rows.push_back({"complex matmul with a real result",
                  "matmul",
                  [](Graph& g) {
                    OutputSpec spec = kBad;
                    spec.dtype = f32;
                    g.matmul(in(g, {2, 2}, complex_f32), in(g, {2, 2}, complex_f32), spec);
                  },
                  {"dtype of c 'bad'", "got f32", "expected a complex type"}});
  rows.push_back({"complex compute type",
                  "matmul",
                  [](Graph& g) {
                    OutputSpec spec = kBad;
                    spec.compute = complex_f32;
                    g.matmul(in(g, {2, 2}, complex_f32), in(g, {2, 2}, complex_f32), spec);
                  },
                  {"compute", "got complex_f32", "expected a type to compute in"}});
  rows.push_back({"complex tensor of eight axes",
                  "tensor",
                  [](Graph& g) {
                    in(g, {1, 1, 1, 1, 1, 1, 1, 1}, complex_f32);
                  },
                  {"tensor 'i0': dims", "expected at most 7 extents for a complex tensor"}});
  rows.push_back({"complex constant",
                  "tensor",
                  [](Graph& g) { g.constant(1.0, complex_f32, 2); },
                  {"dtype", "got complex_f32", "expected a real type for a constant"}});
}

}  // namespace

void add_bad_low_precision(BadInputs& rows) {
  add_quantize(rows);
  add_dequantize(rows);
  add_types(rows);
}

}  // namespace ashlar::tests

// Cases of convolutions.
#include "ops/op_case.hpp"

namespace ashlar::ops {

namespace {

struct ConvProblem {
  std::string label;
  Dims x, w;
  ConvAttributes attributes = {};
  bool one_shape = true;
};

std::vector<ConvProblem> conv_problems() {
  return {
      {"3x3", {2, 6, 7, 9}, {4, 6, 3, 3}, {.padding = {1, 1}}, false},
      {"1x1", {1, 5, 5, 7}, {8, 5, 1, 1}, {}, false},
      {"depthwise", {2, 7, 9, 8}, {7, 1, 3, 3}, {.padding = {1, 1}}, false},
      {"depthwise with multiplier, stride 2",
       {1, 3, 7, 6},
       {6, 1, 3, 2},
       {.padding = {1, 0}, .stride = {2, 2}}},
      {"groups, dilation, flipped filter, asymmetric padding",
       {2, 4, 11, 9},
       {6, 2, 3, 2},
       {.padding = {2, 0},
        .post_padding = Dims{1, 3},
        .stride = {2, 1},
        .dilation = {2, 3},
        .mode = ConvMode::convolution}},
      {"one spatial axis", {3, 4, 17}, {5, 4, 4}, {.padding = {2}, .stride = {3}}},
      {"three spatial axes",
       {1, 2, 4, 5, 3},
       {3, 2, 2, 2, 3},
       {.padding = {0, 1, 1}, .stride = {1, 2, 1}}},
      {"3x3 of many channels", {2, 16, 7, 9}, {20, 16, 3, 3}, {.padding = {1, 1}}, false},
      {"primes", {1, 17, 13, 11}, {19, 17, 3, 3}, {.padding = {1, 1}}},
      {"all extents 1", {1, 1, 1, 1}, {1, 1, 1, 1}},
      {"no batch", {0, 3, 5, 5}, {2, 3, 3, 3}},
      {"no output channels", {1, 3, 5, 5}, {0, 3, 3, 3}},
      {"wide stride", {1, 2, 13, 3}, {3, 2, 2, 1}, {.stride = {5, 2}}},
  };
}

// Infers the extents of y with a forward convolution in a separate graph.
Dims output_of(const ConvProblem& problem) {
  Graph graph;
  return graph
      .conv(graph.input("x", problem.x, f32), graph.input("w", problem.w, f32), problem.attributes)
      .dims();
}

}  // namespace

std::vector<OpCase> convolution_cases() {
  std::vector<OpCase> cases;
  for (const ConvProblem& p : conv_problems()) {
    const Dims y = output_of(p);
    const auto add = [&](std::string op, std::function<void(CaseBuilder&)> build) {
      cases.push_back({std::move(op), p.label, kArithmetic, std::move(build), true, p.one_shape});
    };
    add("conv_forward", [p](CaseBuilder& b) {
      b.result(b.graph().conv(b.operand("x", p.x), b.operand("w", p.w), p.attributes));
    });
    add("conv_backward_data", [p, y](CaseBuilder& b) {
      b.result(b.graph().conv_backward_data(b.operand("dy", y), b.operand("w", p.w), p.attributes,
                                            {.dims = p.x}));
    });
    add("conv_backward_filter", [p, y](CaseBuilder& b) {
      b.result(b.graph().conv_backward_filter(b.operand("x", p.x), b.operand("dy", y), p.attributes,
                                              {.dims = p.w}));
    });
  }
  const Dims x = {2, 3, 6, 5}, w = {4, 3, 3, 3}, y = {2, 4, 4, 3};
  const ConvAttributes blend{.alpha = 2.0, .beta = -0.5};
  cases.push_back({"conv_forward", "blended with z", kFloating, [=](CaseBuilder& b) {
                     const Value z = b.input("z", y, b.dtype());
                     b.result(b.graph().conv(b.operand("x", x), b.operand("w", w), blend, {}, z));
                   }});
  cases.push_back({"conv_backward_data", "blended with z", kFloating, [=](CaseBuilder& b) {
                     const Value z = b.input("z", x, b.dtype());
                     b.result(b.graph().conv_backward_data(b.operand("dy", y), b.operand("w", w),
                                                           blend, {.dims = x}, z));
                   }});
  cases.push_back({"conv_backward_filter", "blended with z", kFloating, [=](CaseBuilder& b) {
                     const Value z = b.input("z", w, b.dtype());
                     b.result(b.graph().conv_backward_filter(b.operand("x", x), b.operand("dy", y),
                                                             blend, {.dims = w}, z));
                   }});
  cases.push_back(
      {"conv_forward",
       "wider result",
       {f16, bf16, e4m3, e5m2, i8, u8},
       [=](CaseBuilder& b) {
         const DType wider = is_integer(b.dtype()) ? i32 : f32;
         b.result(b.graph().conv(b.operand("x", x), b.operand("w", w), {}, {.dtype = wider}));
       },
       true,
       true});
  return cases;
}

}  // namespace ashlar::ops

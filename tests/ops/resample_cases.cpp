// Cases of pooling and interpolation.
#include "graph/enum_names.hpp"
#include "ops/op_case.hpp"

namespace ashlar::ops {

namespace {

struct Pool {
  std::string label;
  Dims x;
  ResampleAttributes attributes;
  bool one_shape = true;
};

std::vector<Pool> pools(ResampleMode mode) {
  const auto with = [&](ResampleAttributes attributes) {
    attributes.mode = mode;
    return attributes;
  };
  return {
      {"2x2", {2, 5, 6, 8}, with({.window = {2, 2}}), false},
      {"overlapping, padded",
       {1, 3, 7, 9},
       with({.window = {3, 3}, .stride = {2, 1}, .padding = {1, 1}}),
       false},
      {"zeros outside, asymmetric",
       {1, 2, 5, 5},
       with({.window = {3, 2},
             .stride = {1, 2},
             .padding = {0, 1},
             .post_padding = Dims{2, 0},
             .padding_mode = PaddingMode::zero})},
      {"edge",
       {1, 2, 5, 4},
       with({.window = {3, 3}, .padding = {1, 2}, .padding_mode = PaddingMode::edge})},
      {"one spatial axis", {2, 3, 13}, with({.window = {4}, .stride = {3}})},
      {"three spatial axes", {1, 2, 3, 4, 5}, with({.window = {2, 2, 3}, .stride = {1, 2, 1}})},
      {"global", {2, 7, 3, 5}, with({.window = {3, 5}})},
      {"all extents 1", {1, 1, 1, 1}, with({.window = {1, 1}})},
      {"no batch", {0, 2, 4, 4}, with({.window = {2, 2}})},
  };
}

std::vector<Pool> interpolations(ResampleMode mode) {
  std::vector<Pool> result;
  for (bool align : {false, true}) {
    const std::string suffix = align ? ", aligned corners" : "";
    const auto with = [&](Dims size) {
      return ResampleAttributes{.mode = mode, .size = size, .align_corners = align};
    };
    result.push_back({"up" + suffix, {2, 3, 4, 5}, with({8, 11}), false});
    result.push_back({"down" + suffix, {1, 2, 9, 7}, with({4, 3})});
    result.push_back({"one spatial axis" + suffix, {2, 3, 5}, with({7})});
    result.push_back({"three spatial axes" + suffix, {1, 2, 3, 2, 4}, with({4, 3, 5})});
    result.push_back({"to extent 1" + suffix, {1, 2, 3, 3}, with({1, 1})});
    result.push_back({"from extent 1" + suffix, {1, 2, 1, 1}, with({3, 4})});
    result.push_back({"to nothing" + suffix, {1, 2, 3, 3}, with({0, 2})});
  }
  return result;
}

Dims output_of(const Pool& pool) {
  Graph graph;
  return graph.resample(graph.input("x", pool.x, f32), pool.attributes).dims();
}

}  // namespace

std::vector<OpCase> resample_cases() {
  std::vector<OpCase> cases;
  for (int m = 0; m <= static_cast<int>(ResampleMode::maxpool); ++m) {
    const auto mode = static_cast<ResampleMode>(m);
    const bool pooling = mode >= ResampleMode::avgpool_include_padding;
    const bool max = mode == ResampleMode::maxpool;
    const std::string name(enum_name(mode));
    for (const Pool& p : pooling ? pools(mode) : interpolations(mode)) {
      const Dims y = output_of(p);
      const std::string label = name + ", " + p.label;
      cases.push_back(
          {"resample_forward", label, kArithmetic,
           [p](CaseBuilder& b) { b.result(b.graph().resample(b.operand("x", p.x), p.attributes)); },
           max || mode == ResampleMode::nearest, p.one_shape});
      if (!max)
        cases.push_back({"resample_backward", label, kArithmetic,
                         [p, y](CaseBuilder& b) {
                           b.result(b.graph().resample_backward(b.operand("dy", y), p.attributes,
                                                                {.dims = p.x}));
                         },
                         mode == ResampleMode::nearest, p.one_shape});
      if (!max) continue;
      cases.push_back({"resample_forward", label + ", with index", kArithmetic,
                       [p](CaseBuilder& b) {
                         const auto [result, index] =
                             b.graph().resample_with_index(b.operand("x", p.x), p.attributes);
                         b.result(result);
                         b.result("index", index);
                       },
                       true, p.one_shape});
      cases.push_back({"resample_backward", label + ", by index", kArithmetic,
                       [p, y](CaseBuilder& b) {
                         const Value index = b.input("index", y, i32);
                         b.result(b.graph().resample_backward(b.operand("dy", y), p.attributes,
                                                              {.dims = p.x}, {}, index));
                       },
                       true, p.one_shape});
      cases.push_back({"resample_backward", label + ", by x", kArithmetic,
                       [p, y](CaseBuilder& b) {
                         const Value x = b.input("x", p.x, b.dtype());
                         b.result(b.graph().resample_backward(b.operand("dy", y), p.attributes,
                                                              {.dims = p.x}, x));
                       },
                       true, true});
    }
  }
  return cases;
}

}  // namespace ashlar::ops

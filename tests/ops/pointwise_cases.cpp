// Cases of every pointwise mode.
#include "graph/enum_names.hpp"
#include "graph/pointwise_traits.hpp"
#include "ops/op_case.hpp"

namespace ashlar::ops {

namespace {

// Non-default attributes, so that an ignored one is detected.
constexpr Pointwise kTuned{.mode = PointwiseMode::identity,
                           .alpha1 = 0.5,
                           .alpha2 = -2.0,
                           .relu_lower_clip = -0.25,
                           .relu_upper_clip = 0.75,
                           .relu_lower_slope = 0.125,
                           .elu_alpha = 0.5,
                           .softplus_beta = 2.0,
                           .swish_beta = 1.5,
                           .axis = 1};

struct Operands {
  std::string label;
  Dims x, b, predicate;
  Pointwise attributes = {};
  bool one_shape = true;
};

}  // namespace

std::vector<OpCase> pointwise_cases() {
  const std::vector<Operands> operands = {
      {"same extents", {3, 5, 7}, {3, 5, 7}, {3, 5, 7}, {}, false},
      {"broadcast", {3, 1, 67}, {1, 4, 67}, {3, 4, 1}},
      {"broadcast ranks", {8, 1, 6}, {7, 1}, {6}},
      {"broadcast a lower rank", {5}, {2, 3, 1}, {1}},
      {"tuned", {2, 3, 11}, {2, 3, 11}, {1, 1, 1}, kTuned},
      {"nothing", {2, 0, 3}, {2, 0, 3}, {2, 0, 3}},
  };
  std::vector<OpCase> cases;
  for (int m = 0; m < kPointwiseModeCount; ++m) {
    const auto mode = static_cast<PointwiseMode>(m);
    for (const Operands& p : operands)
      cases.push_back({"pointwise", std::string(enum_name(mode)) + ", " + p.label, kPointwise,
                       [p, mode](CaseBuilder& b) {
                         std::vector<Value> values = {b.operand("x", p.x)};
                         if (operand_count(mode) > 1) values.push_back(b.operand("b", p.b));
                         if (operand_count(mode) > 2)
                           values.push_back(b.input("predicate", p.predicate, boolean));
                         b.result(b.graph().pointwise(mode, values, p.attributes));
                       },
                       false, p.one_shape});
  }
  const std::vector<std::pair<std::string, Dims>> shapes = {
      {"one axis", {1}}, {"a prime", {127}}, {"eight axes", {2, 1, 3, 1, 2, 1, 1, 5}}};
  for (const auto& [label, dims] : shapes)
    cases.push_back({"pointwise", "add, " + label, kPointwise, [dims = dims](CaseBuilder& b) {
                       b.result(b.operand("x", dims) + b.operand("b", dims));
                     }});
  for (DType to : kMovable)
    cases.push_back({"pointwise", "cast to " + std::string(to_string(to)), kMovable,
                     [to](CaseBuilder& b) {
                       b.result(b.graph().pointwise(PointwiseMode::identity,
                                                    std::array{b.operand("x", {3, 41})}, {},
                                                    {.dtype = to}));
                     },
                     false, true});
  return cases;
}

}  // namespace ashlar::ops
